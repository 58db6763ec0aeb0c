"""The tables in Markdown: where they stand between the words, and what is in their cells.

A parser says where a table is, because lines with bars in code, quotes or lists are none of ours; everything else is left as it was written.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent.reports.document import Number
from bot.render.tables import CELLS_LIMIT, COLUMNS_LIMIT, ROWS_LIMIT, Cell, Rich, Row, size, words
from bot.render.text import escaped

DIGITS = 15
"""More of them are an id and no number."""
SOURCE_LIMIT = 27_000
"""Characters of a table as it was written, escaped: with the words beside it it still fits into a message's text of 40,000."""
GAPS = frozenset({"", "-", "\u2013", "\u2014", "n/a"})
"""What stands in a column of numbers where there is none."""

_BAR = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ENTITY = re.compile(
    r"<@(?P<user>[UW][A-Z0-9]{1,30})(?:\|[^<>]*)?>|<#(?P<channel>[CG][A-Z0-9]{1,30})(?:\|[^<>]*)?>"
    r"|<(?P<url>(?:https?://|mailto:)[^\s<>|]{1,2000})(?:\|(?P<label>[^<>]+))?>|(?P<bare>https?://[^\s<>|]{1,2000})"
)
_NUMBER = re.compile(
    r"(?:[+\-\u2212]?(?:[€$£¥]|[A-Z]{3}[ \u00a0])?|(?:[€$£¥]|[A-Z]{3}[ \u00a0])[+\-\u2212])"
    r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[ \u00a0]?(?:%|[€$£¥]|[A-Z]{3}))?"
)


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
        whole = replace(self, rows=_rows(self.lines), heading=_named(_read(self.heading)))
        portions = list(_portions(whole)) if len(whole.rows[0]) <= COLUMNS_LIMIT else []
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


def _parser() -> MarkdownIt:
    # As Slack reads it: no HTML, and <https://…|label> is an entity of its own.
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["table", "strikethrough"]).disable(["html_inline", "html_block", "autolink"])


_INLINE = _parser()
_BLOCKS = _parser()
_BLOCKS.core.ruler.disable("inline")


def sections(text: str) -> list[str | Grid]:
    """`text` as words and the tables between them, in order. Tables in code, quotes and lists are words."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    found: list[str | Grid] = []
    at = 0
    for start, end, heading in _tables(_BLOCKS.parse(text)):
        found += _said(lines[at:start])
        found.append(Grid(tuple(line for line in lines[start:end] if line.strip()), heading))
        at = end
    return [*found, *_said(lines[at:])] if found else [text]


def fenced_tables(text: str) -> str:
    """`text` with its tables as code, for where Markdown is not shown."""
    return "\n\n".join(each.code if isinstance(each, Grid) else each for each in sections(text))


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


def _rows(lines: Sequence[str]) -> tuple[Row, ...]:
    head, *others = ([*_split(line)] for number, line in enumerate(lines) if number != 1)
    width = max(map(len, (head, *others)))
    rows = [[_read(text) for text in (*row, *[""] * (width - len(row)))] for row in others]
    _as_numbers(rows, width)
    names = tuple(_named(_read(text)) for text in (*head, *[""] * (width - len(head))))
    return (names, *map(tuple, rows))


def _split(line: str) -> Iterator[str]:
    """The cells of a row as they were written; those beyond the head's, too, which the standard would drop."""
    cells = _BAR.split(line.strip())
    if len(cells) > 1 and not cells[0].strip():
        cells = cells[1:]
    if len(cells) > 1 and not cells[-1].strip():
        cells = cells[:-1]
    return (cell.replace("\\|", "|").strip() for cell in cells)


def _read(text: str) -> Cell:
    """What a cell says: words alone where nothing in it is more than that."""
    elements = tuple(_merged(_elements(_INLINE.parseInline(_BREAK.sub("\n", text))[0].children or ())))
    if any(each["type"] != "text" or "style" in each or "\n" in each["text"].strip() for each in elements):
        return Rich(elements)
    return "".join(each["text"] for each in elements).strip()


def _named(cell: Cell) -> str:
    """A cell of the head, which may hold words alone: the address of a link stands beside its name."""
    if not isinstance(cell, Rich):
        return words(cell)
    return " ".join("".join(_spoken(each) for each in cell.elements).split())


