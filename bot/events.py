"""Slack's events, normalised: what the rest of the app needs to know of them and no more."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeGuard

from agent.models.base import File
from agent.thread import Thread
from bot.bodies import Envelope
from bot.contents import files, mention, quotation, words
from bot.stop_words import is_stop

SPEECH = ("message", "app_mention")
LEAVING = ("app_uninstalled", "tokens_revoked")
HANDLED = (*SPEECH, *LEAVING, "team_access_revoked", "agent_session_stopped", "app_home_opened")
"""The types of events that mean something to us; the manifest subscribes to the same."""
SPOKEN = ("file_share", "thread_broadcast", "me_message")
"""Message subtypes in which a person says something, as without one. All others are about messages, members or channels."""
TEAMS = 1_000
"""Workspaces of one event that are looked at: more than an organization takes away at a time."""
FAR_S = 32_503_680_000
"""The year 3000, in seconds: no event is later."""


@dataclass(frozen=True, slots=True)
class Said:
    """A person, or another `bot`, said something; `quoted` are words of others with it. `addressed`: in a direct message, or with a mention of the bot; `elsewhere`: to somebody else.

    `group`: the event says that it is in a direct message of several people; not all do.
    `outside`: as far as the event tells, the person is of another company, in a channel shared with it.
    """

    thread: Thread
    id: str
    user: str
    text: str
    addressed: bool
    elsewhere: bool = False
    outside: bool = False
    files: tuple[File, ...] = ()
    bot: bool = False
    quoted: str = ""
    group: bool = False

    @property
    def line(self) -> bool:
        """Whether it stands in a direct message, at the head of a thread of its own."""
        return is_line(self.thread, self.id)

    @property
    def stop(self) -> bool:
        """Whether a person says nothing but to stop."""
        return not (self.bot or self.files or self.quoted) and is_stop(self.text)


@dataclass(frozen=True, slots=True)
class Changed:
    """A person edited or deleted a message (`text` None), in the event of this time. `quoted`: words of others with it.

    `bot`: whose message it is, if another bot's.
    """

    thread: Thread
    id: str
    text: str | None
    at: str = ""
    quoted: str = ""
    bot: str = ""

    @property
    def line(self) -> bool:
        """Whether the message stands in a direct message, at the head of a thread of its own."""
        return is_line(self.thread, self.id)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A person pressed Stop."""

    thread: Thread
    user: str
    at: str


@dataclass(frozen=True, slots=True)
class Left:
    """The app was removed from the workspace, when Slack says so."""

    tenant: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class HomeOpened:
    """A person opened the app's Home tab."""

    user: str


@dataclass(frozen=True, slots=True)
class AccessRevoked:
    """An organization has taken these workspaces from the app."""

    teams: tuple[str, ...]


Inbound = Said | Changed | Stopped | Left | HomeOpened | AccessRevoked

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_TS = re.compile(r"\d{1,20}(\.\d{1,10})?\Z")
_TO_SOMEBODY = re.compile(r"\s*<@[UW][A-Z0-9]+(?:\|[^>]*)?>")
"""Words that begin with a mention are said to whoever it names."""


def is_line(thread: Thread, message_id: str) -> bool:
    """Whether a message stands in a direct message, at the head of a thread of its own. Of several people's, each has thoughts of their own."""
    return thread.channel.startswith("D") and thread.root == message_id


def tenant_of(envelope: Envelope) -> str:
    """The workspace the app is installed in, which in a shared channel may differ from the event's own team. Empty: none is named."""
    authorizations = envelope.get("authorizations")
    first = _mapping(authorizations[0]) if isinstance(authorizations, list) and authorizations else {}
    if first.get("is_enterprise_install") and _fits(first.get("enterprise_id"), _ID):
        return str(first["enterprise_id"])  # an org-wide installation is one tenant
    names = [source.get(name) for source in (first, envelope) for name in ("team_id", "enterprise_id")]
    return next((name for name in names if _fits(name, _ID)), "")


def org_of(envelope: Envelope) -> str:
    """The organization of the workspace that an event is of; empty where it names none."""
    authorizations = envelope.get("authorizations")
    first = _mapping(authorizations[0]) if isinstance(authorizations, list) and authorizations else {}
    names = [source.get("enterprise_id") for source in (first, envelope)]
    return next((str(name) for name in names if _fits(name, _ID)), "")


def as_org(envelope: Envelope, org: str) -> Envelope:
    """An event of a workspace, as its organization's installation gets it."""
    authorizations = envelope.get("authorizations")
    first = _mapping(authorizations[0]) if isinstance(authorizations, list) and authorizations else {}
    return {**envelope, "authorizations": [{**first, "enterprise_id": org, "is_enterprise_install": True}]}


def kind_of(envelope: Envelope) -> Any:
    """The event's type, a string in every event of Slack's."""
    return _mapping(envelope.get("event")).get("type")


def spoken(envelope: Envelope) -> bool:
    """Whether an event is about a message: what is worth keeping for a workspace that is not known yet."""
    return kind_of(envelope) in SPEECH


def revoked_teams(envelope: Envelope) -> tuple[str, ...]:
    """The workspaces that a `team_access_revoked` names; none for any other event."""
    event = _mapping(envelope.get("event"))
    teams = event.get("team_ids") if event.get("type") == "team_access_revoked" else None
    return tuple(team for team in teams if _fits(team, _ID))[:TEAMS] if isinstance(teams, list) else ()


