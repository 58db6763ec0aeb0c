"""An answer streamed while it is made. Its message's id is committed at once; a cut-off one is finished by an edit."""

import re
import time
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog
from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, ChannelUnavailableError, Draft, Notes
from agent.models.base import Person
from agent.thread import Thread
from bot.render.posting import Posting
from bot.render.text import MARKDOWN_LIMIT, neutral

FIRST_CHARACTERS = 80
"""Shorter answers are posted whole: nobody watches a sentence grow."""
CHARACTERS = 160
SECONDS = 0.7
"""appendStream allows 100 calls a minute per workspace."""


TeamOf = Callable[[str, str], Awaitable[str]]
"""From a tenant and a person to the workspace that the person is of."""


class SlackStream:
    """Shows a draft. Trouble ends the showing, never the turn: the whole text is in the final answer."""

    def __init__(
        self,
        posting: Posting,
        thread: Thread,
        asker: Person,
        *,
        delivery_id: str,
        draft: Draft | None,
        notes: Notes,
        team_of: TeamOf,
    ) -> None:
        self._team_of = team_of
        self._posting = posting
        self._thread = thread
        self._asker = asker
        self._notes = notes
        self._delivery_id = delivery_id
        self._buffer = ""
        self._shown_at = 0.0
        self._draft = self._taken_over(draft)
        self._shown = self._draft.shown if self._draft else 0
        self._showing = self._draft is None or self._draft.live

    def _taken_over(self, draft: Draft | None) -> Draft | None:
        """What an earlier try of this step left, or the draft so far; neither streams on if its claim or its text was cut off."""
        left = self._notes.noted("stream-message")
        if left is not None:
            return Draft.model_validate(left).model_copy(update={"live": False})
        began = self._notes.noted("stream-intent")
        if began is not None:
            return Draft(delivery_id=self._delivery_id, live=False, began_at=datetime.fromisoformat(began))
        if draft is not None and (draft.fence != self._notes.fence or self._notes.attempt > 1):
            return draft.model_copy(update={"live": False})
        return draft

    async def append(self, text: str) -> None:
        self._buffer += text
        if not self._showing:
            return
        wanted = FIRST_CHARACTERS if self._draft is None else CHARACTERS
        if len(self._buffer) >= wanted and (self._draft is None or time.monotonic() - self._shown_at >= SECONDS):
            await self._show(_whole(self._buffer))

    async def pause(self) -> Draft | None:
        if self._showing and self._draft is not None and self._buffer:
            await self._show(self._buffer)
        return self._draft.model_copy(update={"shown": self._shown}) if self._draft else None

    async def _show(self, text: str) -> None:
        if not text:
            return
        if self._shown + len(neutral(text)) > MARKDOWN_LIMIT:
            self._end_showing()  # the final edit splits it into parts
            return
        try:
            await (self._start(text) if self._draft is None else self._extend(self._draft, text))
        except (SlackApiError, ChannelUnavailableError, ChannelGoneError) as error:
            structlog.get_logger().info("stream_not_shown", error=str(error))
            self._end_showing()
            return
        self._buffer = self._buffer[len(text) :]
        self._shown += len(neutral(text))
        self._shown_at = time.monotonic()

    def _end_showing(self) -> None:
        self._showing = False
        if self._draft is not None:
            self._draft = self._draft.model_copy(update={"live": False})

    async def _start(self, text: str) -> None:
        """Intent, start, id: each committed before the next, so that a cut-off stream is found again."""
        began_at = datetime.now().astimezone()
        await self._notes.note("stream-intent", began_at.isoformat())
        self._draft = Draft(delivery_id=self._delivery_id, fence=self._notes.fence, began_at=began_at)
        client = await self._posting.client(self._thread.tenant)
        team = await self._team_of(self._thread.tenant, self._asker.id)
        try:
            response = await Posting.call(
                client.chat_startStream(
                    channel=self._thread.channel, thread_ts=self._thread.root, recipient_team_id=team,
                    recipient_user_id=self._asker.id, markdown_text=neutral(text),
                )
            )  # fmt: skip
        except (SlackApiError, ChannelGoneError):
            self._draft = Draft(
                delivery_id=self._delivery_id, fence=self._notes.fence, live=False
            )  # refused: there is no message
            raise
        self._draft = Draft(delivery_id=self._delivery_id, message_id=str(response["ts"]), fence=self._notes.fence)
        await self._notes.note("stream-message", self._draft.model_dump(mode="json"))

    async def _extend(self, draft: Draft, text: str) -> None:
        client = await self._posting.client(self._thread.tenant)
        await Posting.call(
            client.chat_appendStream(
                channel=self._thread.channel, ts=draft.message_id or "", markdown_text=neutral(text)
            )
        )


_BREAK = re.compile(r"\s\S*\Z")


def _whole(text: str) -> str:
    """As much of `text` as can be shown without cutting a word, a link or a table row in two."""
    line = text.rfind("\n") + 1
    tail = text[line:]
    if line and (tail.lstrip().startswith("|") or tail.count("[") != tail.count("]") or tail.count("`") % 2):
        return text[:line]
    if not line and (tail.lstrip().startswith("|") or tail.count("[") != tail.count("]")):
        return ""
    found = _BREAK.search(text)
    return text[: found.start() + 1] if found else ""
