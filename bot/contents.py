"""What a message of Slack's says, in words: its text, or what stands in its blocks and attachments, and the files with it."""

import re
from collections.abc import Iterator
from typing import Any

from agent.models.base import File
from bot.render.text import unescaped

Json = dict[str, Any]

FILES_LIMIT = 20
NAME_LIMIT = 200
DEPTH = 8
"""Blocks nest: a list in a rich text in a container."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def mention(user_id: str) -> re.Pattern[str]:
    """The mention of exactly this user: one id may begin like another. Without an id, of nobody."""
    return re.compile(rf"<@{re.escape(user_id)}(?:\|[^<>]*)?>" if user_id else r"(?!)")


def plain(text: str, bot_user_id: str) -> str:
    """What a person wrote, without the mention of us, decoded."""
    without = mention(bot_user_id).sub("", text)
    links = re.sub(r"<(https?://[^|<>]+|mailto:[^|<>]+)(?:\|([^<>]*))?>", lambda found: found[2] or found[1], without)
    return unescaped(links).strip()


def words(message: Json, bot_user_id: str) -> str:
    """What its author says. Blocks count where there is no text or, of an app, where they say more: its text is then what notifications show.
    What another app says in attachments is its own, too.
    """
    text = plain(_string(message.get("text")), bot_user_id)
    if not text or message.get("bot_id"):
        text = max(text, plain("\n".join(_block_lines(message.get("blocks"))), bot_user_id), key=len)
    own = _marked([each for each in _dicts(message.get("attachments")) if not _of_others(message, each)], bot_user_id)
    return "\n".join(filter(None, (text, own)))


def quotation(message: Json, bot_user_id: str) -> str:
    """Words of others that a message forwards, quotes or links to, each line marked. Whoever passes them on has not said them."""
    return _marked([each for each in _dicts(message.get("attachments")) if _of_others(message, each)], bot_user_id)


def _of_others(message: Json, attachment: Json) -> bool:
    """A person's message has no attachments but what was said elsewhere; another app's may be all it says."""
    return bool(attachment.get("is_share") or attachment.get("is_msg_unfurl")) or not message.get("bot_id")


def _marked(attachments: list[Json], bot_user_id: str) -> str:
    said = [plain(line, bot_user_id) for each in attachments for line in _attachment(each)]
    return "\n".join(f"> {line}" for part in said for line in part.splitlines())


def files(message: Json) -> tuple[File, ...]:
    """The files of a message, by reference; those that are gone are left out."""
    shared = [each for each in _dicts(message.get("files")) if each.get("mode") != "tombstone"]
    return tuple(
        File(
            id=each["id"],
            name=_string(each.get("name") or each.get("title") or each["id"])[:NAME_LIMIT],
            media_type=_string(each.get("mimetype"))[:NAME_LIMIT],
            size=each["size"] if isinstance(each.get("size"), int) and 0 <= each["size"] < 2**62 else 0,
        )
        for each in shared[:FILES_LIMIT]
        if isinstance(each.get("id"), str) and _ID.match(each["id"])
    )


def _attachment(attachment: Json) -> list[str]:
    """A forwarded message, an unfurled link, or what an old integration says. Links that Slack itself unfurled add nothing."""
    if attachment.get("from_url") and not attachment.get("is_msg_unfurl") and not attachment.get("is_share"):
        return []
    named = [_string(attachment.get(key)) for key in ("author_name", "pretext", "title", "text")]
    fields = [
        f"{_string(each.get('title'))}: {_string(each.get('value'))}" for each in _dicts(attachment.get("fields"))
    ]
    inner = [line for each in _dicts(attachment.get("message_blocks")) for line in _message_block(each)]
    blocks = list(_block_lines(attachment.get("blocks")))
    said = [line for line in (*named, *fields, *([] if attachment.get("text") else inner), *blocks) if line.strip()]
    return said or [_string(attachment.get("fallback"))]


def _message_block(block: Json) -> Iterator[str]:
    yield from _block_lines(_dict(block.get("message")).get("blocks"))


def _block_lines(blocks: Any) -> Iterator[str]:
    """Each block's words, a line or more of each."""
    for block in _dicts(blocks):
        if block.get("type") in ("table", "data_table"):
            rows: Any = block.get("rows")
            for row in rows if isinstance(rows, list) else ():
                yield " | ".join(_inline(cell, DEPTH) for cell in row) if isinstance(row, list) else ""
        elif block.get("type") == "rich_text":
            for element in _dicts(block.get("elements")):
                lead = "> " if element.get("type") == "rich_text_quote" else ""
                yield lead + _inline(element, DEPTH)
        else:
            found = [
                _inline(block.get(key), DEPTH) for key in ("title", "caption", "text", "alt_text", "fields", "elements")
            ]
            yield "\n".join(each for each in found if each)


def _inline(value: Any, depth: int) -> str:
    """The words of one element, whatever its kind."""
    if depth == 0:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return (" " if any(_nested(each) for each in value) else "").join(_inline(each, depth - 1) for each in value)
    if not isinstance(value, dict):
        return ""
    match value.get("type"):
        case "user":
            return f"<@{_string(value.get('user_id'))}>"
        case "channel":
            return f"<#{_string(value.get('channel_id'))}>"
        case "emoji":
            return f":{_string(value.get('name'))}:"
        case "button":
            return ""
        case "rich_text_list":
            return "\n".join(f"* {_inline(each, depth - 1)}" for each in _dicts(value.get("elements")))
    known = value.get("text") or value.get("elements") or value.get("alt_text") or value.get("url")
    return _inline(known, depth - 1)


def _nested(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("text"), dict | str)
        and value.get("type") in ("mrkdwn", "plain_text")
    )


def _dicts(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
