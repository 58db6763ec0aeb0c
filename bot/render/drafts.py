"""Drafts: streams that were shown while an answer was made, and become the answer."""

import contextlib

from slack_sdk.errors import SlackApiError

from agent.channel import Draft, Notes
from agent.thread import Thread
from bot.clients import code_of
from bot.render.posting import Post, Posting
from bot.render.refusals import REFUSED_FORMS
from bot.render.text import UPDATE_LIMIT

GONE = "message_not_found"


class Drafts:
    """Finishes them, whatever became of whoever began them."""

    def __init__(self, posting: Posting) -> None:
        self._posting = posting

    async def finish(self, post: Post, draft: Draft | None, notes: Notes) -> str | None:
        """Make a draft the answer; returns its ts. None: there is none, or none any more, so that the answer has to be posted.

        Raises ChannelUnavailableError, ChannelGoneError.
        """
        draft = await self._located(post, draft, notes)
        if draft is None or draft.message_id is None:
            return None
        return await self._end(post, draft, draft.message_id)

    async def _located(self, post: Post, draft: Draft | None, notes: Notes) -> Draft | None:
        """A stream whose start was sent and whose id was lost is found by bot, thread and time, and adopted."""
        if draft is None or draft.message_id is not None or draft.began_at is None:
            return draft
        ts = await self._posting.stream_of(post, notes, began_at=draft.began_at)
        return draft.model_copy(update={"message_id": ts, "live": False}) if ts else None

    async def _end(self, post: Post, draft: Draft, ts: str) -> str | None:
        """End a stream, or edit what it showed: both can be done again. What Slack refuses to end is edited, what it refuses to edit goes."""
        client = await self._posting.client(post.thread.tenant)
        channel = post.thread.channel
        try:
            # Metadata says "this is the whole answer": a cut-off text gets it only with the edit that completes it.
            # A longer answer is cut into parts anew, and a table was streamed as the words it is written with: Slack shows those of a stream as
            # they are, and makes tables of them in a block. Blocks can be streamed, too (`blocks` chunks, `blocks` of stopStream); that Slack takes
            # a table among them is said nowhere, and for an edit it is.
            complete = draft.live and post.parts == 1 and post.streams
            whole = post.metadata if complete else None
            await self._posting.call(
                client.chat_stopStream(
                    channel=channel, ts=ts, metadata=whole, blocks=list(post.below) if complete and post.below else None
                ),
                tenant=post.thread.tenant, method="chat.stopStream",
            )  # fmt: skip
            if complete:
                return ts
        except SlackApiError as error:
            if code_of(error) == GONE:
                return None
        return await self._edit(post, ts)

    async def _edit(self, post: Post, ts: str) -> str | None:
        client = await self._posting.client(post.thread.tenant)
        for shown in post.forms:
            if len(shown["text"]) > UPDATE_LIMIT:
                continue
            try:
                await self._posting.call(
                    client.chat_update(
                        channel=post.thread.channel, ts=ts, metadata=post.metadata, **{"blocks": [], **shown}
                    ),
                    tenant=post.thread.tenant,
                    method="chat.update",
                )
                return ts
            except SlackApiError as error:
                if code_of(error) == GONE:
                    return None
                if code_of(error) not in REFUSED_FORMS:
                    break
        await self._removed(post.thread, ts)
        return None

    async def _removed(self, thread: Thread, ts: str) -> None:
        """Take half an answer back, so that the whole one can be posted. Where that is refused, too, it comes below the half."""
        client = await self._posting.client(thread.tenant)
        with contextlib.suppress(SlackApiError):
            await self._posting.call(
                client.chat_delete(channel=thread.channel, ts=ts), tenant=thread.tenant, method="chat.delete"
            )
