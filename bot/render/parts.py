"""Long Markdown in parts that Slack takes: fences are closed and reopened, tables get their head again, links and rows stay whole."""

import re
from collections.abc import Iterator

from bot.render.text import MARKDOWN_LIMIT

FENCE = 30
"""Characters of a fence's marker, and of its language, that are carried from one part to the next."""
HEAD_SHARE = 3
"""A table's head is repeated if it takes no more than this fraction of a part."""
ROWS_LIMIT = 100
CELLS_LIMIT = 9_500
"""What Slack shows as a table in one message: rows, and characters of them (10,000, with a margin)."""

TABLE = ("head", "rule", "row")

_FENCE_LINE = re.compile(r" {0,3}(?P<marker>`{3,30}|~{3,30})(?P<info>[^`]*)")
_WHOLE = re.compile(r"!?\[[^\[\]\n]*\]\([^)\s]{0,3000}\)|<[^<>\s]+>|https?://[^\s)>]+|`[^`\n]+`")
"""What a cut must not go through: links, addresses, code in a line."""
_RULE = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


def parts(text: str, limit: int = MARKDOWN_LIMIT) -> list[str]:
    """`text` in pieces of at most `limit` characters, cut between paragraphs, else lines, else words."""
    pieces: list[str] = []
    rest = text.strip("\n") or " "
    opening = ""
    while len(opening) + len(rest) > limit or _rows_end(opening + rest) < len(opening + rest):
        room = min(limit - FENCE - 1, _rows_end(opening + rest)) - len(opening)
        at = _cut(rest, max(room, 1))
        piece = opening + rest[:at].rstrip("\n")
        rest = rest[at:].lstrip("\n")
        marker, opening = _open_fence(piece)
        pieces.append(f"{piece}\n{marker}" if marker else piece)
        opening = opening or _table_head(piece, rest, limit // HEAD_SHARE)
    return [*pieces, opening + rest]


def fenced_tables(text: str) -> str:
    """`text` with its tables as code, for where Markdown is not shown: columns stay readable and pipes are no noise."""
    lines: list[str] = []
    inside = False
    for kind, line in _kinds(text):
        if (kind in TABLE) != inside:
            lines.append("```")
        inside = kind in TABLE
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


def _kinds(text: str) -> Iterator[tuple[str, str]]:
    """Each line with what it is: of a table its head, its rule or a row; of code; or text."""
    lines = text.split("\n")
    marker, table = "", False
    for number, line in enumerate(lines):
        found = _FENCE_LINE.fullmatch(line)
        if marker or found:
            if not marker and found:
                marker = found["marker"]
            elif found and found["marker"].startswith(marker) and not found["info"].strip():
                marker = ""
            table = False
            yield "code", line
        elif table and _is_row(line):
            yield ("rule" if _RULE.fullmatch(line) and "-" in line else "row"), line
        elif (
            _is_row(line)
            and number + 1 < len(lines)
            and _is_row(lines[number + 1])
            and _RULE.fullmatch(lines[number + 1])
        ):
            table = True
            yield "head", line
        else:
            table = False
            yield "text", line


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _rows_end(text: str) -> int:
    """Where the rows end that Slack shows in one message; the end of the text if it shows all."""
    at = rows = size = 0
    for kind, line in _kinds(text):
        if kind in ("head", "row"):
            rows, size = rows + 1, size + len(line)
            # A first row that is too large by itself is no reason: no cut would make it smaller.
            if rows > 2 and (rows > ROWS_LIMIT or size > CELLS_LIMIT) and kind == "row":
                return at
        at += len(line) + 1
    return len(text)


def _cut(text: str, room: int) -> int:
    """Where to cut: at most `room`, between paragraphs, else lines, else words, and through nothing that is whole."""
    whole = [found.span() for found in _WHOLE.finditer(text, 0, min(len(text), 2 * room))]
    row = text.rfind("\n", 0, room) + 1
    if row and _is_row(text[row : row + 80]) and _between(text, row):
        return row
    for separator in ("\n\n", "\n", " "):
        at = text.rfind(separator, room // 2, room)
        while at > 0:
            end = at + len(separator)
            if _between(text, end) and not any(start < end < stop for start, stop in whole):
                return end
            at = text.rfind(separator, room // 2, at)
    start = next((start for start, stop in whole if start < room < stop), 0)
    return start or room


def _between(text: str, at: int) -> bool:
    """Whether a cut leaves no table's head alone."""
    before = text[:at].rstrip("\n").rpartition("\n")[2]
    after = text[at:].partition("\n")[0]
    rule = (_is_row(before) and _RULE.fullmatch(before)) or (_is_row(after) and _RULE.fullmatch(after))
    return not rule


def _table_head(piece: str, rest: str, room: int) -> str:
    """The two lines that begin the table which goes on in `rest`; empty if none does."""
    if not _is_row(rest):
        return ""
    lines = piece.split("\n")
    first = len(lines)
    while first and _is_row(lines[first - 1]):
        first -= 1
    rows = lines[first:]
    if len(rows) < 2 or not _RULE.fullmatch(rows[1]):
        return ""
    head = f"{rows[0]}\n{rows[1]}\n"
    return head if len(head) <= room else ""


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
