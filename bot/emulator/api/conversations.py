"""conversations.*: channels, their members and what was said in them."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.errors import SlackError
from bot.emulator.messages import Message
from bot.emulator.workspace import Channel, Json

SCOPE_OF = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
TYPE_OF = {"channel": "public_channel", "group": "private_channel", "im": "im", "mpim": "mpim"}
COMMERCIAL_ROWS = 15
CREATED_S = 1_700_000_000
"""When every channel was made: nothing here depends on it."""
T = TypeVar("T")
READ = tuple(f"{kind}:read" for kind in SCOPE_OF.values())
HISTORY = tuple(f"{kind}:history" for kind in SCOPE_OF.values())


def channel_wire(call: Call, channel: Channel) -> Json:
    """Slack's conversation object; a direct message has fields of its own."""
    common = {
        "id": channel.id,
        "is_im": channel.kind == "im",
        "is_archived": channel.is_archived,
        "is_mpim": channel.kind == "mpim",
        "is_org_shared": False,
        "created": CREATED_S,
        "updated": CREATED_S * 1000,
    }
    if channel.kind == "im":
        return {**common, "user": channel.other(call.installation.bot_user_id), "is_user_deleted": False}
    return {
        **common,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_private": channel.kind in {"group", "mpim"},
        "is_general": channel.name == "general",
        "is_member": call.is_member(channel),
        "is_shared": bool(channel.shared_with),
        "is_ext_shared": bool(channel.shared_with),
        "is_pending_ext_shared": False,
        "pending_shared": [],
        "previous_names": [],
        "unlinked": 0,
        "creator": channel.members[0] if channel.members else "",
        "shared_team_ids": [channel.team_id, *channel.shared_with],
        "connected_team_ids": channel.shared_with,
        "context_team_id": channel.team_id,
        "topic": {"value": channel.topic, "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
        "num_members": len(channel.members),
    }


def page(call: Call, key: str, rows: Sequence[T], *, most: int, show: Callable[[T], Any]) -> Json:
    """One page of `rows` under `key`, and the cursor of the next. A cursor is an offset that Slack keeps opaque."""
    offset_text = call.text("cursor") or "at:0"
    if not offset_text.startswith("at:") or not offset_text[3:].isdigit():
        raise SlackError("invalid_cursor")
    start, limit = int(offset_text[3:]), call.number("limit", 100, most=most)
    rest = start + limit < len(rows)
    return {
        key: [show(row) for row in rows[start : start + limit]],
        "has_more": rest,
        "response_metadata": {"next_cursor": f"at:{start + limit}" if rest else ""},
    }


def list_channels(call: Call) -> Json:
    wanted = _types(call)
    shown = [
        channel
        for channel in call.workspace.channels.values()
        if TYPE_OF[channel.kind] in wanted and (channel.kind == "channel" or call.is_member(channel))
    ]
    return page(call, "channels", shown, most=1000, show=lambda channel: channel_wire(call, channel))


def _types(call: Call) -> set[str]:
    """The kinds of channel asked for; each needs its scope."""
    wanted = set((call.text("types") or "public_channel").replace(" ", "").split(","))
    if wanted - set(TYPE_OF.values()):
        raise SlackError("invalid_types")
    for kind, name in TYPE_OF.items():
        if name in wanted:
            call.need(f"{SCOPE_OF[kind]}:read")
    return wanted


def users_conversations(call: Call) -> Json:
    """Only those the user, by default the app, is a member of."""
    user_id = call.text("user") or call.installation.bot_user_id
    wanted = _types(call)
    shown = [
        channel
        for channel in call.workspace.channels.values()
        if TYPE_OF[channel.kind] in wanted and user_id in channel.members
    ]
    return page(call, "channels", shown, most=999, show=lambda channel: channel_wire(call, channel))


def info(call: Call) -> Json:
    channel = call.channel()
    call.need(f"{SCOPE_OF[channel.kind]}:read")
    return {"channel": channel_wire(call, channel)}


def members(call: Call) -> Json:
    return page(call, "members", call.channel().members, most=1000, show=str)


def history(call: Call) -> Json:
    channel, within = _readable(call), _range(call)
    found = [m for m in call.slack.timeline.top_level(channel.id) if not m.ephemeral_for and within(m)]
    shown = page(call, "messages", found[::-1], most=_most(call, 999), show=lambda m: _wire(call, m))
    return {**shown, "pin_count": 0, "channel_actions_ts": None, "channel_actions_count": 0}


def replies(call: Call) -> Json:
    channel, within = _readable(call), _range(call)
    named = call.slack.timeline.find(channel.id, call.required("ts"))
    root = named.root_ts if named else call.text("ts")
    thread = [m for m in call.slack.timeline.thread(channel.id, root) if not m.ephemeral_for]
    if not thread:
        raise SlackError("thread_not_found")
    # The root is always there, whatever range of replies is asked for.
    found = [m for m in thread if m.ts == root or within(m)]
    return page(call, "messages", found, most=_most(call, 1000), show=lambda m: _wire(call, m))


def open_conversation(call: Call) -> Json:
    if call.text("channel"):
        return {"channel": {"id": call.channel().id}}
    user_ids = [user_id for user_id in call.text("users").split(",") if user_id]
    if not user_ids:
        raise SlackError("users_list_not_supplied")
    if any(user_id not in call.workspace.users for user_id in user_ids):
        raise SlackError("user_not_found")
    if len(user_ids) > 1:
        return _open_group(call, user_ids)
    call.need("im:write")
    known = f"D{user_ids[0][1:]}" in call.workspace.channels
    channel = call.workspace.direct_message(user_ids[0])
    body = channel_wire(call, channel) if call.flag("return_im") else {"id": channel.id}
    return {"channel": body, "no_op": known, "already_open": known}


def _open_group(call: Call, user_ids: list[str]) -> Json:
    call.need("mpim:write")
    if len(user_ids) > 8:
        raise SlackError("too_many_users")
    before = set(call.workspace.channels)
    channel = call.workspace.group_message(user_ids)
    known = channel.id in before
    body = channel_wire(call, channel) if call.flag("return_im") else {"id": channel.id}
    return {"channel": body, "no_op": known, "already_open": known}


def join(call: Call) -> Json:
    channel = call.channel()
    if channel.kind != "channel":
        raise SlackError("method_not_supported_for_channel_type")
    if channel.is_archived:
        raise SlackError("is_archived")
    posting.join(call.slack, channel, call.installation.bot_user_id)
    return {"channel": channel_wire(call, channel)}


def _most(call: Call, usual: int) -> int:
    return COMMERCIAL_ROWS if call.slack.limits.commercial else usual


def leave(call: Call) -> Json:
    channel, me = call.channel(), call.installation.bot_user_id
    if channel.kind in {"im", "mpim"}:
        raise SlackError("method_not_supported_for_channel_type")
    if channel.is_archived:
        raise SlackError("is_archived")
    if channel.name == "general":
        raise SlackError("cant_leave_general")
    if me not in channel.members:
        return {"not_in_channel": True}
    channel.members.remove(me)
    call.slack.updates.publish("channel", channel=channel.id)
    return {}


def _readable(call: Call) -> Channel:
    channel = call.channel()
    call.need(f"{SCOPE_OF[channel.kind]}:history")
    if not call.is_member(channel):
        raise SlackError("not_in_channel")
    return channel


def _range(call: Call) -> Callable[[Message], bool]:
    """Between `oldest` and `latest`, the ends themselves only if `inclusive`. Timestamps compare as strings of equal length."""
    oldest, latest = _full(call, "oldest"), _full(call, "latest")

    def within(message: Message) -> bool:
        if message.ts in {oldest, latest}:
            return call.flag("inclusive")
        return (not oldest or message.ts > oldest) and (not latest or message.ts < latest)

    return within


def _full(call: Call, name: str) -> str:
    """The timestamp `name` with ten digits before the point and six behind it, empty for none."""
    ts = call.text(name)
    if ts in {"", "0"}:
        return ""
    if not re.fullmatch(r"\d{1,10}(\.\d{0,6})?", ts):
        raise SlackError(f"invalid_ts_{name}")
    seconds, _, micros = ts.partition(".")
    return f"{seconds:0>10}.{micros:0<6}"


def _wire(call: Call, message: Message) -> Json:
    return call.slack.wire(message, include_metadata=call.flag("include_all_metadata"))


METHODS = {
    "conversations.list": Method(list_channels, READ),
    "conversations.info": Method(info, READ, required=("channel",)),
    "conversations.history": Method(history, HISTORY, required=("channel",)),
    "conversations.replies": Method(replies, HISTORY, required=("channel", "ts")),
    "conversations.members": Method(members, READ, required=("channel",)),
    "conversations.open": Method(open_conversation, ("channels:manage", "groups:write", "im:write", "mpim:write")),
    "conversations.join": Method(join, ("channels:join",), required=("channel",)),
    "conversations.leave": Method(
        leave, ("channels:manage", "channels:write", "groups:write", "im:write", "mpim:write"), required=("channel",)
    ),
    "users.conversations": Method(users_conversations, READ),
}