def read(envelope: Envelope, *, bot_user_id: str, bot_id: str) -> Inbound | None:
    """What an envelope says, or None if it is nothing for us: our own words, unknown types, malformed ones."""
    event = _mapping(envelope.get("event"))
    tenant = tenant_of(envelope)
    kind = event.get("type")
    if not tenant or not isinstance(kind, str) or kind not in HANDLED:
        return None
    if kind in LEAVING:
        return _left(event, tenant, bot_user_id, at=envelope.get("event_time"))
    if kind == "team_access_revoked":
        return AccessRevoked(revoked_teams(envelope))
    if kind == "agent_session_stopped":
        return _stopped(event, tenant)
    if kind == "app_home_opened":
        user = event.get("user")
        return HomeOpened(user) if event.get("tab") == "home" and _fits(user, _ID) else None
    if event.get("subtype") in ("message_changed", "message_deleted"):
        return _changed(event, tenant, bot_user_id, bot_id)
    return _said(
        event, tenant, bot_user_id, bot_id, app_id=str(envelope.get("api_app_id", "")), homes=_homes(envelope, tenant)
    )


def _homes(envelope: Envelope, tenant: str) -> set[Any]:
    """The workspaces and the org that the app is installed in here."""
    authorizations = envelope.get("authorizations")
    first = _mapping(authorizations[0]) if isinstance(authorizations, list) and authorizations else {}
    return {tenant, *(first[name] for name in ("team_id", "enterprise_id") if isinstance(first.get(name), str))}


def _said(event: Envelope, tenant: str, bot_user_id: str, bot_id: str, *, app_id: str, homes: set[Any]) -> Said | None:
    user, channel, ts, subtype = (event.get(name) for name in ("user", "channel", "ts", "subtype"))
    root = event.get("thread_ts") or ts
    if not (_fits(user, _ID) and _fits(channel, _ID) and _fits(ts, _TS) and _fits(root, _TS)):
        return None
    if subtype is not None and subtype not in SPOKEN:
        return None
    other_bot = bool(event.get("bot_id"))
    if _ours(event, bot_user_id, bot_id) or (app_id and event.get("app_id") == app_id):
        return None
    raw = str(event.get("text") or "")
    direct = event.get("channel_type") == "im" or channel.startswith("D")
    addressed = direct or event["type"] == "app_mention" or mention(bot_user_id).search(raw) is not None
    return Said(
        Thread(tenant=tenant, channel=channel, root=root),
        ts,
        user,
        words(event, bot_user_id),
        addressed,
        elsewhere=not addressed and _TO_SOMEBODY.match(raw) is not None,
        outside=_outside(event, homes),
        files=files(event),
        bot=other_bot,
        quoted=quotation(event, bot_user_id),
        group=event.get("channel_type") == "mpim",
    )


def _ours(event: Envelope, bot_user_id: str, bot_id: str) -> bool:
    """Whether we wrote it, or the system: Slackbot's words are its."""
    return event.get("user") in (bot_user_id, "USLACKBOT", "USLACK") or bool(bot_id and event.get("bot_id") == bot_id)


def _outside(event: Envelope, homes: set[Any]) -> bool:
    """Whether the author's own workspace is none of ours. Slack says whose it is only in shared channels."""
    home = event.get("user_team") or event.get("source_team")
    return isinstance(home, str) and bool(home) and home not in homes


def _changed(event: Envelope, tenant: str, bot_user_id: str, bot_id: str) -> Changed | None:
    deleted = event.get("subtype") == "message_deleted"
    before = _mapping(event.get("previous_message"))
    message = before if deleted else _mapping(event.get("message"))
    channel = event.get("channel")
    ts = event.get("deleted_ts") or message.get("ts")
    root = message.get("thread_ts") or ts
    if not (_fits(channel, _ID) and _fits(ts, _TS) and _fits(root, _TS)):
        return None
    gone = deleted or message.get("subtype") == "tombstone"
    if _ours(message, bot_user_id, bot_id):
        return None
    if not gone and message.get("text") == before.get("text"):
        return None  # unfurls and language detection send the same text again
    thread = Thread(tenant=tenant, channel=channel, root=root)
    bot = str(message.get("user") or message["bot_id"]) if message.get("bot_id") else ""
    at = event.get("event_ts")
    at = at if _fits(at, _TS) else ts
    if gone:
        return Changed(thread, ts, None, at, bot=bot)
    return Changed(thread, ts, words(message, bot_user_id), at, quotation(message, bot_user_id), bot)


def _stopped(event: Envelope, tenant: str) -> Stopped | None:
    channel, root, at = event.get("channel"), event.get("thread_ts"), event.get("event_ts")
    if not (_fits(channel, _ID) and _fits(root, _TS) and _fits(at, _TS)):
        return None
    return Stopped(Thread(tenant=tenant, channel=channel, root=root), str(event.get("user") or ""), at)


def _left(event: Envelope, tenant: str, bot_user_id: str, *, at: Any) -> Left | None:
    left = Left(tenant, datetime.fromtimestamp(at, UTC) if isinstance(at, int) and 0 < at < FAR_S else None)
    if event["type"] == "app_uninstalled":
        return left
    revoked = _mapping(event.get("tokens")).get("bot")
    ours = isinstance(revoked, list) and revoked and (not bot_user_id or bot_user_id in revoked)
    return left if ours else None


def _mapping(value: Any) -> dict[str, Any]:
    """`value` if it is an object: Slack's fields are of the documented type, or the event is nothing for us."""
    return value if isinstance(value, dict) else {}


def _fits(value: Any, pattern: re.Pattern[str]) -> TypeGuard[str]:
    return isinstance(value, str) and pattern.match(value) is not None
