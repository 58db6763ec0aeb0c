"""PDF files: their text is read by a process that a hostile file can't leave, and what can't be read is said to be so."""

import importlib.util
import zlib
from collections.abc import AsyncIterator, Sequence

import pytest

from agent import pdf
from agent.pdf import BYTES_LIMIT, PAGES_LIMIT, pdf_text
from agent.unreadable import FileUnreadableError


def made(pages: Sequence[bytes], *, packed: bool = False, kids: str = "") -> bytes:
    """A PDF with one content stream a page. `kids` replaces the list of its pages."""
    listed = kids or " ".join(f"{number * 2 + 4} 0 R" for number in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{listed}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, content in enumerate(pages):
        font = "/Resources<</Font<</F1 3 0 R>>>>/MediaBox[0 0 600 800]"
        objects.append(f"<</Type/Page/Parent 2 0 R{font}/Contents {number * 2 + 5} 0 R>>".encode())
        way = b"/Filter/FlateDecode" if packed else b""
        objects.append(b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), way, content))
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + table + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(body))


def shown(*lines: str) -> bytes:
    return b"BT /F1 12 Tf 50 700 Td " + b" 0 -14 Td ".join(f"({line}) Tj".encode() for line in lines) + b" ET"


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 65_536):
        yield content[start : start + 65_536]


async def test_the_text_of_every_page_is_read_in_order() -> None:
    text = await pdf_text(pieces(made([shown("Spring Sale", "spend 12"), shown("Brand Search")])))
    assert text.lines == ["[page 1 of 2]", "Spring Sale", "spend 12", "[page 2 of 2]", "Brand Search"]


async def test_only_the_first_pages_of_a_long_one_are_read() -> None:
    text = await pdf_text(pieces(made([shown(f"page {number}") for number in range(PAGES_LIMIT + 7)])))
    assert (len(text.pages), text.pages_in_all) == (PAGES_LIMIT, PAGES_LIMIT + 7)


@pytest.mark.parametrize(
    "content, words",
    [
        (b"%PDF-1.7 and nothing more", "damaged"),
        (b"", "damaged"),
        (b"\x00" * 1000, "damaged"),
        (made([b""]), "there is no text in it"),
        (made([shown("x")], kids="2 0 R 2 0 R"), "damaged|can't be read|no text"),
        (made([zlib.compress(zlib.compress(b"0" * 300_000_000))], packed=True), "no text|damaged|can't be read"),
        (b"%PDF" + b"x" * BYTES_LIMIT, "more than 15 MB"),
    ],
    ids=["cut", "empty", "zeros", "blank", "cycle", "bomb", "large"],
)
async def test_what_can_not_be_read_is_said_to_be_so(content: bytes, words: str) -> None:
    with pytest.raises(FileUnreadableError, match=words):
        await pdf_text(pieces(content))


async def test_one_that_takes_for_ever_is_given_up() -> None:
    endless = made([zlib.compress(b"BT /F1 12 Tf " + b"(x) Tj 1 1 Td " * 3_000_000)], packed=True)
    with pytest.raises(FileUnreadableError, match="took longer"):
        await pdf_text(pieces(endless), time_s=1.0)


async def test_one_that_wants_more_memory_than_it_may_have_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MEMORY_LIMIT", 200 * 1024 * 1024)
    with pytest.raises(FileUnreadableError):
        await pdf_text(pieces(made([zlib.compress(shown("x") + b" " * 400_000_000)], packed=True)))


async def test_without_the_extra_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileUnreadableError, match="lacks the extra `files`"):
        await pdf_text(pieces(made([shown("x")])))
