"""Run as a script, by `agent.pdf`: a PDF on standard input, the text of its pages as JSON on standard output.

Imports nothing of this project, so that it starts quickly and holds nothing worth stealing.
"""

import contextlib
import io
import json
import logging
import sys
from typing import Any


def limited(memory: int, time_s: int) -> None:
    """An end to memory and processor time, where the system has such."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (time_s, time_s))


def text_of(content: bytes, *, pages: int, characters: int) -> dict[str, Any]:
    """The text of the first pages; `error` in words for people."""
    import pypdf

    logging.disable(logging.CRITICAL)
    reader = pypdf.PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"error": "it is locked with a password; share it without one"}
    texts: list[str] = []
    room = characters
    for number in range(min(len(reader.pages), pages)):
        text = reader.pages[number].extract_text()[:room].encode("utf-8", "replace").decode()
        texts.append(text.replace("\x00", ""))
        room -= len(text)
        if room <= 0:
            break
    return {"pages": texts, "pages_in_all": len(reader.pages)}


def main() -> None:
    """Read, and tell."""
    limits = json.loads(sys.argv[1])
    content = sys.stdin.buffer.read()
    limited(limits["memory"], limits["time_s"])
    try:
        told = text_of(content, pages=limits["pages"], characters=limits["characters"])
    except MemoryError:
        told = {"error": "it needs more memory than a file may have"}
    except Exception as error:
        told = {"error": f"it is damaged, or no PDF: {type(error).__name__}"}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
