"""oauth.v2.access: an installer's code becomes a bot token."""

from bot.emulator.api.call import Call, Method
from bot.emulator.errors import SlackError
from bot.emulator.ids import new_secret
from bot.emulator.seed import install
from bot.emulator.slack import Grant
from bot.emulator.workspace import Json


def access(call: Call) -> Json:
    """A code is good once, for ten minutes, with the redirect URI it was given for."""
    _check_client(call)
    grant = call.slack.grants.pop(call.text("code"), None)
    if grant is None or call.slack.clock.now() > grant.expires_s:
        raise SlackError("invalid_code")
    if call.text("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
        raise SlackError("bad_redirect_uri")
    return _installed(call, grant)


def _check_client(call: Call) -> None:
    client_id, client_secret = call.basic
    config = call.slack.config
    if not config.client_id or (client_id or call.text("client_id")) != config.client_id:
        raise SlackError("invalid_client_id")
    if (client_secret or call.text("client_secret")) != config.client_secret:
        raise SlackError("bad_client_secret")
    if call.text("grant_type", "authorization_code") != "authorization_code":
        raise SlackError("invalid_grant_type")


def _installed(call: Call, grant: Grant) -> Json:
    workspace = call.slack.workspaces[grant.team_id]
    # Without token rotation a second installation gets the token it already has.
    token = workspace.installation.token if workspace.installation else new_secret(f"xoxb-{workspace.id}-")
    installation = install(workspace, token, scopes=grant.scopes, installer_id=grant.user_id)
    call.slack.updates.publish("workspace", team=workspace.id)
    return {
        "app_id": call.slack.config.app_id,
        "authed_user": {"id": grant.user_id},
        "scope": ",".join(grant.scopes),
        "token_type": "bot",
        "access_token": token,
        "bot_user_id": installation.bot_user_id,
        "team": {"id": workspace.id, "name": workspace.name},
        "enterprise": None,
        "is_enterprise_install": False,
    }


METHODS = {"oauth.v2.access": Method(access, open=True)}
