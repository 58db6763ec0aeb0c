"""The tables in Markdown: where they stand between the words, and what Slack can show of each.

A parser says where a table is, because lines with bars in code, quotes or lists are none of ours; everything else is left as it was written.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markdown_it.token import Token

from bot.render.cells import as_numbers, named, parser, read
from bot.render.tables import CELLS_LIMIT, COLUMNS_LIMIT, ROWS_LIMIT, Row, size
from bot.render.text import escaped

SOURCE_LIMIT = 27_000
"""Characters of a table as it was written, escaped: with the words beside it it still fits into a message's text of 40,000."""

NARROW = 4
"""Columns of a table that is parsed as it is."""

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r":?-+:?")
_BEGINS = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)*")
"""What may stand before a row: quotes and lists."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `lines`: as it was written, the rule after the head; `heading`: what stands right above it.

    `rows` are what is read in it, the head first and all equally long: those of `portions` have them.
    """

    lines: tuple[str, ...]
    heading: str = ""
    rows: tuple[Row, ...] = ()

    @property
    def source(self) -> str:
        """Its Markdown."""
        return "\n".join(self.lines)

    @property
    def code(self) -> str:
        """Its Markdown as code: columns stay readable where tables are not shown, and bars are no noise."""
        return f"```\n{self.source}\n```"  # no line of a table is a fence: one would have ended it

    def portions(self, most: int) -> list["Grid"]:
        """It in tables that Slack takes, each with the head; none at all if it can be no such table, or would be more than `most`."""
        if not 2 < len(self.lines) <= most * (ROWS_LIMIT - 1) + 2:
            return []
        written = [[*_split(line)] for number, line in enumerate(self.lines) if number != 1]
        if max(map(len, written)) > COLUMNS_LIMIT:  # before a cell is read: all rows become as long as the longest
            return []
        portions = list(_portions(replace(self, rows=_rows(written), heading=named(read(self.heading)))))
        return portions if len(portions) <= most else []


def _portions(whole: Grid) -> Iterator[Grid]:
    head, *rows = whole.rows
    rule, lines = whole.lines[:2], whole.lines[2:]
    empty = _Room(size(head), sum(len(escaped(line)) for line in rule))
    if not all(empty.takes(row, line) for row, line in zip(rows, lines, strict=True)):
        return

    def portion(start: int, end: int) -> Grid:
        return replace(whole, rows=(head, *rows[start:end]), lines=(*rule, *lines[start:end]))

    room, start = empty, 0
    for number, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if not room.takes(row, line):
            yield portion(start, number)
            room, start = empty, number
        room = room.after(row, line)
    yield portion(start, len(rows))


@dataclass(frozen=True, slots=True)
class _Room:
    """What is used up of a table."""

    cells: int
    source: int
    rows: int = 1

    def takes(self, row: Row, line: str) -> bool:
        after = self.after(row, line)
        return after.rows <= ROWS_LIMIT and after.cells <= CELLS_LIMIT and after.source <= SOURCE_LIMIT

    def after(self, row: Row, line: str) -> "_Room":
        return _Room(self.cells + size(row), self.source + len(escaped(line)) + 1, self.rows + 1)


_BLOCKS = parser()
_BLOCKS.core.ruler.disable("inline")


def sections(text: str) -> list[str | Grid]:
    """`text` as words and the tables between them, in order. Tables in code, quotes and lists are words."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    found: list[str | Grid] = []
    at = 0
    for start, end, heading in _tables(_BLOCKS.parse(_narrowed(lines))):
        found += _said(lines[at:start])
        found.append(Grid(tuple(line for line in lines[start:end] if line.strip()), heading))
        at = end
    return [*found, *_said(lines[at:])] if found else [text]


def _narrowed(lines: Sequence[str]) -> str:
    """The text with all wide tables one column wide, on the same lines: a parser makes every row as long as the head, and a few letters millions of cells."""
    narrow = list(lines)
    for number, (head, rule) in enumerate(pairwise(lines)):
        if "|" in head and "|" in rule and _is_rule(_cells(rule)) and len(_cells(head)) == len(_cells(rule)) > NARROW:
            narrow[number : number + 2] = _first(head), _first(rule)
    return "\n".join(narrow)


def _is_rule(cells: Sequence[str]) -> bool:
    return all(map(_RULE.fullmatch, cells))


def _cells(line: str) -> list[str]:
    return [*_split(_BEGINS.sub("", line, count=1))]


def _first(line: str) -> str:
    """A row up to the bar after its first cell."""
    begins, *cells = _BAR.split(line)
    return "|".join([begins, *cells[: not _BEGINS.sub("", begins, count=1)], ""])


def _said(lines: Sequence[str]) -> Iterator[str]:
    """The words between two tables, if there are any; the blank lines around them make no difference."""
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield text


def _tables(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """First line, line after the last, and the heading right above."""
    heading = ""
    for number, token in enumerate(tokens):
        if token.level == 0 and token.type == "table_open" and token.map:
            yield token.map[0], token.map[1], heading
        if token.level == 0 and token.nesting >= 0:
            heading = tokens[number + 1].content if token.type == "heading_open" else ""


def _rows(written: Sequence[Sequence[str]]) -> tuple[Row, ...]:
    """The cells of each row as they are read, the head first, all rows made equally long."""
    width = max(map(len, written))
    head, *rows = ([*map(read, row), *[""] * (width - len(row))] for row in written)
    as_numbers(rows, width)
    return (tuple(map(named, head)), *map(tuple, rows))


def _split(line: str) -> Iterator[str]:
    """The cells of a row as they were written; those beyond the head's, too, which the standard would drop."""
    cells = _BAR.split(line.strip())
    if len(cells) > 1 and not cells[0].strip():
        cells = cells[1:]
    if len(cells) > 1 and not cells[-1].strip():
        cells = cells[:-1]
    return (cell.replace("\\|", "|").strip() for cell in cells)
