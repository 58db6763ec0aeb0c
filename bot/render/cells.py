"""What is in a cell of a Markdown table: words, a number, or Slack's rich text."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent.reports.document import Number
from bot.render.tables import Cell, Rich, words

DIGITS = 15
"""More of them are an id and no number."""
GAPS = frozenset({"", "-", "\u2013", "\u2014", "n/a"})
"""What stands in a column of numbers where there is none."""

Element = dict[str, Any]
STYLES = {"strong": "bold", "em": "italic", "s": "strike"}

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ENTITY = re.compile(
    r"<@(?P<user>[UW][A-Z0-9]{1,30})(?:\|[^<>]*)?>|<#(?P<channel>[CG][A-Z0-9]{1,30})(?:\|[^<>]*)?>"
    r"|<(?P<url>(?:https?://|mailto:)[^\s<>|]{1,2000})(?:\|(?P<label>[^<>]+))?>|(?P<bare>https?://[^\s<>|]{1,2000})"
)
_NUMBER = re.compile(
    r"(?:[+\-\u2212]?(?:[€$£¥]|[A-Z]{3}[ \u00a0])?|(?:[€$£¥]|[A-Z]{3}[ \u00a0])[+\-\u2212])"
    r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[ \u00a0]?(?:%|[€$£¥]|[A-Z]{3}))?"
)


def parser() -> MarkdownIt:
    """Markdown as it is read here, with tables."""
    # As Slack reads it: no HTML, and <https://…|label> is an entity of its own.
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["table", "strikethrough"]).disable(["html_inline", "html_block", "autolink"])


_INLINE = parser()


def read(text: str) -> Cell:
    """What a cell says: words alone where nothing in it is more than that."""
    elements = tuple(_merged(_elements(_INLINE.parseInline(_BREAK.sub("\n", text))[0].children or ())))
    if any(each["type"] != "text" or "style" in each or "\n" in each["text"].strip() for each in elements):
        return Rich(elements)
    return "".join(each["text"] for each in elements).strip()


def named(cell: Cell) -> str:
    """A cell of the head, which may hold words alone: the address of a link stands beside its name."""
    if not isinstance(cell, Rich):
        return words(cell)
    return " ".join("".join(_spoken(each) for each in cell.elements).split())


def _spoken(element: Element) -> str:
    kind = element["type"]
    if kind == "user":
        return f"<@{element['user_id']}>"
    if kind == "channel":
        return f"<#{element['channel_id']}>"
    text, url = element.get("text", ""), element.get("url", "")
    return f"{text} ({url})" if text and url else text or url


def _elements(tokens: Iterable[Token]) -> Iterator[Element]:
    """Rich text's elements of a parsed line."""
    style: dict[str, bool] = {}
    url, has_name = "", False
    for token in tokens:
        name = STYLES.get(token.tag)
        if name is not None:
            style = {**style, name: True} if token.nesting > 0 else {each: True for each in style if each != name}
        elif token.type == "link_open":
            url, has_name = str(token.attrs.get("href", "")), False
        elif token.type == "link_close":
            if not has_name:
                yield _styled({"type": "link", "url": url}, style)
            url = ""
        elif token.type == "image":
            has_name = True
            yield from _image(str(token.attrs.get("src", "")), token.content, style)
        elif (text := "\n" if token.type in ("softbreak", "hardbreak") else token.content) and url:
            has_name = True
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


def as_numbers(rows: list[list[Cell]], width: int) -> None:
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
