"""One message's whole body as HTML: text or blocks, attachments, files."""

import html

from bot.emulator.rendering.blocks import blocks_html
from bot.emulator.rendering.emoji import EMOJI
from bot.emulator.rendering.mrkdwn import mrkdwn_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def with_html(slack: Slack, message: Json) -> Json:
    """`message`, as seen.py gives it, with the field `html`, and `emoji` in each reaction."""
    body = blocks_html(slack, message["blocks"]) or (
        f'<div class="block text">{mrkdwn_html(slack, message["text"])}</div>' if message["text"] else ""
    )
    attached = "".join(_attachment(slack, attachment) for attachment in message["attachments"])
    files = "".join(_file(file) for file in message["files"])
    reactions = [{**one, "emoji": EMOJI.get(one["name"], f":{one['name']}:")} for one in message["reactions"]]
    return {**message, "html": body + attached + files, "reactions": reactions}


def _attachment(slack: Slack, attachment: Json) -> str:
    inner = blocks_html(slack, attachment.get("blocks") or [])
    text = mrkdwn_html(slack, str(attachment.get("text") or attachment.get("fallback") or ""))
    title = html.escape(str(attachment.get("title", "")))
    return f'<div class="attachment"><strong>{title}</strong>{inner or text}</div>'


def _file(file: Json) -> str:
    url, name = f"/_emulator/files/{html.escape(file['id'])}", html.escape(file["title"])
    if file["mimetype"] in IMAGES:
        return f'<figure class="file image"><figcaption>{name}</figcaption><img src="{url}" alt="{name}" loading="lazy"></figure>'
    kind = html.escape(file["pretty_type"])
    return (
        f'<a class="file" href="{url}" download><span class="kind" aria-hidden="true">{kind[:4]}</span>'
        f"<span><strong>{name}</strong><small>{kind}, {_size(file['size'])}</small></span></a>"
    )


def _size(size_bytes: int) -> str:
    return f"{size_bytes} bytes" if size_bytes < 1000 else f"{size_bytes / 1000:,.1f} kB"
