"""An answer streamed while it is made. Its message's id is committed at once; a cut-off one is finished by an edit.

A stream that runs out goes on in the same message by edits of the whole text so far: what was not shown yet is in the first of them.
"""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, ChannelUnavailableError, Draft, Notes, Task
from agent.models.base import Person
from agent.thread import Thread
from bot.broadcasts import neutral
from bot.clients import code_of
from bot.render.posting import Posting
from bot.render.text import MARKDOWN_LIMIT, fallback, shortened

FIRST_CHARACTERS = 80
"""Shorter answers are posted whole: nobody watches a sentence grow."""
CHARACTERS = 160
SECONDS = 0.7
"""appendStream allows 100 calls a minute per workspace."""
EDIT_SECONDS = 3.0
"""chat.update allows 50."""
LIFE = timedelta(minutes=4)
"""Slack ends a stream five minutes after its start, also while it is appended to. Then the message goes on by edits."""
RAN_OUT = {"message_not_in_streaming_state", "streaming_state_conflict"}
SO_FAR = Callable[[], Awaitable[str]]
TeamOf = Callable[[str, str], Awaitable[str]]
"""From a tenant and a person to the workspace that the person is of."""


class SlackStream:
    """Shows a draft. Trouble ends the showing, never the turn: the whole text is in the final answer.

    Tools at work are told to `status`; without it they are shown as cards in the stream.
    """

    def __init__(
        self,
        posting: Posting,
        thread: Thread,
        asker: Person,
        *,
        delivery_id: str,
        draft: Draft | None,
        notes: Notes,
        so_far: SO_FAR,
        team_of: TeamOf,
        status: Callable[[Thread, str], Awaitable[None]] | None = None,
    ) -> None:
        self._posting = posting
        self._thread = thread
        self._asker = asker
        self._notes = notes
        self._delivery_id = delivery_id
        self._so_far = so_far
        self._team_of = team_of
        self._status = status
        self._text = ""
        self._buffer = ""
        self._shown_at = 0.0
        self._draft = self._taken_over(draft)
        self._shown = self._draft.shown if self._draft else 0
        self._showing = self._draft is None or self._draft.live
        self._editing = self._draft is not None and self._draft.edited

    def _taken_over(self, draft: Draft | None) -> Draft | None:
        """What an earlier try of this step left, or the draft so far; neither streams on if its claim or its text was cut off."""
        left = self._notes.noted("stream-message")
        if left is not None:
            return Draft.model_validate(left).model_copy(update={"live": False})
        began = self._notes.noted("stream-intent")
        if began is not None:
            return Draft(delivery_id=self._delivery_id, live=False, began_at=datetime.fromisoformat(began))
        if draft is not None and (draft.fence != self._notes.fence or self._notes.attempt > 1):
            return draft.model_copy(update={"live": False, "edited": False})
        return draft

    async def append(self, text: str) -> None:
        self._text += text
        self._buffer += text
        if self._editing:
            await self._edit_now_and_then()
            return
        if not self._showing:
            return
        wanted = FIRST_CHARACTERS if self._draft is None else CHARACTERS
        if len(self._buffer) >= wanted and (self._draft is None or time.monotonic() - self._shown_at >= SECONDS):
            await self._show(_whole(self._buffer))

    async def tasks(self, tasks: Sequence[Task]) -> None:
        """As cards in the stream, or as a quiet status. An edit shows no cards: what is left of it then is the text."""
        begun = [task.title.casefold() for task in tasks if task.state == "in_progress"]
        if self._status is not None:
            if begun:
                await self._status(self._thread, f"is at work: {', '.join(begun)}…")
        elif self._showing and tasks:
            await self._show(self._buffer, [_card(task) for task in tasks])

    async def pause(self) -> Draft | None:
        if self._showing and self._draft is not None and self._buffer:
            await self._show(self._buffer)
        if self._editing and self._buffer:
            await self._edit()
        return self._draft.model_copy(update={"shown": self._shown}) if self._draft else None

    async def _show(self, text: str, cards: Sequence[dict[str, Any]] = ()) -> None:
        if not text and not cards:
            return
        if self._shown + len(neutral(text)) > MARKDOWN_LIMIT:
            self._end_showing()  # the final edit splits it into parts
            return
        chunks = [*([{"type": "markdown_text", "text": neutral(text)}] if text else []), *cards]
        try:
            if self._draft is None:
                await self._start(chunks)
            elif self._old(self._draft):
                await self._go_on_by_edits(self._draft)
                return
            else:
                await self._extend(self._draft, chunks)
        except (SlackApiError, ChannelUnavailableError, ChannelGoneError) as error:
            structlog.get_logger().info("stream_not_shown", error=str(error))
            if isinstance(error, SlackApiError) and code_of(error) in RAN_OUT and self._draft is not None:
                await self._go_on_by_edits(self._draft)
            else:
                self._end_showing()
            return
        self._buffer = self._buffer[len(text) :]
        self._shown += len(neutral(text))
        self._shown_at = time.monotonic()

    def _end_showing(self) -> None:
        self._showing = self._editing = False
        if self._draft is not None:
            self._draft = self._draft.model_copy(update={"live": False, "edited": False})

    # A stream's life

    async def _start(self, chunks: Sequence[dict[str, Any]]) -> None:
        """Intent, start, id: each committed before the next, so that a cut-off stream is found again."""
        team = await self._team_of(self._thread.tenant, self._asker.id)
        began_at = self._posting.now()
        await self._notes.note("stream-intent", began_at.isoformat())
        self._draft = Draft(delivery_id=self._delivery_id, fence=self._notes.fence, began_at=began_at)
        client = await self._posting.client(self._thread.tenant)
        try:
            response = await self._posting.call(
                client.chat_startStream(
                    channel=self._thread.channel, thread_ts=self._thread.root, recipient_team_id=team,
                    recipient_user_id=self._asker.id, chunks=list(chunks),
                ),
                tenant=self._thread.tenant, method="chat.startStream",
            )  # fmt: skip
        except (SlackApiError, ChannelGoneError):
            self._draft = Draft(
                delivery_id=self._delivery_id, fence=self._notes.fence, live=False
            )  # refused: there is no message
            raise
        except ChannelUnavailableError as error:
            if not error.maybe_posted:
                self._draft = Draft(delivery_id=self._delivery_id, fence=self._notes.fence, live=False)
            raise
        self._draft = self._draft.model_copy(update={"message_id": str(response["ts"])})
        await self._notes.note("stream-message", self._draft.model_dump(mode="json"))

    async def _extend(self, draft: Draft, chunks: Sequence[dict[str, Any]]) -> None:
        client = await self._posting.client(self._thread.tenant)
        await self._posting.call(
            client.chat_appendStream(channel=self._thread.channel, ts=draft.message_id or "", chunks=list(chunks)),
            tenant=self._thread.tenant,
            method="chat.appendStream",
        )

    def _old(self, draft: Draft) -> bool:
        return draft.began_at is not None and self._posting.now() - draft.began_at >= LIFE

    # After it

    async def _go_on_by_edits(self, draft: Draft) -> None:
        """End the stream, if Slack has not, and show all that was said, the unsent text with it."""
        client = await self._posting.client(self._thread.tenant)
        try:
            await self._posting.call(
                client.chat_stopStream(
                    channel=self._thread.channel, ts=draft.message_id or "", session_status="processing"
                ),
                tenant=self._thread.tenant, method="chat.stopStream",
            )  # fmt: skip
        except SlackApiError as error:
            if code_of(error) not in RAN_OUT:
                self._end_showing()
                return
        except (ChannelUnavailableError, ChannelGoneError):
            self._end_showing()
            return
        self._showing, self._editing = False, True
        self._draft = draft.model_copy(update={"live": False, "edited": True})
        await self._edit()

    async def _edit_now_and_then(self) -> None:
        if time.monotonic() - self._shown_at >= EDIT_SECONDS:
            await self._edit()

    async def _edit(self) -> None:
        assert self._draft is not None
        text = neutral(await self._so_far() + self._text)
        if len(text) > MARKDOWN_LIMIT:
            self._end_showing()
            return
        try:
            client = await self._posting.client(self._thread.tenant)
            await self._posting.call(
                client.chat_update(
                    channel=self._thread.channel, ts=self._draft.message_id or "", text=fallback(text),
                    blocks=[{"type": "markdown", "text": text}],
                ),
                tenant=self._thread.tenant, method="chat.update",
            )  # fmt: skip
        except (SlackApiError, ChannelUnavailableError, ChannelGoneError) as error:
            structlog.get_logger().info("edit_not_shown", error=str(error))
            self._end_showing()
            return
        self._buffer = ""
        self._shown_at = time.monotonic()


def _card(task: Task) -> dict[str, Any]:
    return {"type": "task_update", "id": task.id, "title": shortened(neutral(task.title), TITLE), "status": task.state}


TITLE = 100
"""Characters of a card's title."""


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
