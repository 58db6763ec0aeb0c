"""Posts in whichever form Slack takes them: as blocks, as text, as a file, or in plain words. What there is to say always arrives."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, Notes
from agent.thread import Thread
from bot.clients import code_of
from bot.render.messages import messages
from bot.render.posting import Post, Posting
from bot.render.refusals import DENIED, REFUSED_FORMS, FileRefusedError
from bot.render.text import fallback
from bot.render.uploads import Uploads, name_of

NEITHER = "Slack takes this answer neither as a formatted message nor as a file: {why}. So here are its plain words."


class Forms:
    """Posts what may be long, wide or refused."""

    def __init__(self, posting: Posting, uploads: Uploads) -> None:
        self._posting = posting
        self._uploads = uploads

    async def post(self, post: Post, notes: Notes) -> str:
        """Make it stand there, once; returns its ts. Raises ChannelUnavailableError, ChannelGoneError, and SlackApiError for what is refused in any form."""
        if notes.noted(name_of(post)) is None and notes.noted(f"{name_of(post)}-refused") is None:
            try:
                return await self._posting.once(post, notes)
            except SlackApiError as error:
                if code_of(error) not in REFUSED_FORMS:
                    raise
        try:
            return await self._uploads.once(post, notes)
        except FileRefusedError as refused:
            text = f"{NEITHER.format(why=refused.why)}\n\n{post.plain or post.text}"
            return await self._posting.once(replace(post, text=text, blocks=(), smaller=(), plain=""), notes)


def posts_of(thread: Thread, text: str, delivery_id: str, *, after: int = 0) -> list[Post]:
    """Markdown (neutral) as the posts that follow `after` others of the same delivery."""
    shown = messages(text)
    return [
        Post(
            thread, delivery_id, number, fallback(each.source), each.blocks, each.plain, after + len(shown),
            words=each.source, smaller=each.in_words, streams=not each.has_table,
        )
        for number, each in enumerate(shown, start=after)
    ]  # fmt: skip


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """What Slack refuses for good is no reason to try for hours: it is raised as ChannelGoneError."""
    try:
        yield
    except SlackApiError as error:
        code = code_of(error)
        raise ChannelGoneError(f"Slack refuses: {code}", place=DENIED.get(code, ""), refused=True) from error
