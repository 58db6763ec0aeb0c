"""The bodies of the Events API."""

from bot.emulator.ids import new_id
from bot.emulator.workspace import Channel, Installation, Json, Workspace


def envelope(event: Json, workspace: Workspace, *, app_id: str, now_s: float, event_id: str = "") -> Json:
    """Wrap `event` as Slack does: one entry in `authorizations`, the bot that is told."""
    org_id = workspace.org.id if workspace.org else None
    return {
        "token": "deprecated-verification-token",
        "team_id": workspace.id,
        **({"enterprise_id": org_id} if org_id else {}),
        "context_team_id": workspace.id,
        "context_enterprise_id": org_id,
        "api_app_id": app_id,
        "event": event,
        "type": "event_callback",
        "event_id": event_id or new_id("Ev"),
        "event_time": int(now_s),
        "authorizations": [authorization(workspace)],
        "is_ext_shared_channel": False,
        "event_context": new_id("4-", 20),
    }


def authorization(workspace: Workspace) -> Json:
    """For whom an event is: the app's bot in one workspace."""
    return {
        "enterprise_id": workspace.org.id if workspace.org else None,
        "team_id": workspace.id,
        "user_id": workspace.bot_user_id,
        "is_bot": True,
        "is_enterprise_install": workspace.org_wide,
    }


def message_event(message: Json, channel: Channel) -> Json:
    return {**message, "channel": channel.id, "event_ts": message["ts"], "channel_type": channel.kind}


def app_mention(message: Json, channel: Channel) -> Json:
    """The other half of the pair for one mention; Slack leaves two fields out of it."""
    rest = {key: value for key, value in message.items() if key != "client_msg_id"}
    return {**rest, "type": "app_mention", "channel": channel.id, "event_ts": message["ts"]}


def message_changed(message: Json, previous: Json, channel: Channel, *, ts: str) -> Json:
    return {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": channel.id,
        "channel_type": channel.kind,
        "ts": ts,
        "event_ts": ts,
        "message": message,
        "previous_message": previous,
    }


def message_deleted(previous: Json, channel: Channel, *, ts: str) -> Json:
    return {
        "type": "message",
        "subtype": "message_deleted",
        "hidden": True,
        "channel": channel.id,
        "channel_type": channel.kind,
        "ts": ts,
        "event_ts": ts,
        "deleted_ts": previous["ts"],
        "previous_message": previous,
    }


def app_home_opened(user_id: str, channel: Channel, tab: str, seen: Channel | None, *, ts: str) -> Json:
    """`seen` is the channel that stands beside the app's pane, if one does."""
    return {
        "type": "app_home_opened",
        "user": user_id,
        "channel": channel.id,
        "tab": tab,
        "event_ts": ts,
        "context": _context(seen),
    }


def app_context_changed(user_id: str, seen: Channel | None, *, ts: str) -> Json:
    return {"type": "app_context_changed", "user": user_id, "event_ts": ts, "context": _context(seen)}


def _context(seen: Channel | None) -> Json:
    if seen is None:
        return {"entities": []}
    return {"entities": [{"type": "slack#/types/channel_id", "value": seen.id, "team_id": seen.team_id}]}


def link_shared(message: Json, channel: Channel, links: list[Json], *, unfurl_id: str, is_member: bool) -> Json:
    thread = {"thread_ts": message["thread_ts"]} if message.get("thread_ts") else {}
    return {
        "type": "link_shared",
        "user": message["user"],
        "channel": channel.id,
        "message_ts": message["ts"],
        **thread,
        "unfurl_id": unfurl_id,
        "source": "conversations_history",
        "links": links,
        "is_bot_user_member": is_member,
        "event_ts": message["ts"],
    }


def agent_session_stopped(user_id: str, channel: Channel, thread_ts: str, streams: list[str], *, ts: str) -> Json:
    return {
        "type": "agent_session_stopped",
        "channel": channel.id,
        "thread_ts": thread_ts,
        "user": user_id,
        "streaming_message_ts": streams,
        "event_ts": ts,
    }


def member_joined_channel(user_id: str, channel: Channel, *, ts: str) -> Json:
    return {
        "type": "member_joined_channel",
        "user": user_id,
        "channel": channel.id,
        "channel_type": "G" if channel.kind == "group" else "C",
        "team": channel.team_id,
        "event_ts": ts,
    }


def tokens_revoked(installation: Installation, *, ts: str) -> Json:
    return {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [installation.bot_user_id]}, "event_ts": ts}


def app_uninstalled(*, ts: str) -> Json:
    return {"type": "app_uninstalled", "event_ts": ts}
