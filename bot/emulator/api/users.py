"""users.*, team.info, bots.info: who is who."""

from datetime import datetime
from zoneinfo import ZoneInfo

from bot.emulator.api.call import Call, Method
from bot.emulator.api.conversations import page
from bot.emulator.errors import SlackError
from bot.emulator.workspace import Json, User

READ = ("users:read",)


def user_wire(call: Call, user: User) -> Json:
    """Slack's user object, with the offset of the time zone as it is now."""
    local = datetime.fromtimestamp(call.slack.clock.now(), ZoneInfo(user.timezone))
    offset = local.utcoffset()
    profile = {
        "real_name": user.real_name,
        "real_name_normalized": user.real_name,
        "display_name": user.real_name,
        "display_name_normalized": user.real_name,
        "title": user.title,
        "first_name": user.real_name.partition(" ")[0],
        "last_name": user.real_name.partition(" ")[2],
        "status_text": "",
        "status_emoji": "",
        "status_expiration": 0,
        "avatar_hash": user.id.lower(),
        "team": user.team_id,
        **{f"image_{px}": f"{call.slack.url}/_emulator/avatars/{user.id}.svg" for px in (24, 32, 48, 72, 192, 512)},
    }
    if "users:read.email" in call.installation.scopes and not user.is_bot:
        profile["email"] = f"{user.handle}@{call.workspace.domain}.example"
    org, teams = call.slack.workspaces[user.team_id].org, call.slack.workspaces.values()
    enterprise = {
        "id": user.id,
        "enterprise_id": org.id,
        "enterprise_name": org.name,
        "is_admin": False,
        "is_owner": False,
        "teams": [one.id for one in teams if one.org == org and user.id in one.users],
    } if org else None  # fmt: skip
    return {
        "id": user.id,
        "team_id": user.team_id,
        **({"enterprise_user": enterprise} if enterprise else {}),
        **({} if call.slack.has_app(call.installation, user.team_id) else {"is_stranger": True}),
        "name": user.handle,
        "deleted": False,
        "real_name": user.real_name,
        "color": "9f69e7",
        "tz": user.timezone,
        "tz_label": local.tzname(),
        "tz_offset": int(offset.total_seconds()) if offset else 0,
        "profile": profile,
        "is_admin": user.is_admin,
        "is_owner": user.is_admin,
        "is_primary_owner": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "is_bot": user.is_bot,
        "is_app_user": False,
        "updated": 1_700_000_000,
    }


def info(call: Call) -> Json:
    return {"user": user_wire(call, call.user())}


def list_users(call: Call) -> Json:
    users = list(call.workspace.users.values())
    shown = page(call, "members", users, most=1000, show=lambda user: user_wire(call, user))
    return {**shown, "cache_ts": int(call.slack.clock.now())}


def lookup_by_email(call: Call) -> Json:
    """Addresses are made up of the person's handle and the workspace's domain."""
    email = call.required("email").casefold()
    for user in call.workspace.people:
        if email == f"{user.handle}@{call.workspace.domain}.example":
            return {"user": user_wire(call, user)}
    raise SlackError("users_not_found")


def profile(call: Call) -> Json:
    return {"profile": user_wire(call, call.user())["profile"]}


def emoji(call: Call) -> Json:
    """No workspace here has emoji of its own."""
    return {"emoji": {}, "cache_ts": f"{call.slack.clock.now():.6f}"}


def usergroups(call: Call) -> Json:
    """No workspace here has groups; an organization's token has to say of which one it asks."""
    return {"usergroups": [], "team_id": call.workspace.id}


def team_info(call: Call) -> Json:
    if call.text("team", call.workspace.id) != call.workspace.id:
        raise SlackError("team_not_found")
    workspace = call.workspace
    return {
        "team": {
            "id": workspace.id,
            "name": workspace.name,
            "domain": workspace.domain,
            "email_domain": "",
            "icon": {"image_default": True},
        }
    }


def bots_info(call: Call) -> Json:
    bot_id = call.text("bot") or call.installation.bot_id
    if bot_id != call.workspace.bot_id:
        raise SlackError("bot_not_found")
    return {
        "bot": {
            "id": bot_id,
            "deleted": False,
            "name": call.slack.config.app_name,
            "updated": 1_700_000_000,
            "app_id": call.slack.config.app_id,
            "user_id": call.workspace.bot_user_id,
            "icons": {},
        }
    }


METHODS = {
    "users.info": Method(info, READ, required=("user",)),
    "users.list": Method(list_users, READ),
    "users.lookupByEmail": Method(lookup_by_email, ("users:read.email",), required=("email",)),
    "users.profile.get": Method(profile, ("users.profile:read",)),
    "emoji.list": Method(emoji, ("emoji:read",)),
    "usergroups.list": Method(usergroups, ("usergroups:read",)),
    "team.info": Method(team_info, ("team:read",)),
    "bots.info": Method(bots_info, READ),
}
