"""Block Kit's limits, reported as Slack does: one line per fault, ending in a JSON pointer.

Limits from docs.slack.dev/reference/block-kit; those of 2026's tables and charts from the same place.
"""

import json
from collections.abc import Callable
from typing import Any

from bot.emulator.datasets import TABLES, chart_faults, data_table_faults, table_faults, tables_faults
from bot.emulator.errors import SlackError
from bot.emulator.fields import Faults, dicts, item_faults, text_faults, text_object_faults
from bot.emulator.workspace import Json

MAX_BLOCKS = 50
MAX_PAYLOAD_CHARS = 13_200
MAX_MARKDOWN_CHARS = 12_000


def check_blocks(blocks: Any, *, limit: int = MAX_BLOCKS) -> list[Json]:
    """`blocks` if Slack would take them.

    Raises:
        SlackError: invalid_blocks_format, invalid_blocks with pointers, or msg_blocks_too_long.

    """
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SlackError("invalid_blocks_format")
    found = [f"[ERROR] {text} [json-pointer:{where}]" for where, text in block_faults(blocks, limit)]
    if found:
        raise SlackError("invalid_blocks", response_metadata={"messages": found})
    if _text_size(blocks) > MAX_PAYLOAD_CHARS:
        raise SlackError("msg_blocks_too_long")
    return blocks


def _text_size(blocks: list[Json]) -> int:
    """Tables and charts have totals of their own and do not count."""
    counted = [block for block in blocks if block["type"] not in TABLES | {"data_visualization"}]
    return len(json.dumps(counted, ensure_ascii=False)) if counted else 0


def block_faults(blocks: list[Json], limit: int) -> Faults:
    """What is wrong with blocks: pairs of a JSON pointer and a sentence."""
    if len(blocks) > limit:
        yield "/blocks", f"no more than {limit} items allowed"
    if sum(len(str(b.get("text", ""))) for b in blocks if b.get("type") == "markdown") > MAX_MARKDOWN_CHARS:
        yield "/blocks", f"markdown blocks must have {MAX_MARKDOWN_CHARS} characters or fewer in total"
    if sum(block.get("type") == "data_visualization" for block in blocks) > 2:
        yield "/blocks", "no more than 2 data_visualization blocks allowed"
    yield from tables_faults(blocks)
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        where, kind = f"/blocks/{index}", str(block.get("type", ""))
        if kind not in _CHECKS:
            yield f"{where}/type", f"unsupported type: {kind}" if kind else "missing required field: type"
            continue
        yield from text_faults(f"{where}/block_id", block.get("block_id", ""), 255, least=0)
        if block.get("block_id") and str(block["block_id"]) in seen:
            yield f"{where}/block_id", f"`block_id` {block['block_id']} already exists for another block"
        seen.add(str(block.get("block_id", "")))
        yield from _CHECKS[kind](block, where)


def _section(block: Json, where: str) -> Faults:
    fields = block.get("fields")
    if block.get("text") is not None or fields is None:
        yield from text_object_faults(f"{where}/text", block.get("text"), 3000)
    if fields is not None:
        yield from item_faults(f"{where}/fields", fields, 10)
        for index, field in enumerate(fields if isinstance(fields, list) else ()):
            yield from text_object_faults(f"{where}/fields/{index}", field, 2000)
    if block.get("accessory") is not None:
        yield from _element(block["accessory"], f"{where}/accessory")


def _header(block: Json, where: str) -> Faults:
    yield from text_object_faults(f"{where}/text", block.get("text"), 150, plain=True)


def _markdown(block: Json, where: str) -> Faults:
    yield from text_faults(f"{where}/text", block.get("text"), MAX_MARKDOWN_CHARS)


def _image(block: Json, where: str) -> Faults:
    if not (block.get("image_url") or block.get("slack_file")):
        yield f"{where}/image_url", "missing required field: image_url"
    yield from text_faults(f"{where}/alt_text", block.get("alt_text"), 2000)


def _elements(most: int) -> Callable[[Json, str], Faults]:
    def check(block: Json, where: str) -> Faults:
        yield from item_faults(f"{where}/elements", block.get("elements"), most)
        ids = [str(element["action_id"]) for element in dicts(block.get("elements")) if element.get("action_id")]
        if len(ids) != len(set(ids)):
            yield f"{where}/elements", "`action_id` must be unique within a block"
        for index, element in enumerate(dicts(block.get("elements"))):
            yield from _element(element, f"{where}/elements/{index}")

    return check


def _context(block: Json, where: str) -> Faults:
    yield from item_faults(f"{where}/elements", block.get("elements"), 10)
    for index, element in enumerate(dicts(block.get("elements"))):
        if element.get("type") != "image":
            yield from text_object_faults(f"{where}/elements/{index}", element, 2000)


def _element(element: Any, where: str) -> Faults:
    if not isinstance(element, dict) or not element.get("type"):
        yield f"{where}/type", "missing required field: type"
        return
    yield from text_faults(f"{where}/action_id", element.get("action_id", ""), 255, least=0)
    if element["type"] == "button":
        yield from text_object_faults(f"{where}/text", element.get("text"), 75, plain=True)
        yield from text_faults(f"{where}/value", element.get("value", ""), 2000, least=0)
        if str(element.get("style", "primary")) not in {"primary", "danger"}:
            yield f"{where}/style", "must be one of: primary, danger"
    for index, option in enumerate(dicts(element.get("options"))):
        yield from text_object_faults(f"{where}/options/{index}/text", option.get("text"), 75)
        yield from text_faults(f"{where}/options/{index}/value", option.get("value"), 150)
    if element.get("placeholder") is not None:
        yield from text_object_faults(f"{where}/placeholder", element["placeholder"], 150, plain=True)
    if "options" in element:
        yield from item_faults(f"{where}/options", element["options"], 100)


def _input(block: Json, where: str) -> Faults:
    yield from text_object_faults(f"{where}/label", block.get("label"), 2000, plain=True)
    if block.get("hint") is not None:
        yield from text_object_faults(f"{where}/hint", block["hint"], 2000, plain=True)
    yield from _element(block.get("element"), f"{where}/element")


def _anything(block: Json, where: str) -> Faults:
    yield from ()


_CHECKS: dict[str, Callable[[Json, str], Faults]] = {
    "actions": _elements(25),
    "context": _context,
    "context_actions": _elements(5),
    "data_table": data_table_faults,
    "data_visualization": chart_faults,
    "header": _header,
    "image": _image,
    "input": _input,
    "markdown": _markdown,
    "section": _section,
    "table": table_faults,
    **dict.fromkeys(
        (
            "alert",
            "card",
            "carousel",
            "container",
            "divider",
            "file",
            "plan",
            "rich_text",
            "task_card",
            "video",
        ),
        _anything,
    ),
}
