"""Slack's events, normalised: what the rest of the app needs to know of them and no more."""

import re
from dataclasses import dataclass
from typing import Any

from agent.thread import Thread
from bot.render.text import unescaped

Envelope = dict[str, Any]

SPOKEN = {None, "file_share", "thread_broadcast"}
"""Message subtypes in which a person says something. All others are about messages, members or channels."""


@dataclass(frozen=True, slots=True)
class Said:
    """A person said something. `addressed`: in a direct message, or with a mention of the bot."""

    thread: Thread
    id: str
    user: str
    text: str
    addressed: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """A person edited or deleted a message (`text` None)."""

    thread: Thread
    id: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """A person pressed Stop."""

    thread: Thread
    user: str
    at: str


@dataclass(frozen=True, slots=True)
class Left:
    """The app was removed from the workspace."""

    tenant: str


Inbound = Said | Changed | Stopped | Left


def tenant_of(envelope: Envelope) -> str:
    """The workspace the app is installed in, which in a shared channel may differ from the event's own team."""
    authorizations = envelope.get("authorizations") or [{}]
    first = authorizations[0] if isinstance(authorizations[0], dict) else {}
    return str(
        first.get("team_id")
        or first.get("enterprise_id")
        or envelope.get("team_id")
        or envelope.get("enterprise_id")
        or ""
    )


def read(envelope: Envelope, *, bot_user_id: str, bot_id: str) -> Inbound | None:
    """What an envelope says, or None if it is nothing for us: bots (ourselves included), unknown types, malformed ones."""
    event = envelope.get("event")
    tenant = tenant_of(envelope)
    if not isinstance(event, dict) or not tenant:
        return None
    kind = event.get("type")
    if kind in ("app_uninstalled", "tokens_revoked"):
        return _left(event, tenant, bot_user_id)
    if kind == "agent_session_stopped":
        return _stopped(event, tenant)
    if kind not in ("message", "app_mention"):
        return None
    if event.get("subtype") in ("message_changed", "message_deleted"):
        return _changed(event, tenant, bot_user_id)
    return _said(event, tenant, bot_user_id, bot_id, app_id=str(envelope.get("api_app_id", "")))


def _said(event: Envelope, tenant: str, bot_user_id: str, bot_id: str, *, app_id: str) -> Said | None:
    user, channel, ts = event.get("user"), event.get("channel"), event.get("ts")
    if event.get("subtype") not in SPOKEN or not all(isinstance(each, str) and each for each in (user, channel, ts)):
        return None
    if (
        event.get("bot_id")
        or user in (bot_user_id, "USLACKBOT", "USLACK")
        or (app_id and event.get("app_id") == app_id)
    ):
        return None
    raw = str(event.get("text") or "")
    direct = event.get("channel_type") == "im" or str(channel).startswith("D")
    addressed = direct or event.get("type") == "app_mention" or f"<@{bot_user_id}" in raw
    thread = Thread(tenant=tenant, channel=str(channel), root=str(event.get("thread_ts") or ts))
    return Said(thread, str(ts), str(user), plain(raw, bot_user_id), addressed)


def _changed(event: Envelope, tenant: str, bot_user_id: str) -> Changed | None:
    deleted = event.get("subtype") == "message_deleted"
    message = event.get("previous_message" if deleted else "message")
    if not isinstance(message, dict) or not isinstance(event.get("channel"), str):
        return None
    ts = str(event.get("deleted_ts") or message.get("ts") or "")
    gone = deleted or message.get("subtype") == "tombstone"
    before = event.get("previous_message") or {}
    if not ts or (not gone and message.get("text") == before.get("text")):
        return None  # unfurls and language detection send the same text again
    thread = Thread(tenant=tenant, channel=str(event["channel"]), root=str(message.get("thread_ts") or ts))
    return Changed(thread, ts, None if gone else plain(str(message.get("text") or ""), bot_user_id))


def _stopped(event: Envelope, tenant: str) -> Stopped | None:
    channel, root = event.get("channel"), event.get("thread_ts")
    if not isinstance(channel, str) or not isinstance(root, str):
        return None
    return Stopped(
        Thread(tenant=tenant, channel=channel, root=root),
        str(event.get("user") or ""),
        str(event.get("event_ts") or ""),
    )


def _left(event: Envelope, tenant: str, bot_user_id: str) -> Left | None:
    if event["type"] == "app_uninstalled":
        return Left(tenant)
    tokens = event.get("tokens")
    revoked = tokens.get("bot") if isinstance(tokens, dict) else None
    return Left(tenant) if revoked and (not bot_user_id or bot_user_id in revoked) else None


def plain(text: str, bot_user_id: str) -> str:
    """What a person wrote, without the mention of us, decoded. NUL can't be stored as text and means nothing."""
    without = re.sub(rf"<@{re.escape(bot_user_id)}(?:\|[^>]*)?>", "", text) if bot_user_id else text
    links = re.sub(r"<(https?://[^|>]+|mailto:[^|>]+)(?:\|([^>]*))?>", lambda found: found[2] or found[1], without)
    return unescaped(links).replace("\x00", "").strip()
