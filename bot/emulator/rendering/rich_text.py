"""`rich_text` blocks as HTML."""

import html
from collections.abc import Callable

from bot.emulator.rendering.emoji import EMOJI, with_emoji
from bot.emulator.rendering.entities import broadcast_html, channel_html, link_html, user_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

TAGS = {"bold": "strong", "italic": "em", "strike": "s", "code": "code"}


def rich_text_html(slack: Slack, block: Json) -> str:
    return "".join(_part(slack, part) for part in block.get("elements", []))


def _part(slack: Slack, part: Json) -> str:
    elements = part.get("elements", [])
    if part.get("type") == "rich_text_list":
        tag = "ol" if part.get("style") == "ordered" else "ul"
        return f"<{tag}>{''.join(f'<li>{_part(slack, item)}</li>' for item in elements)}</{tag}>"
    inner = "".join(_element(slack, element) for element in elements)
    if part.get("type") == "rich_text_preformatted":
        return f"<pre><code>{inner}</code></pre>"
    return f"<blockquote>{inner}</blockquote>" if part.get("type") == "rich_text_quote" else inner


def _element(slack: Slack, element: Json) -> str:
    render = _ELEMENTS.get(str(element.get("type")))
    inner = render(slack, element) if render else html.escape(str(element.get("text", "")))
    for style, tag in TAGS.items():
        if element.get("style", {}).get(style):
            inner = f"<{tag}>{inner}</{tag}>"
    return inner


def _text(slack: Slack, element: Json) -> str:
    text = str(element.get("text", ""))
    shown = text if element.get("style", {}).get("code") else with_emoji(text)
    return html.escape(shown).replace("\n", "<br>")


_ELEMENTS: dict[str, Callable[[Slack, Json], str]] = {
    "text": _text,
    "user": lambda slack, element: user_html(slack, str(element.get("user_id"))),
    "channel": lambda slack, element: channel_html(slack, str(element.get("channel_id"))),
    "broadcast": lambda slack, element: broadcast_html(str(element.get("range"))),
    "emoji": lambda slack, element: html.escape(EMOJI.get(str(element.get("name")), f":{element.get('name')}:")),
    "link": lambda slack, element: link_html(
        str(element.get("url")), str(element.get("text") or element.get("url")).removeprefix("mailto:")
    ),
}
