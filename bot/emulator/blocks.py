"""Block Kit's limits, reported as Slack does: one line per fault, ending in a JSON pointer.

Limits from docs.slack.dev/reference/block-kit; those of 2026's tables and charts from the same place.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from bot.emulator.errors import SlackError
from bot.emulator.workspace import Json

MAX_BLOCKS = 50
MAX_PAYLOAD_CHARS = 13_200
MAX_MARKDOWN_CHARS = 12_000

Faults = Iterator[tuple[str, str]]


def check_blocks(blocks: Any, *, limit: int = MAX_BLOCKS) -> list[Json]:
    """`blocks` if Slack would take them.

    Raises:
        SlackError: invalid_blocks_format, invalid_blocks with pointers, or msg_blocks_too_long.

    """
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SlackError("invalid_blocks_format")
    found = [f"[ERROR] {text} [json-pointer:{where}]" for where, text in _faults(blocks, limit)]
    if found:
        raise SlackError("invalid_blocks", response_metadata={"messages": found})
    if _text_size(blocks) > MAX_PAYLOAD_CHARS:
        raise SlackError("msg_blocks_too_long")
    return blocks


def _text_size(blocks: list[Json]) -> int:
    """Tables and charts have totals of their own and do not count."""
    counted = [block for block in blocks if block["type"] not in {"table", "data_table", "data_visualization"}]
    return len(json.dumps(counted, ensure_ascii=False)) if counted else 0


def _faults(blocks: list[Json], limit: int) -> Faults:
    if len(blocks) > limit:
        yield "/blocks", f"no more than {limit} items allowed"
    if sum(len(str(b.get("text", ""))) for b in blocks if b.get("type") == "markdown") > MAX_MARKDOWN_CHARS:
        yield "/blocks", f"markdown blocks must have {MAX_MARKDOWN_CHARS} characters or fewer in total"
    if sum(block.get("type") == "data_visualization" for block in blocks) > 2:
        yield "/blocks", "no more than 2 data_visualization blocks allowed"
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        where, kind = f"/blocks/{index}", str(block.get("type", ""))
        if kind not in _CHECKS:
            yield f"{where}/type", f"unsupported type: {kind}" if kind else "missing required field: type"
            continue
        yield from _text(f"{where}/block_id", block.get("block_id", ""), 255, least=0)
        if block.get("block_id") and block["block_id"] in seen:
            yield f"{where}/block_id", f"`block_id` {block['block_id']} already exists for another block"
        seen.add(str(block.get("block_id", "")))
        yield from _CHECKS[kind](block, where)


def _text(where: str, value: Any, most: int, least: int = 1) -> Faults:
    if not isinstance(value, str):
        yield where, "must be a string"
    elif len(value) > most:
        yield where, f"must be less than {most + 1} characters"
    elif len(value) < least:
        yield where, f"must be more than {least - 1} characters"


def _text_object(where: str, value: Any, most: int, *, plain: bool = False) -> Faults:
    if not isinstance(value, dict):
        yield where, "missing required field: text" if value is None else "must provide an object"
        return
    allowed = {"plain_text"} if plain else {"plain_text", "mrkdwn"}
    if value.get("type") not in allowed:
        yield f"{where}/type", f"must be one of: {', '.join(sorted(allowed))}"
    yield from _text(f"{where}/text", value.get("text"), most)


def _items(where: str, value: Any, most: int, least: int = 1) -> Faults:
    if not isinstance(value, list):
        yield where, "must provide an array"
    elif len(value) > most:
        yield where, f"no more than {most} items allowed"
    elif len(value) < least:
        yield where, f"no fewer than {least} items allowed"


def _section(block: Json, where: str) -> Faults:
    fields = block.get("fields")
    if block.get("text") is not None or fields is None:
        yield from _text_object(f"{where}/text", block.get("text"), 3000)
    if fields is not None:
        yield from _items(f"{where}/fields", fields, 10)
        for index, field in enumerate(fields if isinstance(fields, list) else ()):
            yield from _text_object(f"{where}/fields/{index}", field, 2000)
    if block.get("accessory") is not None:
        yield from _element(block["accessory"], f"{where}/accessory")


def _header(block: Json, where: str) -> Faults:
    yield from _text_object(f"{where}/text", block.get("text"), 150, plain=True)


def _markdown(block: Json, where: str) -> Faults:
    yield from _text(f"{where}/text", block.get("text"), MAX_MARKDOWN_CHARS)


def _image(block: Json, where: str) -> Faults:
    if not (block.get("image_url") or block.get("slack_file")):
        yield f"{where}/image_url", "missing required field: image_url"
    yield from _text(f"{where}/alt_text", block.get("alt_text"), 2000)


def _elements(most: int) -> Callable[[Json, str], Faults]:
    def check(block: Json, where: str) -> Faults:
        yield from _items(f"{where}/elements", block.get("elements"), most)
        ids = [element.get("action_id") for element in _dicts(block.get("elements")) if element.get("action_id")]
        if len(ids) != len(set(ids)):
            yield f"{where}/elements", "`action_id` must be unique within a block"
        for index, element in enumerate(_dicts(block.get("elements"))):
            yield from _element(element, f"{where}/elements/{index}")

    return check


def _context(block: Json, where: str) -> Faults:
    yield from _items(f"{where}/elements", block.get("elements"), 10)
    for index, element in enumerate(_dicts(block.get("elements"))):
        if element.get("type") != "image":
            yield from _text_object(f"{where}/elements/{index}", element, 2000)


def _element(element: Any, where: str) -> Faults:
    if not isinstance(element, dict) or not element.get("type"):
        yield f"{where}/type", "missing required field: type"
        return
    yield from _text(f"{where}/action_id", element.get("action_id", ""), 255, least=0)
    if element["type"] == "button":
        yield from _text_object(f"{where}/text", element.get("text"), 75, plain=True)
        yield from _text(f"{where}/value", element.get("value", ""), 2000, least=0)
        if element.get("style", "primary") not in {"primary", "danger"}:
            yield f"{where}/style", "must be one of: primary, danger"
    for index, option in enumerate(_dicts(element.get("options"))):
        yield from _text_object(f"{where}/options/{index}/text", option.get("text"), 75)
        yield from _text(f"{where}/options/{index}/value", option.get("value"), 150)
    if "options" in element:
        yield from _items(f"{where}/options", element["options"], 100)


def _rows(block: Json, where: str, *, most: int, least: int, chars: int) -> Faults:
    rows = block.get("rows")
    yield from _items(f"{where}/rows", rows, most, least)
    lines = [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
    if len({len(row) for row in lines}) > 1:
        yield f"{where}/rows", "all rows must have the same number of cells"
    for index, row in enumerate(lines):
        yield from _items(f"{where}/rows/{index}", row, 20)
        for column, cell in enumerate(row):
            yield from _cell(cell, f"{where}/rows/{index}/{column}")
    if _cell_chars(lines) > chars:
        yield f"{where}/rows", f"must have {chars} characters or fewer in total"


def _cell(cell: Any, where: str) -> Faults:
    kind = cell.get("type") if isinstance(cell, dict) else None
    if kind not in {"raw_text", "raw_number", "rich_text"}:
        yield f"{where}/type", "must be one of: raw_text, raw_number, rich_text"
    elif kind == "raw_text":
        yield from _text(f"{where}/text", cell.get("text"), 10_000)
    elif kind == "raw_number" and not _number(cell.get("value")):
        yield f"{where}/value", "must be a number"


def _cell_chars(lines: list[list[Any]]) -> int:
    return sum(len(str(cell.get("text", ""))) for line in lines for cell in line if isinstance(cell, dict))


def _table(block: Json, where: str) -> Faults:
    yield from _rows(block, where, most=100, least=1, chars=10_000)


def _data_table(block: Json, where: str) -> Faults:
    yield from _text(f"{where}/caption", block.get("caption"), 255)
    yield from _rows(block, where, most=201, least=2, chars=20_000)
    size = block.get("page_size", 5)
    if not isinstance(size, int) or not 1 <= size <= 100:
        yield f"{where}/page_size", "must be between 1 and 100"
    header = block["rows"][0] if isinstance(block.get("rows"), list) and block["rows"] else []
    if any(isinstance(cell, dict) and cell.get("type") == "rich_text" for cell in header):
        yield f"{where}/rows/0", "a header cell may not be rich_text"


def _chart(block: Json, where: str) -> Faults:
    yield from _text(f"{where}/title", block.get("title"), 50)
    chart: Json = block["chart"] if isinstance(block.get("chart"), dict) else {}
    kind = chart.get("type")
    if kind == "pie":
        yield from _points(chart.get("segments"), f"{where}/chart/segments", 12)
    elif kind in {"bar", "line", "area"}:
        yield from _series(chart, f"{where}/chart")
    else:
        yield f"{where}/chart/type", "must be one of: area, bar, line, pie"


def _series(chart: Json, where: str) -> Faults:
    axis = chart.get("axis_config")
    categories = axis.get("categories") if isinstance(axis, dict) else None
    yield from _items(f"{where}/axis_config/categories", categories, 20)
    yield from _items(f"{where}/series", chart.get("series"), 12)
    names = [entry.get("name") for entry in _dicts(chart.get("series"))]
    if len(names) != len(set(map(str, names))):
        yield f"{where}/series", "series names must be unique"
    for index, entry in enumerate(_dicts(chart.get("series"))):
        yield from _text(f"{where}/series/{index}/name", entry.get("name"), 20)
        yield from _points(entry.get("data"), f"{where}/series/{index}/data", 20)
        if [point.get("label") for point in _dicts(entry.get("data"))] != categories:
            yield f"{where}/series/{index}/data", "labels must match axis_config.categories"


def _points(points: Any, where: str, most: int) -> Faults:
    yield from _items(where, points, most)
    for index, point in enumerate(_dicts(points)):
        yield from _text(f"{where}/{index}/label", point.get("label"), 20)
        if not _number(point.get("value")):
            yield f"{where}/{index}/value", "must be a number"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _dicts(value: Any) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _anything(block: Json, where: str) -> Faults:
    yield from ()


_CHECKS: dict[str, Callable[[Json, str], Faults]] = {
    "actions": _elements(25),
    "context": _context,
    "context_actions": _elements(5),
    "data_table": _data_table,
    "data_visualization": _chart,
    "header": _header,
    "image": _image,
    "markdown": _markdown,
    "section": _section,
    "table": _table,
    **dict.fromkeys(
        (
            "alert",
            "card",
            "carousel",
            "container",
            "divider",
            "file",
            "input",
            "plan",
            "rich_text",
            "task_card",
            "video",
        ),
        _anything,
    ),
}
