"""Text on its way to Slack: nothing in it may ping a channel, and every limit is met."""

import re

MARKDOWN_LIMIT = 11_000
"""Characters of Markdown per message. Slack's limit is 12,000 over all `markdown` blocks, and about 13,200 for the whole payload."""
FALLBACK_LIMIT = 3_500
"""Characters of plain text beside the blocks: `chat.update` refuses more than 4,000."""

_BROADCAST = re.compile(r"<!(?=(?:channel|here|everyone|subteam\^)[^>]*>?)", re.IGNORECASE)
_AT_ALL = re.compile(r"(?<![\w/.])@(?=(?:channel|here|everyone)\b)", re.IGNORECASE)
_ZERO_WIDTH_JOINER = "\u2060"


def neutral(text: str) -> str:
    """`text` with broadcast mentions made harmless: a word joiner keeps them readable and stops them from pinging."""
    return _AT_ALL.sub(f"@{_ZERO_WIDTH_JOINER}", _BROADCAST.sub(f"<{_ZERO_WIDTH_JOINER}!", text))


def escaped(text: str) -> str:
    """Plain text for mrkdwn: only & < > are special to Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescaped(text: str) -> str:
    """Slack's inbound text, decoded."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def fallback(text: str) -> str:
    """What notifications and old clients show of an answer."""
    plain = escaped(neutral(text))
    if len(plain) <= FALLBACK_LIMIT:
        return plain
    cut = plain[: FALLBACK_LIMIT - 2]
    return cut[: cut.rfind("&")] + " …" if "&" in cut[-5:] else cut + " …"


def parts(text: str, limit: int = MARKDOWN_LIMIT) -> list[str]:
    """`text` in pieces of at most `limit` characters, cut between paragraphs, else lines, else words; fences are closed and reopened."""
    pieces: list[str] = []
    rest = text.strip("\n") or " "
    fence = ""
    while len(fence) + len(rest) > limit:
        room = limit - len(fence) - 4  # room for a closing fence
        at = _cut(rest, room)
        piece = fence + rest[:at].rstrip("\n")
        rest = rest[at:].lstrip("\n")
        fence = _open_fence(piece)
        pieces.append(piece + ("\n```" if fence else ""))
    return [*pieces, fence + rest]


def _cut(text: str, room: int) -> int:
    for separator in ("\n\n", "\n", " "):
        at = text.rfind(separator, room // 2, room)
        if at > 0:
            return at + len(separator)
    return room


def _open_fence(text: str) -> str:
    """The opening line of a code fence that `text` leaves open, with its newline; else empty."""
    opened = ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            opened = "" if opened else line.strip() + "\n"
    return opened
