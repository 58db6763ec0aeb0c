"""Text on its way to Slack: as mrkdwn, and within every limit."""

import json
import re

from bot.broadcasts import WORD_JOINER, neutral

MARKDOWN_LIMIT = 11_000
"""Characters of Markdown per message. Slack's limit is 12,000 over all `markdown` blocks."""
PAYLOAD_LIMIT = 12_400
"""Characters of a message's Markdown as JSON. Slack's limit was measured as about 13,200 for all blocks but tables and charts; buttons need some."""
FALLBACK_LIMIT = 3_500
"""Characters of plain text beside the blocks: `chat.update` refuses more than 4,000."""

TEXT_LIMIT = 39_000
"""Characters of a message's text without blocks: Slack cuts it at 40,000, and only warns."""
UPDATE_LIMIT = 4_000
"""Characters of text that `chat.update` takes."""

ENTITY = 5
"""Characters of the longest entity, `&amp;`."""

_DATE = re.compile(r"<!date\^[^|<>]*\|([^<>]*)>")
_BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")


def escaped(text: str) -> str:
    """Plain text for mrkdwn: only & < > are special to Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quoted(text: str) -> str:
    """Somebody else's words in mrkdwn: a name, a reason, an error. They read as they were written, and mention nobody."""
    return escaped(neutral(text))


def markdown(text: str) -> str:
    """Mrkdwn as Markdown, for the same words in a thread. What a person wrote in it mentions nobody there, either."""
    dated = _DATE.sub(r"\1", text)
    listed = re.sub(r"^• ", "* ", _BOLD.sub(r"**\1**", dated), flags=re.MULTILINE)
    return unescaped(re.sub("&lt;(?=[@#!])", f"<{WORD_JOINER}", listed))


def unescaped(text: str) -> str:
    """Slack's inbound text, decoded."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def wire_size(text: str) -> int:
    """Characters of `text` in a payload, where quotes and line ends are two each."""
    return len(json.dumps(text, ensure_ascii=False))


def fallback(text: str) -> str:
    """What notifications and old clients show of an answer."""
    return shortened(quoted(text), FALLBACK_LIMIT)


def shortened(text: str, limit: int) -> str:
    """`text` in at most `limit` characters. The cut shows, and never leaves half an entity such as `&am`."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 2]
    start = cut.rfind("&", -ENTITY)
    return (cut[:start] if start >= 0 and ";" not in cut[start:] else cut) + " …"
