"""The text of PDF files, taken out by a process of its own: a hostile file may loop, swell or crash it, and nobody else.

That process has no secrets in its environment, an end to its memory and its time, and tells text alone.
"""

import asyncio
import contextlib
import importlib.util
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.unreadable import FileUnreadableError

BYTES_LIMIT = 15 * 1024 * 1024
PAGES_LIMIT = 200
CHARACTERS_LIMIT = 1_000_000
"""Of all pages together."""
MEMORY_LIMIT = 768 * 1024 * 1024
"""Bytes."""
TIME_S = 20.0
MISSING = "PDF files can't be read in this installation: it lacks the extra `files`, which an operator can add; share it as text or CSV"
READER = Path(__file__).with_name("pdf_reader.py")


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of the first pages, and how many there are in all."""

    pages: tuple[str, ...]
    pages_in_all: int

    @property
    def lines(self) -> list[str]:
        """The lines of all pages, each page below a line with its number."""
        return [
            line
            for number, page in enumerate(self.pages, 1)
            for line in (f"[page {number} of {self.pages_in_all}]", *page.splitlines())
        ]


async def pdf_text(pieces: AsyncIterator[bytes], *, time_s: float = TIME_S) -> PdfText:
    """Read a PDF. Raises FileUnreadableError, with words for people, if it can't be."""
    if importlib.util.find_spec("pypdf") is None:
        raise FileUnreadableError(MISSING)
    content = await _whole(pieces)
    told = await _told(content, time_s)
    if "error" in told:
        raise FileUnreadableError(str(told["error"]))
    text = PdfText(tuple(map(str, told["pages"])), int(told["pages_in_all"]))
    if not any(page.strip() for page in text.pages):
        raise FileUnreadableError("there is no text in it; it may be scanned. Share it as text, or say what it shows")
    return text


async def _whole(pieces: AsyncIterator[bytes]) -> bytes:
    content = bytearray()
    async for piece in pieces:
        content += piece
        if len(content) > BYTES_LIMIT:
            raise FileUnreadableError(f"it has more than {BYTES_LIMIT // 1024 // 1024} MB; share the part that matters")
    return bytes(content)


async def _told(content: bytes, time_s: float) -> dict[str, Any]:
    limits = json.dumps(
        {"pages": PAGES_LIMIT, "characters": CHARACTERS_LIMIT, "memory": MEMORY_LIMIT, "time_s": int(time_s) + 1}
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(READER), limits, env={},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(time_s):
            output, _ = await process.communicate(content)
    except TimeoutError:
        raise FileUnreadableError(f"taking its text out took longer than {time_s:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    try:
        return dict(json.loads(output))
    except ValueError:
        return {"error": "it is damaged, or made so that it can't be read"}
