"""Pictures reach a model that can see: the last few, of bounded size, never stored, and what they say is data."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.messages import MESSAGES
from agent.models.base import (
    Finished,
    Image,
    Message,
    ModelEvent,
    ModelRequest,
    ModelRequestError,
    Text,
    ToolCall,
    ToolResult,
)
from agent.pictures import DAMAGED, IMAGES_LIMIT, REFUSED, UNSHOWN
from tests.agent.test_images import png
from tests.bot.bench import NORTHWIND, Bench
from workflows.storage import Select

PNG = png(64, 48)
BROKEN = PNG[:29] + b"cut off by a bad upload"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, {"THREADLINE_MODEL_SEES": "true"}) as bench:
        yield bench


class Eyes:
    """A model that reads each file it is told of, one a call, then answers."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        shared = [file for message in request.messages for file in message.files]
        done = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
        if len(done) < len(shared):
            call = ToolCall(id=f"c{len(done)}", name="read_file", arguments={"file": shared[len(done)].id})
            yield Finished(message=Message(role="assistant", parts=(call,)), stop="tool_calls")
        else:
            yield Finished(message=Message(role="assistant", parts=(Text(text="I looked."),)), stop="end")


async def looked(bench: Bench, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> list[ToolResult]:
    """The results before the model at its last call."""
    eyes = Eyes()
    monkeypatch.setattr(bench.service.model, "stream", eyes.stream)
    root = await bench.people.post_message("dm:@ada", "@ada", "look", files=files)
    await bench.answer(root, "dm:@ada")
    await bench.idle()
    return [part for message in eyes.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)]


async def unshown_next_time(bench: Bench, eyes: Eyes, root: str) -> None:
    """Asked again, the model is told that the picture is not shown."""
    await bench.people.post_message("dm:@ada", "@ada", "and now?", thread_ts=root)
    await bench.answer(root, "dm:@ada", count=2)
    [result] = [
        part for message in eyes.requests[-1].messages for part in message.parts if isinstance(part, ToolResult)
    ]
    assert result.image is None
    assert UNSHOWN in result.content


async def test_a_picture_is_shown_beside_what_is_said_of_it_and_is_not_stored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    [result] = await looked(bench, monkeypatch, {"chart.png": PNG})
    assert result.image == Image(media_type="image/png", data=PNG)
    assert '"pixels":[64,48]' in result.content
    rows = await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND}))
    assert rows
    assert not any("image" in part for row in rows for part in row["parts"])


async def test_only_the_last_ones_are_shown(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    results = await looked(bench, monkeypatch, {f"{number}.png": PNG for number in range(IMAGES_LIMIT + 2)})
    assert [each.image is not None for each in results] == [False, False] + [True] * IMAGES_LIMIT


@pytest.mark.parametrize(
    "content, told",
    [
        (PNG + b"\0" * 3_600_000, "too large to be looked at"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (90_000).to_bytes(4, "big") * 2 + b"\x08", "too large to be looked at"),
        (b"BM no such thing", "only PNG, JPEG, GIF and WebP"),
    ],
    ids=["bytes", "pixels", "kind"],
)
async def test_what_can_not_be_looked_at_is_said_to_be_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    [result] = await looked(bench, monkeypatch, {"a.png": content})
    assert result.is_error
    assert told in result.content
    assert result.image is None


async def test_a_picture_that_was_deleted_meanwhile_is_said_to_be_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    eyes = Eyes()
    monkeypatch.setattr(bench.service.model, "stream", eyes.stream)
    root = await bench.people.post_message("dm:@ada", "@ada", "look", files={"a.png": PNG})
    await bench.answer(root, "dm:@ada")
    await bench.people.fault("files.info", "error", error="file_deleted", times=9)
    await unshown_next_time(bench, eyes, root)


async def test_while_slack_is_away_the_turn_goes_on_without_the_picture_and_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P14: it is tried again a few times, and looked at with the next message."""
    eyes = Eyes()
    monkeypatch.setattr(bench.service.model, "stream", eyes.stream)
    root = await bench.people.post_message("dm:@ada", "@ada", "look", files={"a.png": PNG})
    await bench.answer(root, "dm:@ada")
    await bench.people.fault("files.info", "http_500", times=99)
    await unshown_next_time(bench, eyes, root)
    assert len(await bench.people.calls("files.info")) > 3


class Picky(Eyes):
    """Its provider refuses any request with a picture that it can't decode, which only a decoder can tell of this one."""

    refused: bytes = png(2, 2, b"no pixels")

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if any(image.data == self.refused for image in images(request)):
            self.requests.append(request)
            raise ModelRequestError("400: could not process image")
        async for event in super().stream(request):
            yield event


def images(request: ModelRequest) -> list[Image]:
    results = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    return [each.image for each in results if each.image is not None]


async def test_a_damaged_picture_is_said_to_be_so_and_never_sent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    [result] = await looked(bench, monkeypatch, {"a.png": BROKEN})
    assert result.image is None
    assert DAMAGED in result.content


async def test_a_picture_that_the_provider_refuses_ends_no_turn_and_is_not_sent_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was taken before stays, and what is said of the other stays too."""
    picky = Picky()
    monkeypatch.setattr(bench.service.model, "stream", picky.stream)
    files = {"good.png": PNG, "bad.png": picky.refused}
    root = await bench.people.post_message("dm:@ada", "@ada", "look", files=files)
    assert "I looked" in (await bench.answer(root, "dm:@ada"))["plain"]
    await bench.idle()
    assert len([each for each in picky.requests if picky.refused in [image.data for image in images(each)]]) == 1
    for count in (2, 3):
        picky.requests.clear()
        await bench.people.post_message("dm:@ada", "@ada", "and now?", thread_ts=root)
        await bench.answer(root, "dm:@ada", count=count)
        await bench.idle()
        [request] = picky.requests
        assert [image.data for image in images(request)] == [PNG]
        told = [part.content for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
        assert [REFUSED in each for each in told] == [False, True]


async def test_a_request_that_is_refused_for_something_else_leaves_the_pictures_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(Eyes):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            if request.messages[-1].role == "tool":
                raise ModelRequestError("400: too many tokens")
            async for event in super().stream(request):
                yield event

    monkeypatch.setattr(bench.service.model, "stream", Refusing().stream)
    root = await bench.people.post_message("dm:@ada", "@ada", "look", files={"good.png": PNG})
    assert "could not take this conversation" in (await bench.answer(root, "dm:@ada"))["plain"]
    await bench.idle()
    rows = await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND, "role": "tool"}))
    assert len(rows) == 1
    assert REFUSED not in str(rows[0]["parts"])