def _spoken(element: dict[str, Any]) -> str:
    kind = element["type"]
    if kind == "user":
        return f"<@{element['user_id']}>"
    if kind == "channel":
        return f"<#{element['channel_id']}>"
    text, url = element.get("text", ""), element.get("url", "")
    return f"{text} ({url})" if text and url else text or url


Element = dict[str, Any]
STYLES = {"strong": "bold", "em": "italic", "s": "strike"}


def _elements(tokens: Iterable[Token]) -> Iterator[Element]:
    """Rich text's elements of a parsed line."""
    style: dict[str, bool] = {}
    url, named = "", False
    for token in tokens:
        name = STYLES.get(token.tag)
        if name is not None:
            style = {**style, name: True} if token.nesting > 0 else {each: True for each in style if each != name}
        elif token.type == "link_open":
            url, named = str(token.attrs.get("href", "")), False
        elif token.type == "link_close":
            if not named:
                yield _styled({"type": "link", "url": url}, style)
            url = ""
        elif token.type == "image":
            named = True
            yield from _image(str(token.attrs.get("src", "")), token.content, style)
        elif (text := "\n" if token.type in ("softbreak", "hardbreak") else token.content) and url:
            named = True
            yield _styled({"type": "link", "url": url, "text": text}, _coded(token, style))
        elif text:
            yield from (
                _plain(text, style)
                if token.type == "text"
                else [_styled({"type": "text", "text": text}, _coded(token, style))]
            )


def _plain(text: str, style: dict[str, bool]) -> Iterator[Element]:
    """Words, with the people, channels and addresses that Slack writes into them."""
    at = 0
    for found in _ENTITY.finditer(text):
        if found.start() > at:
            yield _styled({"type": "text", "text": text[at : found.start()]}, style)
        yield _styled(_entity(found), style)
        at = found.end()
    if at < len(text):
        yield _styled({"type": "text", "text": text[at:]}, style)


def _entity(found: re.Match[str]) -> Element:
    if found["user"]:
        return {"type": "user", "user_id": found["user"]}
    if found["channel"]:
        return {"type": "channel", "channel_id": found["channel"]}
    if found["bare"]:
        return {"type": "link", "url": found["bare"]}
    return {"type": "link", "url": found["url"], **({"text": found["label"]} if found["label"] else {})}


def _image(url: str, name: str, style: dict[str, bool]) -> Iterator[Element]:
    """Slack shows none in a table: a link to it."""
    if url:
        yield _styled({"type": "link", "url": url, **({"text": name} if name else {})}, style)
    elif name:
        yield _styled({"type": "text", "text": name}, style)


def _coded(token: Token, style: dict[str, bool]) -> dict[str, bool]:
    return {**style, "code": True} if token.type == "code_inline" else style


def _styled(element: Element, style: dict[str, bool]) -> Element:
    return {**element, "style": style} if style else element


def _merged(elements: Iterable[Element]) -> Iterator[Element]:
    """Neighbours that differ in nothing but their words are one: a parser makes several of them."""
    last: Element | None = None
    for each in elements:
        alike = last is not None and each["type"] == "text" == last["type"] and each.get("style") == last.get("style")
        if last is not None and alike:
            last = {**last, "text": last["text"] + each["text"]}
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _as_numbers(rows: list[list[Cell]], width: int) -> None:
    """A column of nothing but numbers is sorted as such, and stands right; a gap in it is no matter."""
    for column in range(width):
        read = [_number(row[column]) for row in rows]
        filled = [number for row, number in zip(rows, read, strict=True) if words(row[column]) not in GAPS]
        if not filled or None in filled:
            continue
        for row, number in zip(rows, read, strict=True):
            row[column] = number or row[column]


def _number(cell: Cell) -> Number | None:
    """The number that a cell is, `€1,204.50` or `-3.1 %`, emphasised or not; None for anything that might be read otherwise."""
    if isinstance(cell, Rich) and any(each["type"] != "text" for each in cell.elements):
        return None
    text = words(cell).strip()
    if not _NUMBER.fullmatch(text) or sum(map(str.isdigit, text)) > DIGITS:
        return None
    return Number(text=text, value=float(re.sub(r"[^\d.\-]", "", text.replace("\u2212", "-"))))
