"""Slack's own markup as HTML."""

import html
import re
from itertools import groupby

from bot.emulator.rendering.emoji import with_emoji
from bot.emulator.rendering.entities import ENTITY, entity_html, link_html
from bot.emulator.slack import Slack
from bot.emulator.typed import unescape

_FENCE = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_URL = re.compile(r"https?://[^\s<>|\x00]*[^\s<>|.,;:!?)\]'\"\x00]")
_STYLES = tuple(
    (re.compile(rf"(?<![\w{mark}]){mark}(?=\S)([^{mark}\n]+?)(?<=\S){mark}(?![\w{mark}])"), tag)
    for mark, tag in ((r"\*", "strong"), ("_", "em"), ("~", "s"))
)


def mrkdwn_html(slack: Slack, text: str) -> str:
    parts = _FENCE.split(text.replace("\x00", ""))
    return "".join(
        f"<pre><code>{html.escape(unescape(part))}</code></pre>" if index % 2 else _lines(slack, part)
        for index, part in enumerate(parts)
    )


def plain_html(text: str) -> str:
    """A `plain_text` object: emoji and line breaks, nothing else."""
    return html.escape(with_emoji(text)).replace("\n", "<br>")


def _lines(slack: Slack, text: str) -> str:
    """Runs of quoted lines become one quotation."""
    parts = []
    for quoted, run in groupby(text.strip("\n").split("\n"), key=lambda line: line.startswith(("&gt;", ">"))):
        body = "<br>".join(_inline(slack, re.sub(r"^(&gt;|>) ?", "", line) if quoted else line) for line in run)
        parts.append(f"<blockquote>{body}</blockquote>" if quoted else body)
    return "".join(parts)


def _inline(slack: Slack, line: str) -> str:
    """Code and entities are set aside first, so that no style is looked for inside them."""
    aside: list[str] = []

    def keep(rendered: str) -> str:
        aside.append(rendered)
        return f"\x00{len(aside) - 1}\x00"

    line = _CODE.sub(lambda match: keep(f"<code>{html.escape(unescape(match[1]))}</code>"), line)
    line = ENTITY.sub(lambda match: keep(entity_html(slack, match[1])), line)
    line = _URL.sub(lambda match: keep(link_html(unescape(match[0]), unescape(match[0]))), line)
    line = html.escape(with_emoji(unescape(line)), quote=False)
    for pattern, tag in _STYLES:
        line = pattern.sub(rf"<{tag}>\1</{tag}>", line)
    # Twice, because a code span may stand inside a link's label.
    for _ in range(2):
        line = re.sub(r"\x00(\d+)\x00", lambda match: aside[int(match[1])], line)
    return line
