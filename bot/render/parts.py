"""Long Markdown in parts that Slack takes: fences are closed and reopened, links and code in a line stay whole."""

import re

from bot.render.text import MARKDOWN_LIMIT

FENCE = 30
"""Characters of a fence's marker, and of its language, that are carried from one part to the next."""

_FENCE_LINE = re.compile(r" {0,3}(?P<marker>`{3,30}|~{3,30})(?P<info>[^`]*)")
_WHOLE = re.compile(r"!?\[[^\[\]\n]*\]\([^)\s]{0,3000}\)|<[^<>\s]+>|https?://[^\s)>]+|`[^`\n]+`")
"""What a cut must not go through: links, addresses, code in a line."""


def parts(text: str, limit: int = MARKDOWN_LIMIT) -> list[str]:
    """`text` in pieces of at most `limit` characters, cut between paragraphs, else lines, else words."""
    pieces: list[str] = []
    rest = text.strip("\n") or " "
    opening = ""
    while len(opening) + len(rest) > limit:
        at = _cut(rest, max(limit - FENCE - 1 - len(opening), 1))
        piece = opening + rest[:at].rstrip("\n")
        rest = rest[at:].lstrip("\n")
        marker, opening = _open_fence(piece)
        pieces.append(f"{piece}\n{marker}" if marker else piece)
    return [*pieces, opening + rest]


def _cut(text: str, room: int) -> int:
    """Where to cut: at most `room`, between paragraphs, else lines, else words, and through nothing that is whole."""
    whole = [found.span() for found in _WHOLE.finditer(text, 0, min(len(text), 2 * room))]
    for separator in ("\n\n", "\n", " "):
        at = text.rfind(separator, room // 2, room)
        while at > 0:
            end = at + len(separator)
            if not any(start < end < stop for start, stop in whole):
                return end
            at = text.rfind(separator, room // 2, at)
    start = next((start for start, stop in whole if start < room < stop), 0)
    return start or room


def _open_fence(text: str) -> tuple[str, str]:
    """The marker of a code fence that `text` leaves open and the line that opens it again; both empty if it leaves none."""
    marker, info = "", ""
    for line in text.splitlines():
        found = _FENCE_LINE.fullmatch(line)
        if found is None:
            continue
        if not marker:
            marker, info = found["marker"], found["info"].strip()
        elif found["marker"].startswith(marker) and not found["info"].strip():
            marker = ""
    return (marker, f"{marker}{info[:FENCE]}\n") if marker else ("", "")
