"""Modal views: the blocks they are made of, and what was filled in."""

from typing import Any

View = dict[str, Any]
Block = dict[str, Any]
NOTE = "note"
"""The block in which a form that is shown again says why."""


def modal(
    callback_id: str, title: str, blocks: list[Block], *, submit: str, close: str = "Cancel", metadata: str = ""
) -> View:
    """A dialog; `title`, `submit` and `close` have 24 characters at most (Slack's views.open)."""
    return {
        "type": "modal",
        "callback_id": callback_id,
        "title": _plain(title[:24]),
        "submit": _plain(submit[:24]),
        "close": _plain(close[:24]),
        "private_metadata": metadata,
        "blocks": blocks,
    }


def notice(title: str, text: str) -> View:
    """A dialog that only tells something."""
    return {"type": "modal", "title": _plain(title[:24]), "close": _plain("Close"), "blocks": [words(text)]}


def refilled(view: View, note: str) -> View:
    """A form that was submitted, to be shown again as it was filled in, below what there is to say about it."""
    kept = ("type", "callback_id", "title", "submit", "close", "private_metadata")
    given = view.get("blocks")
    blocks = [
        each
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict) and each.get("block_id") != NOTE
    ]
    said = {**words(note), "block_id": NOTE}
    return {
        **{name: view[name] for name in kept if name in view},
        "blocks": [said, *(_filled(view, each) for each in blocks)],
    }


def _filled(view: View, block: Block) -> Block:
    """An input with what was filled in as its first value."""
    element = block.get("element")
    if block.get("type") != "input" or not isinstance(element, dict):
        return block
    state = _state(view, str(block.get("block_id")), str(element.get("action_id")))
    first = {"initial_value": state.get("value"), "initial_users": state.get("selected_users")}
    bare = {name: value for name, value in element.items() if name not in first}
    return {**block, "element": {**bare, **{name: value for name, value in first.items() if value}}}


def words(text: str) -> Block:
    """A paragraph of mrkdwn."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def text_input(
    block_id: str, label: str, *, initial: str = "", hint: str = "", limit: int = 3000, many_lines: bool = False
) -> Block:
    """A field for text that may be left empty."""
    element: Block = {"type": "plain_text_input", "action_id": "value", "multiline": many_lines, "max_length": limit}
    if initial:
        element["initial_value"] = initial
    return _input(block_id, label, element, hint)


def people_input(block_id: str, label: str, *, initial: tuple[str, ...] = (), hint: str = "") -> Block:
    """A field for people that may be left empty."""
    element: Block = {"type": "multi_users_select", "action_id": "value"}
    if initial:
        element["initial_users"] = list(initial)
    return _input(block_id, label, element, hint)


def text_of(view: View, block_id: str) -> str:
    """What was filled into a text field."""
    return str(_state(view, block_id).get("value") or "").strip()


def people_of(view: View, block_id: str) -> tuple[str, ...]:
    """Who was chosen, each once."""
    chosen = _state(view, block_id).get("selected_users")
    return tuple(dict.fromkeys(map(str, chosen))) if isinstance(chosen, list) else ()


def _state(view: View, block_id: str, action_id: str = "value") -> dict[str, Any]:
    """What was filled into a field; nothing where the view is none of Slack's."""
    found: Any = view
    for name in ("state", "values", block_id, action_id):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _input(block_id: str, label: str, element: Block, hint: str) -> Block:
    block = {"type": "input", "block_id": block_id, "optional": True, "label": _plain(label), "element": element}
    return {**block, "hint": _plain(hint)} if hint else block


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text}
