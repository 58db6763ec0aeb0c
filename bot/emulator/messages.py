"""Messages, and the order they stand in."""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from bot.emulator.delivery import Delivery
from bot.emulator.workspace import Json

STREAM_LIFE_S = 300.0

StreamState = Literal["streaming", "stopped", "stopped_by_user", "expired"]


@dataclass(slots=True)
class Stream:
    """The streaming side of a message. Slack ends it about five minutes after its start, appended to or not."""

    started_s: float
    plan: bool = False
    state: StreamState = "streaming"

    def state_at(self, now_s: float) -> StreamState:
        return "expired" if self.state == "streaming" and now_s >= self.started_s + STREAM_LIFE_S else self.state


@dataclass(slots=True)
class Message:
    """One message. `text` is Slack's mrkdwn, or Markdown where `markdown` is set; `thread_ts` is the root of a reply.

    `reactions` maps an emoji name to user ids in order; `deliveries` are those that tell the app about it.
    """

    ts: str
    channel_id: str
    team_id: str
    user_id: str
    text: str
    thread_ts: str | None = None
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    files: list[Json] = field(default_factory=list)
    metadata: Json | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    bot_id: str = ""
    app_id: str = ""
    subtype: str = ""
    client_msg_id: str = ""
    edited_ts: str = ""
    ephemeral_for: str = ""
    markdown: bool = False
    broadcast: bool = False
    stream: Stream | None = None
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def root_ts(self) -> str:
        return self.thread_ts or self.ts

    def wire(self, *, include_metadata: bool = False) -> Json:
        """The message as the Web API and events carry it, without thread counts."""
        optional: Json = {
            "subtype": self.subtype,
            "client_msg_id": self.client_msg_id,
            "bot_id": self.bot_id,
            "app_id": self.app_id,
            "blocks": self.blocks,
            "attachments": self.attachments,
            "files": self.files,
            "thread_ts": self.thread_ts,
            "edited": {"user": self.user_id, "ts": self.edited_ts} if self.edited_ts else None,
            "reactions": self.reaction_list(),
            "metadata": self.metadata if include_metadata else None,
        }
        body = {"type": "message", "user": self.user_id, "ts": self.ts, "text": self.text, "team": self.team_id}
        return {**body, **{key: value for key, value in optional.items() if value}}

    def reaction_list(self) -> list[Json]:
        return [{"name": name, "users": users, "count": len(users)} for name, users in self.reactions.items()]


class Timeline:
    """All messages of one local Slack, by channel, in the order of their timestamps."""

    def __init__(self) -> None:
        self._channels: dict[str, list[Message]] = {}

    def add(self, message: Message) -> None:
        insort(self._channels.setdefault(message.channel_id, []), message, key=lambda entry: entry.ts)

    def remove(self, message: Message) -> None:
        self._channels[message.channel_id].remove(message)

    def find(self, channel_id: str, ts: str) -> Message | None:
        return next((message for message in self._channels.get(channel_id, ()) if message.ts == ts), None)

    def all(self, channel_id: str) -> list[Message]:
        """Everything in a channel, replies and ephemeral messages too."""
        return list(self._channels.get(channel_id, ()))

    def everything(self) -> Iterator[Message]:
        """Every message of every channel."""
        return (message for channel in self._channels.values() for message in channel)

    def top_level(self, channel_id: str) -> Iterator[Message]:
        """What stands in the channel itself: roots, messages without replies and broadcast replies."""
        return (m for m in self._channels.get(channel_id, ()) if m.broadcast or m.thread_ts in {None, m.ts})

    def thread(self, channel_id: str, root_ts: str) -> list[Message]:
        """The root, if it still stands, and its replies."""
        return [m for m in self._channels.get(channel_id, ()) if root_ts in {m.ts, m.thread_ts}]

    def thread_counts(self, message: Message) -> Json:
        """Slack's reply fields of a root that has replies, else nothing."""
        replies = [
            reply
            for reply in self.thread(message.channel_id, message.ts)
            if reply is not message and not reply.ephemeral_for
        ]
        if not replies:
            return {}
        return {
            "thread_ts": message.ts,
            "reply_count": len(replies),
            "reply_users": list(dict.fromkeys(reply.user_id for reply in replies)),
            "latest_reply": replies[-1].ts,
        }
