"""An answer as a file: the last way to show it, where Slack takes it neither as blocks nor as text."""

from collections.abc import Awaitable
from typing import Any, TypeVar

import aiohttp
from slack_sdk.errors import SlackApiError

from agent.channel import ChannelUnavailableError, Notes
from agent.thread import Thread
from bot.clients import Clients, code_of
from bot.render.posting import Post, Posting
from bot.render.refusals import UNKNOWN, FileRefusedError

PASSING = {408, 425, 429}
"""HTTP statuses below 500 after which the bytes may be sent again."""
Taken = TypeVar("Taken")
WORDS = "Slack would not show this answer as a message, so here it is as a file."


def name_of(post: Post) -> str:
    """The note of the file that a post became."""
    return f"file-{post.part}"


class Uploads:
    """Shares files once. A share has no metadata and tells no ts: the file's own id, noted before it is shared, finds it again."""

    def __init__(self, posting: Posting, clients: Clients) -> None:
        self._posting = posting
        self._clients = clients

    async def once(self, post: Post, notes: Notes, *, name: str = "") -> str:
        """Share a post's words as a file, unless they stand there as one; returns the ts.

        Raises ChannelUnavailableError, ChannelGoneError, and FileRefusedError where Slack takes it neither now nor later: that is noted, and
        nothing is asked of Slack the next time. `name` tells it from the file that a post may become.
        """
        name = name or name_of(post)
        refused = notes.noted(f"{name}-refused")
        if refused is not None:
            raise FileRefusedError(str(refused))
        file_id = notes.noted(name)
        if file_id is None:
            file_id = await self._taken(self._upload(post), name, notes)
            await notes.note(name, file_id)
            await self._taken(self._share(post, str(file_id)), name, notes)
        found = await self._find(post.thread, str(file_id), notes)
        if found is None and not notes.noted(f"{name}-again"):
            # Slack shows a share a moment after it took it. If it never did, the next look shares it once more.
            await notes.note(f"{name}-again", True)
            raise ChannelUnavailableError("the shared file is not to be seen yet", retry_after_s=2)
        if found is None:
            await self._taken(self._share(post, str(file_id)), name, notes)
            found = await self._find(post.thread, str(file_id), notes)
        if found is None:
            raise ChannelUnavailableError("the shared file is not to be seen yet", retry_after_s=5)
        return found

    async def _taken(self, request: Awaitable[Taken], name: str, notes: Notes) -> Taken:
        try:
            return await request
        except SlackApiError as error:
            await notes.note(f"{name}-refused", code_of(error))
            raise FileRefusedError(code_of(error)) from error
        except FileRefusedError as error:
            await notes.note(f"{name}-refused", error.code)
            raise

    async def _upload(self, post: Post) -> str:
        """The bytes first: a file that nobody sees yet."""
        tenant, content = post.thread.tenant, post.source.encode(errors="replace")
        client = await self._posting.client(tenant)
        place = await self._posting.call(
            client.files_getUploadURLExternal(filename=post.file_name, length=len(content)),
            tenant=tenant, method="files.getUploadURLExternal",
        )  # fmt: skip
        await self._sent(str(place["upload_url"]), content)
        return str(place["file_id"])

    async def _sent(self, url: str, content: bytes) -> None:
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session,
                session.post(url, data=content) as response,
            ):
                status = response.status
        except UNKNOWN as error:
            raise ChannelUnavailableError(f"Slack did not answer: {type(error).__name__}", retry_after_s=1) from error
        if status >= 500 or status in PASSING:
            raise ChannelUnavailableError(f"Slack: {status}", retry_after_s=1)
        if status != 200:
            raise FileRefusedError(f"upload_{status}")

    async def _share(self, post: Post, file_id: str) -> None:
        client = await self._posting.client(post.thread.tenant)
        shown: dict[str, Any] = {"thread_ts": post.thread.root} if post.thread.root else {}
        await self._posting.call(
            client.files_completeUploadExternal(
                files=[{"id": file_id, "title": post.file_name}], channel_id=post.thread.channel,
                initial_comment=post.comment or WORDS, **shown,
            ),
            tenant=post.thread.tenant, method="files.completeUploadExternal",
        )  # fmt: skip

    async def _find(self, thread: Thread, file_id: str, notes: Notes) -> str | None:
        since = notes.intent_at or self._posting.now()
        for message in await self._posting.replies(thread, since=since):
            if any(isinstance(file, dict) and file.get("id") == file_id for file in message.get("files") or ()):
                return str(message["ts"])
        return None
