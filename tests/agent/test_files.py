"""Reading shared files: a page at a time, whatever their size, encoding and name."""

import json
import struct
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.files import BYTES_LIMIT, LINE_LIMIT, PAGE_CHARACTERS, PAGE_LINES, _lines, file_tools, image_size
from agent.messages import Transcript, arrived
from agent.models.base import File, Message, Person
from agent.thread import Thread
from agent.tools import ToolContext, ToolError
from bot.backends import TABLES
from workflows.storage import MemoryStore

THREAD = Thread(tenant="T1", channel="C1", root="100.1")


class Shelf:
    """Files of given bytes, handed out in given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces: Sequence[bytes] = pieces
        self.given = 0

    @asynccontextmanager
    async def open(self, tenant: str, file: File) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._bytes()

    async def _bytes(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            self.given += len(piece)
            yield piece


async def read(
    shelf: Shelf, *, name: str = "a.csv", kind: str = "text/csv", thread: Thread = THREAD, **asked: Any
) -> Any:
    store = MemoryStore(tables=TABLES)
    await store.open()
    file = File(id="F1", name=name, media_type=kind, size=10)
    shared = Message(role="user", parts=(file,), author=Person(id="U1", name="Ada"))
    await store.write(arrived(THREAD, "100.1", shared))
    (tool,) = file_tools(Transcript(store), shelf)

    async def report(text: str) -> None:
        return None

    ctx = ToolContext(thread.tenant, Person(id="U1", name="Ada"), datetime.now(UTC), "k", report, thread)
    try:
        return json.loads(await tool.run({"file": "F1", **asked}, ctx))
    finally:
        await store.close()


@pytest.mark.parametrize(
    "data",
    ["\ufeffa,b\r\n1,ü\r\n".encode(), "a,b\n1,ü".encode(), "a,b\n1,ü".encode("utf-16"), "a,b\n1,ü".encode("cp1252")],
    ids=("utf-8 with a mark", "utf-8", "utf-16", "cp1252"),
)
async def test_text_is_read_in_any_usual_encoding(data: bytes) -> None:
    found = await read(Shelf(*[data[at : at + 3] for at in range(0, len(data), 3)] if data[1:2] != b"\xfe" else [data]))
    assert found["lines"] == ["a,b", "1,ü"]
    assert found["lines_in_all"] == 2


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
async def test_a_line_ends_however_its_maker_ends_lines_and_wherever_a_piece_does(end: str) -> None:
    rows = ["campaign,spend", *(f"row {number},12" for number in range(1_000))]
    data = end.join([*rows, ""]).encode()
    pieces = [
        [data],
        [data[at : at + 1] for at in range(len(data))],
        [data[at : at + 7] for at in range(0, len(data), 7)],
    ]
    for each in pieces:
        assert [line async for line in _lines(_stream(each))] == rows


async def test_an_endless_line_ends_at_its_carriage_return_too() -> None:
    data = [b"x" * (LINE_LIMIT + 5) + b"\r", b"next\r", b"\nlast"]
    assert [line[:4] async for line in _lines(_stream(data))] == ["xxxx", "next", "last"]


async def _stream(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for each in pieces:
        yield each


async def test_a_large_table_is_read_page_by_page_and_keeps_its_head() -> None:
    rows = ["campaign,spend", *(f"c{number},{number}" for number in range(1_000))]
    data = "\n".join(rows).encode()
    first = await read(Shelf(data))
    assert len(first["lines"]) == PAGE_LINES
    second = await read(Shelf(data), line=first["next_line"])
    assert second["lines"][0] == rows[PAGE_LINES]
    assert second["head"] == "campaign,spend"
    last = await read(Shelf(data), line=1_001)
    assert (last["lines"], last["lines_in_all"]) == (["c999,999"], 1_001)


async def test_what_is_too_long_for_a_line_or_a_file_is_cut_or_refused_and_never_held() -> None:
    piece = b"x" * 65_536
    tracemalloc.start()
    found = await read(Shelf(*[piece] * 100, b"\nend"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["lines"][1] == "end"
    assert len(json.dumps(found)) < PAGE_CHARACTERS
    assert peak < 3_000_000
    endless = Shelf(*[piece] * (BYTES_LIMIT // len(piece) + 10))
    with pytest.raises(ToolError, match="more than 25 MB"):
        await read(endless)


async def test_a_page_reads_no_further_than_it_shows() -> None:
    shelf = Shelf(*[b"line\n" * 1_000] * 100)
    await read(shelf)
    assert shelf.given <= 10_000


@pytest.mark.parametrize(
    ("name", "kind", "data", "told"),
    [
        ("a.pdf", "application/pdf", b"%PDF-1.7", "it is damaged, or no PDF"),
        ("a.xlsx", "application/vnd.ms-excel", b"PK", "only text and PDF can be read here"),
        ("a.csv", "text/csv", b"PK\0\0", "it is not text, whatever its name says"),
        ("a.mp4", "video/mp4", b"", "only text and PDF can be read here"),
    ],
)
async def test_what_cannot_be_read_is_said_plainly(name: str, kind: str, data: bytes, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await read(Shelf(data), name=name, kind=kind)


async def test_only_what_was_shared_in_this_thread_is_read() -> None:
    for thread in (THREAD.model_copy(update={"root": "200.1"}), THREAD.model_copy(update={"tenant": "T2"})):
        with pytest.raises(ToolError, match="no file F1 was shared in this conversation"):
            await read(Shelf(b"a"), thread=thread)


async def test_a_line_that_is_not_there_is_said_to_be_so() -> None:
    with pytest.raises(ToolError, match="it has 2 lines, and none at 7"):
        await read(Shelf(b"a\nb\n"), line=7)


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0"
JPEG = b"\xff\xd8\xff\xe0\0\x10" + b"J" * 14 + b"\xff\xc0\0\x11\x08" + struct.pack(">HH", 480, 640) + b"\3" * 10


@pytest.mark.parametrize("data", [PNG, JPEG, b"GIF89a" + struct.pack("<HH", 640, 480)], ids=("png", "jpeg", "gif"))
async def test_an_image_tells_its_size_and_that_it_is_not_looked_at(data: bytes) -> None:
    found = await read(Shelf(data), name="a.png", kind="image/png")
    assert found["pixels"] == [640, 480]
    assert "can't be looked at" in found["note"]


@given(data=st.binary(max_size=200) | st.binary(max_size=100).map(lambda rest: b"\xff\xd8\xff" + rest))
def test_no_bytes_trip_over_the_size_of_an_image(data: bytes) -> None:
    image_size(data)
