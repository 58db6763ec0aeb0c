"""Buttons and menus as HTML; the page turns a click into a `block_actions` payload."""

import html
import json

from bot.emulator.rendering.entities import SAFE_SCHEMES
from bot.emulator.rendering.mrkdwn import mrkdwn_html, plain_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json


def text_html(slack: Slack, text: Json | str | None) -> str:
    """A text object of either kind."""
    if not isinstance(text, dict):
        return plain_html(text or "")
    body = str(text.get("text", ""))
    return mrkdwn_html(slack, body) if text.get("type") == "mrkdwn" else plain_html(body)


def element_html(slack: Slack, element: Json) -> str:
    kind = str(element.get("type"))
    if kind == "button":
        return _button(slack, element)
    if kind == "image":
        return image_html(slack, element)
    if kind in {"static_select", "overflow"}:
        return _menu(slack, element)
    if kind == "feedback_buttons":
        return _feedback(slack, element)
    return f'<span class="unknown">A {html.escape(kind)} element, which this page does not draw</span>'


def image_html(slack: Slack, image: Json) -> str:
    """An image by URL or by file id. A private file of this Slack is shown from the page's own copy."""
    file_id = (image.get("slack_file") or {}).get("id")
    url = f"/_emulator/files/{file_id}" if file_id else str(image.get("image_url", ""))
    if not url.startswith(("https://", "http://", "/_emulator/")):
        return ""
    return f'<img src="{html.escape(url)}" alt="{html.escape(str(image.get("alt_text", "")))}" loading="lazy">'


def _button(slack: Slack, element: Json) -> str:
    style = element.get("style") if element.get("style") in {"primary", "danger"} else ""
    confirm = element.get("confirm")
    data = f' data-confirm="{html.escape(json.dumps(_confirm(confirm)))}"' if isinstance(confirm, dict) else ""
    if str(element.get("url", "")).partition(":")[0] in SAFE_SCHEMES:
        data += f' data-url="{html.escape(str(element["url"]))}"'
    label = text_html(slack, element.get("text"))
    return f'<button type="button" class="block-button {style}"{_action(element)}{data}>{label}</button>'


def _confirm(confirm: Json) -> Json:
    return {key: (confirm.get(key) or {}).get("text", "") for key in ("title", "text", "confirm", "deny")}


def _menu(slack: Slack, element: Json) -> str:
    placeholder = html.escape(str((element.get("placeholder") or {}).get("text") or "Choose…"))
    options = "".join(
        f'<option value="{html.escape(str(option.get("value", "")))}">{text_html(slack, option.get("text"))}</option>'
        for option in element.get("options", [])
    )
    return f'<select class="block-select"{_action(element)} aria-label="{placeholder}"><option value="">{placeholder}</option>{options}</select>'


def _feedback(slack: Slack, element: Json) -> str:
    marks = (("positive_button", "thumb-up", "Good response"), ("negative_button", "thumb-down", "Bad response"))
    return "".join(
        f'<button type="button" class="block-button icon-only"{_action(element)} data-value="{html.escape(str(button.get("value", "")))}"'
        f' title="{html.escape(str((button.get("text") or {}).get("text", "")))}" aria-label="{label}">{icon_html(mark)}</button>'
        for key, mark, label in marks
        if (button := element.get(key))
    )


def icon_html(name: str) -> str:
    """A drawing of page/icons.svg."""
    return f'<svg class="icon" aria-hidden="true"><use href="/page/icons.svg#{name}"/></svg>'


def _action(element: Json) -> str:
    return f' data-action="{html.escape(str(element.get("action_id", "")))}"'
