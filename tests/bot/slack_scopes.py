"""Which scope Slack asks for what, of the events, methods and features that the product uses.

From docs.slack.dev/reference (methods and events, November 2026). Something new in the code needs its line here first.
"""

HISTORY = {"channels:history", "groups:history", "im:history", "mpim:history"}
"""A conversation's kind decides which; the agent takes part in all four."""

METHOD_SCOPES: dict[str, set[str]] = {
    "agents.sessions.setStatus": {"chat:write"},
    "assistant.threads.setStatus": {"chat:write"},
    "auth.teams.list": set(),
    "auth.test": set(),
    "chat.appendStream": {"chat:write"},
    "chat.delete": {"chat:write"},
    "chat.postMessage": {"chat:write"},
    "chat.startStream": {"chat:write"},
    "chat.stopStream": {"chat:write"},
    "chat.update": {"chat:write"},
    "conversations.history": HISTORY,
    "conversations.open": {"im:write"},
    "conversations.replies": HISTORY,
    "files.completeUploadExternal": {"files:write"},
    "files.getUploadURLExternal": {"files:write"},
    "files.info": {"files:read"},
    "oauth.v2.access": set(),
    "users.info": {"users:read"},
    "users.list": {"users:read"},
    "views.open": set(),
    "views.update": set(),
    "views.publish": set(),
}

EVENT_SCOPES: dict[str, set[str]] = {
    "agent_session_stopped": {"chat:write"},
    "app_home_opened": set(),
    "app_mention": {"app_mentions:read"},
    "app_uninstalled": set(),
    "message.channels": {"channels:history"},
    "message.groups": {"groups:history"},
    "message.im": {"im:history"},
    "message.mpim": {"mpim:history"},
    "team_access_revoked": set(),
    "tokens_revoked": set(),
}

FEATURE_SCOPES: dict[str, set[str]] = {"agent_view": {"assistant:write"}, "slash_commands": {"commands"}}
