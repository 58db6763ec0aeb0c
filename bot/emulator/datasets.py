"""Limits of the blocks that carry data: tables and charts."""

from typing import Any

from bot.emulator.fields import Faults, dicts, is_number, item_faults, text_faults
from bot.emulator.workspace import Json

TABLES = frozenset({"table", "data_table"})
CELL = {"raw_text", "raw_number", "rich_text"}
INLINE = {"text", "link", "user", "channel", "usergroup", "emoji", "date", "color", "broadcast"}


def tables_faults(blocks: list[Json]) -> Faults:
    """A message shows one table, of either kind (slackapi's own Block Kit guidance; the reference is silent about `data_table`)."""
    if sum(str(block.get("type")) in TABLES for block in blocks) > 1:
        yield "/blocks", "only_one_table_allowed"


def _rows(block: Json, where: str, *, most: int, least: int, chars: int) -> Faults:
    rows = block.get("rows")
    yield from item_faults(f"{where}/rows", rows, most, least)
    lines = [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
    if len({len(row) for row in lines}) > 1:
        yield f"{where}/rows", "all rows must have the same number of cells"
    for index, row in enumerate(lines):
        yield from item_faults(f"{where}/rows/{index}", row, 20)
        for column, cell in enumerate(row):
            yield from _cell(cell, f"{where}/rows/{index}/{column}")
    if _cell_chars(lines) > chars:
        yield f"{where}/rows", f"must have {chars} characters or fewer in total"


def _cell(cell: Any, where: str) -> Faults:
    kind = str(cell.get("type")) if isinstance(cell, dict) else ""
    if kind not in CELL:
        yield f"{where}/type", "must be one of: raw_text, raw_number, rich_text"
    elif kind == "raw_text":
        yield from text_faults(f"{where}/text", cell.get("text"), 10_000)
    elif kind == "raw_number" and not is_number(cell.get("value")):
        yield f"{where}/value", "must be a number"
    elif kind == "rich_text":
        yield from _rich_faults(cell, where)


def _rich_faults(cell: Json, where: str) -> Faults:
    yield from item_faults(f"{where}/elements", cell.get("elements"), 100)
    for number, part in enumerate(dicts(cell.get("elements"))):
        yield from item_faults(f"{where}/elements/{number}/elements", part.get("elements"), 10_000)
        for index, each in enumerate(dicts(part.get("elements"))):
            at = f"{where}/elements/{number}/elements/{index}"
            if each.get("type") not in INLINE:
                yield f"{at}/type", f"must be one of: {', '.join(sorted(INLINE))}"
            if each.get("type") == "text":
                yield from text_faults(f"{at}/text", each.get("text"), 10_000)
            if each.get("type") == "link":
                yield from text_faults(f"{at}/url", each.get("url"), 3_000)


def _cell_chars(lines: list[list[Any]]) -> int:
    return sum(_chars(cell) for line in lines for cell in line)


def _chars(part: Any) -> int:
    """Characters of a cell, whatever it is made of; addresses count, too."""
    if not isinstance(part, dict):
        return 0
    own = sum(len(str(part.get(name, ""))) for name in ("text", "url", "user_id", "channel_id"))
    return own + sum(map(_chars, dicts(part.get("elements"))))


def table_faults(block: Json, where: str) -> Faults:
    yield from _rows(block, where, most=100, least=1, chars=10_000)


def data_table_faults(block: Json, where: str) -> Faults:
    yield from text_faults(f"{where}/caption", block.get("caption"), 255)
    yield from _rows(block, where, most=201, least=2, chars=20_000)
    size = block.get("page_size", 5)
    if not isinstance(size, int) or not 1 <= size <= 100:
        yield f"{where}/page_size", "must be between 1 and 100"
    rows = block.get("rows")
    header = rows[0] if isinstance(rows, list) and rows else []
    if any(cell.get("type") == "rich_text" for cell in dicts(header)):
        yield f"{where}/rows/0", "a header cell may not be rich_text"


def chart_faults(block: Json, where: str) -> Faults:
    yield from text_faults(f"{where}/title", block.get("title"), 50)
    chart: Json = block["chart"] if isinstance(block.get("chart"), dict) else {}
    kind = str(chart.get("type"))
    if kind == "pie":
        yield from _points(chart.get("segments"), f"{where}/chart/segments", 12)
    elif kind in {"bar", "line", "area"}:
        yield from _series(chart, f"{where}/chart")
    else:
        yield f"{where}/chart/type", "must be one of: area, bar, line, pie"


def _series(chart: Json, where: str) -> Faults:
    axis = chart.get("axis_config")
    categories = axis.get("categories") if isinstance(axis, dict) else None
    yield from item_faults(f"{where}/axis_config/categories", categories, 20)
    yield from item_faults(f"{where}/series", chart.get("series"), 12)
    names = [str(entry.get("name")) for entry in dicts(chart.get("series"))]
    if len(names) != len(set(names)):
        yield f"{where}/series", "series names must be unique"
    for index, entry in enumerate(dicts(chart.get("series"))):
        yield from text_faults(f"{where}/series/{index}/name", entry.get("name"), 20)
        yield from _points(entry.get("data"), f"{where}/series/{index}/data", 20)
        if [point.get("label") for point in dicts(entry.get("data"))] != categories:
            yield f"{where}/series/{index}/data", "labels must match axis_config.categories"


def _points(points: Any, where: str, most: int) -> Faults:
    yield from item_faults(where, points, most)
    for index, point in enumerate(dicts(points)):
        yield from text_faults(f"{where}/{index}/label", point.get("label"), 20)
        if not is_number(point.get("value")):
            yield f"{where}/{index}/value", "must be a number"
