"""What the agent says it is doing in a thread: the status line and the session."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.emulator.clock import Clock
from bot.emulator.updates import Updates
from bot.emulator.workspace import Json

STATUS_LIFE_S = 120.0
PROCESSING_LIFE_S = 3600.0


@dataclass(slots=True)
class Session:
    """One thread's agent session. `text` is the status line of `assistant.threads.setStatus`, `status` the life cycle."""

    text: str = ""
    loading_messages: list[str] = field(default_factory=list)
    text_until_s: float = 0.0
    status: str = ""
    status_until_s: float = 0.0
    title: str = ""
    prompts: list[Json] = field(default_factory=list)


class Sessions:
    """Sessions by channel and root timestamp. A line is gone after two minutes, `processing` after an hour."""

    def __init__(self, clock: Clock, updates: Updates) -> None:
        self._clock = clock
        self._updates = updates
        self._sessions: dict[tuple[str, str], Session] = {}

    def find(self, channel_id: str, thread_ts: str) -> Session | None:
        return self._sessions.get((channel_id, thread_ts))

    def open(self, channel_id: str, thread_ts: str) -> Session:
        return self._sessions.setdefault((channel_id, thread_ts), Session())

    def set_line(self, channel_id: str, thread_ts: str, text: str, loading_messages: list[str]) -> None:
        session = self.open(channel_id, thread_ts)
        session.text, session.loading_messages = text, loading_messages
        session.text_until_s = self._clock.now() + STATUS_LIFE_S
        self._publish(channel_id, thread_ts)

    def clear_line(self, channel_id: str, thread_ts: str) -> None:
        """Called for every message of the app: Slack takes the line away then."""
        session = self.find(channel_id, thread_ts)
        if session and session.text:
            session.text, session.loading_messages = "", []
            self._publish(channel_id, thread_ts)

    def clear_prompts(self, channel_id: str, thread_ts: str) -> None:
        """Called for every message of a person: what was suggested before it is over."""
        session = self.find(channel_id, thread_ts)
        if session and session.prompts:
            session.prompts = []
            self._publish(channel_id, thread_ts)

    def set_status(self, channel_id: str, thread_ts: str, status: str) -> Session:
        session = self.open(channel_id, thread_ts)
        session.status, session.status_until_s = status, self._clock.now() + PROCESSING_LIFE_S
        if status != "processing":
            session.text = ""
        self._publish(channel_id, thread_ts)
        return session

    def seen(self, channel_id: str, thread_ts: str) -> Json:
        """``{status, loading_messages, session_status, title, expires_in_s, prompts}``; `status` "" when nothing shows."""
        session, now_s = self.find(channel_id, thread_ts) or Session(), self._clock.now()
        shown = bool(session.text) and now_s < session.text_until_s
        working = session.status != "processing" or now_s < session.status_until_s
        return {
            "channel": channel_id,
            "thread_ts": thread_ts,
            "status": session.text if shown else "",
            "loading_messages": session.loading_messages if shown else [],
            "session_status": session.status if working else "active",
            "title": session.title,
            "prompts": session.prompts,
            "expires_in_s": round(session.text_until_s - now_s, 3) if shown else 0,
        }

    def all(self) -> list[tuple[str, str, Session]]:
        """Every session behind its channel and root timestamp."""
        return [(channel_id, thread_ts, session) for (channel_id, thread_ts), session in self._sessions.items()]

    def put(self, sessions: Iterable[tuple[str, str, Session]]) -> None:
        """Take sessions that exist already."""
        self._sessions.update(((channel_id, thread_ts), session) for channel_id, thread_ts, session in sessions)

    def all_seen(self, channel_id: str) -> list[Json]:
        return [self.seen(channel, thread) for channel, thread in self._sessions if channel == channel_id]

    def _publish(self, channel_id: str, thread_ts: str) -> None:
        self._updates.publish("status", **self.seen(channel_id, thread_ts))
