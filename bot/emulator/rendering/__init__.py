"""Messages as HTML for the page. Everything a person or the app wrote is escaped on the way."""

import html

from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

__all__ = ["blocks_html", "with_html"]


def blocks_html(slack: Slack, blocks: list[Json]) -> str:
    return "".join(f"<p>{html.escape(str(block))}</p>" for block in blocks)


def with_html(slack: Slack, message: Json) -> Json:
    """`message` with the field `html` added."""
    return {**message, "html": f"<p>{html.escape(message['text'])}</p>" + blocks_html(slack, message["blocks"])}
