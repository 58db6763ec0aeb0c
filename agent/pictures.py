"""Pictures people share, for models that can see: fetched anew for each call, a few, of bounded size, and never stored."""

from collections.abc import Sequence

from pydantic_core import from_json, to_json

from agent.channel import ChannelUnavailableError
from agent.images import image_of, is_whole
from agent.messages import Transcript, reworded
from agent.models.base import File, Image, Message, ToolResult
from agent.shelf import Files
from agent.thread import Thread
from agent.unreadable import FileUnreadableError
from workflows.storage import Update

IMAGES_LIMIT = 3
"""Of one call of the model: the last that were read."""
BYTES_LIMIT = 3_500_000
"""Of one picture: providers refuse more than 5 MB of base64."""
SIDE_LIMIT = 8_000
"""Pixels."""
PICTURE = "picture"
"""The field of a tool's result that names the file to be shown."""
UNSHOWN = "The picture could not be fetched now, so it is not shown."
DAMAGED = "The picture can't be looked at: the file is damaged."
REFUSED = "The picture can't be looked at: the file is damaged, or of a form that the language model does not take."


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

    async def refused(self, thread: Thread, results: Sequence[ToolResult]) -> list[Update]:
        """What keeps pictures that a provider did not take from being shown again: the transcript says so in their place."""
        rows = await self._transcript.results(thread, {each.call_id for each in results})
        return [reworded(thread, message_id, (unlooked(result),)) for message_id, result in rows.items()]

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
        if image is None or not is_whole(image):
            told = UNSHOWN if image is None else DAMAGED
            return result.model_copy(update={"content": f"{result.content}\n{told}"})
        return result.model_copy(update={"image": image})

    async def _fetched(self, tenant: str, file: File) -> Image | None:
        data = bytearray()
        async with self._files.open(tenant, file) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > BYTES_LIMIT:
                    return None
        return image_of(bytes(data))


def suspects(messages: Sequence[Message]) -> list[ToolResult]:
    """The pictures that a request may have been refused for: those that no call before it has shown, else all."""
    last = max((number for number, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return _with_images(messages[last + 1 :]) or _with_images(messages)


def _with_images(messages: Sequence[Message]) -> list[ToolResult]:
    return [part for each in messages for part in each.parts if isinstance(part, ToolResult) and part.image is not None]


def without(messages: Sequence[Message], refused: Sequence[ToolResult]) -> tuple[Message, ...]:
    """Messages in which some results say in place of their picture that it can't be looked at."""
    gone = {id(each): unlooked(each) for each in refused}
    return tuple(
        message.model_copy(update={"parts": tuple(gone.get(id(part), part) for part in message.parts)})
        for message in messages
    )


def unlooked(result: ToolResult) -> ToolResult:
    """A result whose picture the model's provider did not take. It names no picture any more."""
    told = {name: value for name, value in from_json(result.content).items() if name != PICTURE}
    content = to_json({**told, "note": REFUSED}).decode()
    return result.model_copy(update={"content": content, "image": None})


def named(result: ToolResult) -> str:
    """The file whose picture a result speaks of, or nothing. Only `read_file` tells of such."""
    if result.name != "read_file" or result.is_error:
        return ""
    try:
        told = from_json(result.content)
    except ValueError:
        return ""
    return str(told.get(PICTURE) or "") if isinstance(told, dict) else ""
