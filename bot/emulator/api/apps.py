"""api.test, auth.*, apps.*: the token and the installation themselves."""

from bot.emulator.api.call import Call, Method
from bot.emulator.api.conversations import page
from bot.emulator.blocks import check_blocks
from bot.emulator.errors import SlackError
from bot.emulator.surfaces import check_view
from bot.emulator.workspace import Json


def api_test(call: Call) -> Json:
    if call.text("error"):
        raise SlackError(call.text("error"), args=call.args)
    return {"args": call.args}


def auth_test(call: Call) -> Json:
    installation = call.installation
    if installation.org_id:
        return _org_wide(call)
    workspace = call.workspace
    return {
        "url": f"https://{workspace.domain}.slack.com/",
        "team": workspace.name,
        "user": workspace.users[workspace.bot_user_id].handle,
        "team_id": workspace.id,
        "user_id": installation.bot_user_id,
        "bot_id": installation.bot_id,
        "is_enterprise_install": False,
    }


def _org_wide(call: Call) -> Json:
    installation = call.installation
    workspace = next(one for one in call.slack.workspaces.values() if one.installation is installation)
    assert workspace.org is not None
    return {
        "url": f"https://{workspace.org.name.lower().replace(' ', '-')}.enterprise.slack.com/",
        "team": workspace.org.name,
        "user": workspace.users[workspace.bot_user_id].handle,
        "team_id": workspace.org.id,
        "user_id": installation.bot_user_id,
        "bot_id": installation.bot_id,
        "enterprise_id": workspace.org.id,
        "is_enterprise_install": True,
    }


def teams_list(call: Call) -> Json:
    """The workspaces that an organization's token is good for; of a workspace's own token, that one."""
    found = [one for one in call.slack.workspaces.values() if one.installation is call.installation]
    return page(call, "teams", found, most=1000, show=lambda one: {"id": one.id, "name": one.name})


def auth_revoke(call: Call) -> Json:
    if not call.flag("test"):
        workspace = next(one for one in call.slack.workspaces.values() if one.installation is call.installation)
        call.slack.remove_app(workspace, error="token_revoked")
    return {"revoked": not call.flag("test")}


def uninstall(call: Call) -> Json:
    config = call.slack.config
    if call.text("client_id") != config.client_id:
        raise SlackError("invalid_client_id")
    if call.text("client_secret") != config.client_secret:
        raise SlackError("bad_client_secret")
    call.slack.remove_app(call.workspace, error="account_inactive")
    return {}


def connections_open(call: Call) -> Json:
    """An address for one WebSocket; asked for with the app's token, not a workspace's."""
    slack = call.slack
    if slack.deliveries.sockets.disabled:
        raise SlackError("forbidden_team")
    query = f"ticket={slack.deliveries.sockets.ticket()}&app_id={slack.config.app_id}"
    return {"url": f"{slack.url.replace('http', 'ws', 1)}/link/?{query}"}


def authorizations(call: Call) -> Json:
    """Every installation that an event is for: two, where both companies of a shared channel have the app."""
    told = call.slack.contexts.get(call.required("event_context"))
    if told is None:
        raise SlackError("invalid_event_context")
    return page(call, "authorizations", told, most=1000, show=dict)


def validate(call: Call) -> Json:
    """Whether Slack would take these blocks, this view or this message; no token is needed to ask. Exactly one is given."""
    given = [name for name in ("blocks", "view", "message") if call.args.get(name) is not None]
    if len(given) != 1:
        raise SlackError("invalid_arguments")
    value = call.structure(given[0], "invalid_arguments")
    if given[0] == "view":
        check_view(value, kind="", refusal="invalid_view")
    elif given[0] == "blocks":
        check_blocks(value)
    else:
        _check_message(value)
    return {}


def _check_message(message: object) -> None:
    if not isinstance(message, dict):
        raise SlackError("invalid_arguments")
    try:
        check_blocks(message.get("blocks") or [])
    except SlackError as error:
        raise SlackError("invalid_message", **error.extra) from None


METHODS = {
    "apps.event.authorizations.list": Method(authorizations, app_level=True, required=("event_context",)),
    "blocks.validate": Method(validate, open=True),
    "apps.connections.open": Method(connections_open, app_level=True),
    "api.test": Method(api_test, open=True),
    "auth.test": Method(auth_test),
    "auth.teams.list": Method(teams_list),
    "auth.revoke": Method(auth_revoke),
    "apps.uninstall": Method(uninstall),
}
