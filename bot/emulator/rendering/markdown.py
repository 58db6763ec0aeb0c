"""Standard Markdown, as `markdown` blocks and streams carry it, as HTML."""

import html
from collections.abc import MutableMapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from bot.emulator.rendering.emoji import with_emoji
from bot.emulator.rendering.entities import ENTITY, entity_html, link_html
from bot.emulator.slack import Slack

Env = MutableMapping[str, Any]


class SlackHTML(RendererHTML):
    """markdown-it's HTML as Slack shows it: links leave the page, images are links, mentions have names.

    markdown-it finds these methods by the names of its tokens; `env["slack"]` knows the names of people.
    """

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        parts = ENTITY.split(tokens[idx].content)
        return "".join(
            entity_html(env["slack"], part) if odd % 2 else html.escape(with_emoji(part))
            for odd, part in enumerate(parts)
        )

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        url = str(tokens[idx].attrs.get("src", ""))
        return link_html(url, tokens[idx].content or url)

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        tokens[idx].attrSet("target", "_blank")
        tokens[idx].attrSet("rel", "noopener noreferrer")
        return self.renderToken(tokens, idx, options, env)

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return '<div class="table-box"><table>'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return "</table></div>"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=SlackHTML)
    # An autolink would swallow <https://…> before Slack's own <https://…|label> is seen.
    return parser.enable(["table", "strikethrough"]).disable(["html_inline", "html_block", "autolink"])


_PARSER = _parser()


def markdown_html(slack: Slack, text: str) -> str:
    return str(_PARSER.render(text, {"slack": slack}))
