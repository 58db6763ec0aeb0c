"""Limits of views: modals and the Home tab (docs.slack.dev/reference/views)."""

import json
from typing import Any

from bot.emulator.blocks import block_faults
from bot.emulator.errors import SlackError
from bot.emulator.fields import Faults, dicts, text_faults, text_object_faults
from bot.emulator.workspace import Json

MAX_VIEW_BYTES = 250_000
MAX_VIEW_BLOCKS = 100


def check_view(view: Any, *, kind: str, refusal: str = "invalid_arguments") -> Json:
    """`view` if Slack would take it as a `kind`, "modal" or "home"; either of them when `kind` is empty.

    Raises:
        SlackError: view_too_large, or `refusal` with pointers.

    """
    if not isinstance(view, dict):
        raise SlackError(
            refusal, response_metadata={"messages": ["[ERROR] must provide an object [json-pointer:/view]"]}
        )
    if len(json.dumps(view)) > MAX_VIEW_BYTES:
        raise SlackError("view_too_large")
    found = [f"[ERROR] {text} [json-pointer:/view{where}]" for where, text in _faults(view, kind)]
    if found:
        raise SlackError(refusal, response_metadata={"messages": found})
    return view


def _faults(view: Json, kind: str) -> Faults:
    if view.get("type") not in ({kind} if kind else {"modal", "home"}):
        yield "/type", f"must be one of: {kind or 'modal, home'}"
    if view.get("type") == "modal":
        yield from _modal(view)
    yield from text_faults("/callback_id", view.get("callback_id", ""), 255, least=0)
    yield from text_faults("/private_metadata", view.get("private_metadata", ""), 3000, least=0)
    blocks = view.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        yield "/blocks", "missing required field: blocks" if blocks is None else "must provide an array of blocks"
        return
    yield from block_faults(blocks, MAX_VIEW_BLOCKS)


def _modal(view: Json) -> Faults:
    yield from text_object_faults("/title", view.get("title"), 24, plain=True)
    for name in ("submit", "close"):
        if view.get(name) is not None:
            yield from text_object_faults(f"/{name}", view[name], 24, plain=True)
    blocks = view.get("blocks")
    asks = any(block.get("type") == "input" for block in dicts(blocks))
    if asks and view.get("submit") is None:
        yield "/submit", "is required when an input block is in the blocks array"
