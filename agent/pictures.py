"""Pictures people share, for models that can see: fetched anew for each call, a few, of bounded size, and never stored."""

from collections.abc import Sequence

from pydantic_core import from_json

from agent.channel import ChannelUnavailableError
from agent.messages import Transcript
from agent.models.base import File, Image, Message, ToolResult
from agent.shelf import Files
from agent.thread import Thread
from agent.unreadable import FileUnreadableError

IMAGES_LIMIT = 3
"""Of one call of the model: the last that were read."""
BYTES_LIMIT = 3_500_000
"""Of one picture: providers refuse more than 5 MB of base64."""
SIDE_LIMIT = 8_000
"""Pixels."""
PICTURE = "picture"
"""The field of a tool's result that names the file to be shown."""
UNSHOWN = "The picture could not be fetched now, so it is not shown."


class Pictures:
    """Puts pictures into the window of a call."""

    def __init__(self, transcript: Transcript, files: Files) -> None:
        self._transcript = transcript
        self._files = files

    async def shown(self, thread: Thread, window: Sequence[Message], *, patient: bool) -> tuple[Message, ...]:
        """The window, with the last pictures that were read in it.

        Where they can't be had now, a `patient` caller gets ChannelUnavailableError and tries again; any other is told so in their place.
        """
        wanted = [part for message in window for part in message.parts if isinstance(part, ToolResult) and named(part)]
        if not wanted:
            return tuple(window)
        found = {part.call_id: await self._shown(thread, part, patient=patient) for part in wanted[-IMAGES_LIMIT:]}
        return tuple(
            message.model_copy(
                update={
                    "parts": tuple(
                        found.get(part.call_id, part) if isinstance(part, ToolResult) else part
                        for part in message.parts
                    )
                }
            )
            for message in window
        )

    async def _shown(self, thread: Thread, result: ToolResult, *, patient: bool) -> ToolResult:
        file = await self._transcript.file(thread, named(result))
        try:
            image = None if file is None else await self._fetched(thread.tenant, file)
        except FileUnreadableError:
            image = None
        except ChannelUnavailableError:
            if patient:
                raise
            image = None
        if image is None:
            return result.model_copy(update={"content": f"{result.content}\n{UNSHOWN}"})
        return result.model_copy(update={"image": image})

    async def _fetched(self, tenant: str, file: File) -> Image | None:
        data = bytearray()
        async with self._files.open(tenant, file) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > BYTES_LIMIT:
                    return None
        return image_of(bytes(data))


def image_of(data: bytes) -> Image | None:
    """A picture, by what its bytes are and not by what it is called; None if it is of no kind that models take."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return Image(media_type="image/png", data=data)
    if data.startswith(b"\xff\xd8\xff"):
        return Image(media_type="image/jpeg", data=data)
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return Image(media_type="image/gif", data=data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Image(media_type="image/webp", data=data)
    return None


def named(result: ToolResult) -> str:
    """The file whose picture a result speaks of, or nothing. Only `read_file` tells of such."""
    if result.name != "read_file" or result.is_error:
        return ""
    try:
        told = from_json(result.content)
    except ValueError:
        return ""
    return str(told.get(PICTURE) or "") if isinstance(told, dict) else ""
