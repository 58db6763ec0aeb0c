"""Which events the app is told of: those that its manifest subscribes to, as far as its scopes go."""

from bot.emulator.config import EmulatorConfig
from bot.emulator.workspace import Installation, Json

EVENT_SCOPES: dict[str, tuple[str, ...]] = {
    "agent_session_stopped": ("chat:write",),
    "app_context_changed": ("assistant:write",),
    "app_home_opened": (),
    "app_mention": ("app_mentions:read",),
    "app_uninstalled": (),
    "link_shared": ("links:read",),
    "member_joined_channel": ("channels:read", "groups:read"),
    "message.channels": ("channels:history",),
    "message.groups": ("groups:history",),
    "message.im": ("im:history",),
    "message.mpim": ("mpim:history",),
    "team_access_revoked": (),
    "tokens_revoked": (),
}
"""Every event that this Slack sends by itself, and the scopes of which one is needed (docs.slack.dev/reference/events)."""

_MESSAGES = {
    "channel": "message.channels",
    "group": "message.groups",
    "im": "message.im",
    "mpim": "message.mpim",
}


def name_of(event: Json) -> str:
    """What a manifest calls the event: "message.im" for a message in a direct message."""
    kind = str(event["type"])
    return _MESSAGES[event["channel_type"]] if kind == "message" else kind


def subscribed(config: EmulatorConfig, installation: Installation | None, event: Json) -> bool:
    """Whether an app with `installation` gets `event`."""
    name = name_of(event)
    scopes = EVENT_SCOPES[name]
    allowed = installation is not None and (not scopes or bool(set(scopes) & set(installation.scopes)))
    return allowed and name in config.events
