"""Text on its way to Slack: nothing in it may ping a channel, and every limit is met."""

import re

MARKDOWN_LIMIT = 11_000
"""Characters of Markdown per message. Slack's limit is 12,000 over all `markdown` blocks, and about 13,200 for the whole payload."""
FALLBACK_LIMIT = 3_500
"""Characters of plain text beside the blocks: `chat.update` refuses more than 4,000."""

FENCE = 30
"""Characters of a fence's marker, and of its language, that are carried from one part to the next."""
ENTITY = 5
"""Characters of the longest entity, `&amp;`."""

_FENCE_LINE = re.compile(r" {0,3}(?P<marker>`{3,30}|~{3,30})(?P<info>[^`]*)")
_BROADCAST = re.compile(r"<!(?=(?:channel|here|everyone|subteam\^)[^>]*>?)", re.IGNORECASE)
_AT_ALL = re.compile(r"(?<![\w/])@(?=(?:channel|here|everyone)\b)", re.IGNORECASE)
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
    return shortened(escaped(neutral(text)), FALLBACK_LIMIT)


def shortened(text: str, limit: int) -> str:
    """`text` in at most `limit` characters. The cut shows, and never leaves half an entity such as `&am`."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 2]
    start = cut.rfind("&", -ENTITY)
    return (cut[:start] if start >= 0 and ";" not in cut[start:] else cut) + " …"


def parts(text: str, limit: int = MARKDOWN_LIMIT) -> list[str]:
    """`text` in pieces of at most `limit` characters, cut between paragraphs, else lines, else words; fences are closed and reopened."""
    pieces: list[str] = []
    rest = text.strip("\n") or " "
    opening = ""
    while len(opening) + len(rest) > limit:
        at = _cut(rest, limit - len(opening) - FENCE - 1)
        piece = opening + rest[:at].rstrip("\n")
        rest = rest[at:].lstrip("\n")
        marker, opening = _open_fence(piece)
        pieces.append(f"{piece}\n{marker}" if marker else piece)
    return [*pieces, opening + rest]


def _cut(text: str, room: int) -> int:
    for separator in ("\n\n", "\n", " "):
        at = text.rfind(separator, room // 2, room)
        if at > 0:
            return at + len(separator)
    return room


def _open_fence(text: str) -> tuple[str, str]:
    """The marker of a code fence that `text` leaves open and the line that opens it again; both empty if it leaves none."""
    marker, info = "", ""
    for line in text.splitlines():
        found = _FENCE_LINE.fullmatch(line)
        if found is None:
            continue
        if not marker:
            marker, info = found["marker"], found["info"].strip()
        elif found["marker"].startswith(marker) and not found["info"].strip():
            marker = ""
    return (marker, f"{marker}{info[:FENCE]}\n") if marker else ("", "")
