"""Slack's bracketed entities: <@U…>, <#C…>, <!here>, <https://…|label>."""

import html
import re
from urllib.parse import urlsplit

from bot.emulator.slack import Slack

SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
ENTITY = re.compile(r"<([@#!][^<>\n]+|(?:https?://|mailto:)[^<>\n]+)>")


def entity_html(slack: Slack, inner: str) -> str:
    """What stands between < and >, as HTML; still escaped as in the message."""
    target, _, label = inner.partition("|")
    target, label = html.unescape(target), html.unescape(label)
    if target.startswith("@"):
        return user_html(slack, target[1:])
    if target.startswith("#"):
        return channel_html(slack, target[1:], label)
    if target.startswith("!"):
        return broadcast_html(target[1:], label)
    return link_html(target, label or target.removeprefix("mailto:"))


def user_html(slack: Slack, user_id: str) -> str:
    user = slack.user(user_id)
    name = user.real_name if user else user_id
    return f'<span class="mention" data-user="{html.escape(user_id)}">@{html.escape(name)}</span>'


def channel_html(slack: Slack, channel_id: str, label: str = "") -> str:
    workspace = slack.workspace_of(channel_id)
    name = workspace.channels[channel_id].name if workspace else label or channel_id
    return f'<a class="mention" href="#channel={html.escape(channel_id)}">#{html.escape(name)}</a>'


def broadcast_html(what: str, label: str = "") -> str:
    """<!here> pings; a date or a user group is shown by its fallback text."""
    if what in {"here", "channel", "everyone"}:
        return f'<span class="mention broadcast">@{what}</span>'
    return html.escape(label or what.partition("^")[0])


def link_html(url: str, label: str) -> str:
    """A link, if its scheme is harmless; else the label alone."""
    if urlsplit(url).scheme not in SAFE_SCHEMES:
        return html.escape(label)
    return f'<a href="{html.escape(url)}" target="_blank" rel="noopener noreferrer">{html.escape(label)}</a>'
