"""Fields of a dialog as HTML: what an `input` block asks for. The page fills in people, those of the reader's workspace."""

import html
import json
from collections.abc import Callable

from bot.emulator.rendering.elements import text_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

GROUPS = frozenset({"checkboxes", "multi_users_select", "radio_buttons", "users_select"})
"""Elements of several controls: one label element can't stand for them all."""


def input_html(slack: Slack, block: Json) -> str:
    """An `input` block: its label, its field, and its hint below."""
    element = block.get("element") or {}
    kind = str(element.get("type"))
    label = text_html(slack, block.get("label"))
    optional = ' <span class="aside">(optional)</span>' if block.get("optional") else ""
    hint = f'<span class="hint">{text_html(slack, block["hint"])}</span>' if block.get("hint") else ""
    draw = _FIELDS.get(kind)
    field = (
        draw(slack, element)
        if draw
        else f'<span class="unknown">A {_safe(kind)} element, which this page does not draw</span>'
    )
    tag = "fieldset" if kind in GROUPS else "label"
    name = f'<span class="name">{label}{optional}</span>'
    return f'<{tag} class="field" data-block="{_safe(block.get("block_id", ""))}">{name}{field}{hint}</{tag}>'


def _safe(value: object) -> str:
    return html.escape(str(value))


def _name(element: Json) -> str:
    return f'name="{_safe(element.get("action_id", ""))}"'


def _placeholder(element: Json) -> str:
    return _safe((element.get("placeholder") or {}).get("text", ""))


def _text(slack: Slack, element: Json) -> str:
    value, hint = _safe(element.get("initial_value", "")), f'placeholder="{_placeholder(element)}"'
    if element.get("multiline"):
        return f'<textarea {_name(element)} rows="4" {hint}>{value}</textarea>'
    return f'<input {_name(element)} value="{value}" {hint}>'


def _date(slack: Slack, element: Json) -> str:
    return f'<input type="date" {_name(element)} value="{_safe(element.get("initial_date", ""))}">'


def _select(slack: Slack, element: Json) -> str:
    initial = (element.get("initial_option") or {}).get("value")
    options = "".join(
        f'<option value="{_safe(one.get("value", ""))}"{" selected" if one.get("value") == initial else ""}>'
        f"{text_html(slack, one.get('text'))}</option>"
        for one in element.get("options", [])
    )
    return f'<select {_name(element)}><option value="">{_placeholder(element) or "Choose an option"}</option>{options}</select>'


def _choices(slack: Slack, element: Json) -> str:
    kind = "checkbox" if element["type"] == "checkboxes" else "radio"
    given = element.get("initial_options") or [element.get("initial_option") or {}]
    initial = {one.get("value") for one in given}
    return "".join(
        f'<label class="choice-row"><input type="{kind}" {_name(element)} value="{_safe(one.get("value", ""))}"'
        f"{' checked' if one.get('value') in initial else ''}>{text_html(slack, one.get('text'))}</label>"
        for one in element.get("options", [])
    )


def _people(slack: Slack, element: Json) -> str:
    several = element["type"] == "multi_users_select"
    initial = element.get("initial_users", []) if several else [one for one in [element.get("initial_user")] if one]
    most = element.get("max_selected_items", 100) if several else 1
    return (
        f'<div class="people-field" data-name="{_safe(element.get("action_id", ""))}" data-most="{_safe(most)}"'
        f' data-placeholder="{_placeholder(element)}" data-initial="{_safe(json.dumps(initial))}"></div>'
    )


_FIELDS: dict[str, Callable[[Slack, Json], str]] = {
    "checkboxes": _choices,
    "datepicker": _date,
    "multi_users_select": _people,
    "plain_text_input": _text,
    "radio_buttons": _choices,
    "static_select": _select,
    "users_select": _people,
}
