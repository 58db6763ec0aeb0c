"""oauth.v2.access and oauth.v2.exchange: an installer's code, a refresh token or a token without an end becomes a bot token."""

from functools import partial

from bot.emulator.api.call import Call, Method
from bot.emulator.errors import SlackError
from bot.emulator.ids import new_secret
from bot.emulator.seed import install, install_in_org
from bot.emulator.slack import Grant
from bot.emulator.workspace import Installation, Json

TOKEN_LIFE_S = 43_200


def access(call: Call) -> Json:
    """A code is good once, for ten minutes, with the redirect URI it was given for; a refresh token is good once."""
    _check_client(call)
    kind = call.text("grant_type", "authorization_code")
    if kind == "refresh_token":
        return _refreshed(call)
    if kind != "authorization_code":
        raise SlackError("invalid_grant_type")
    grant = call.slack.grants.pop(call.text("code"), None)
    if grant is None or call.slack.clock.now() > grant.expires_s:
        raise SlackError("invalid_code")
    if call.text("redirect_uri", grant.redirect_uri) != grant.redirect_uri:
        raise SlackError("bad_redirect_uri")
    return _installed(call, grant)


def exchange(call: Call) -> Json:
    """A token without an end, of before rotation was switched on, becomes the first pair. It is good no longer then."""
    _check_client(call)
    if not call.slack.config.token_rotation:
        raise SlackError("token_rotation_not_enabled")
    installation = call.caller
    if installation is None:
        raise SlackError("invalid_token")
    if installation.revoked:
        raise SlackError("authorization_not_found")
    if installation.expires_s is not None:
        raise SlackError("token_already_exchanged")
    _rotate(call, installation)
    return _credentials(call, installation)


def _check_client(call: Call) -> None:
    client_id, client_secret = call.basic
    config = call.slack.config
    if not config.client_id or (client_id or call.text("client_id")) != config.client_id:
        raise SlackError("invalid_client_id")
    if (client_secret or call.text("client_secret")) != config.client_secret:
        raise SlackError("bad_client_secret")


def _refreshed(call: Call) -> Json:
    given = call.text("refresh_token")
    live = [workspace.installation for workspace in call.slack.workspaces.values() if workspace.installation]
    installation = next((one for one in live if given and one.refresh_token == given), None)
    if installation is None:
        raise SlackError("invalid_refresh_token")
    _rotate(call, installation)
    return _credentials(call, installation)


def _installed(call: Call, grant: Grant) -> Json:
    slack = call.slack
    places = [one for one in slack.workspaces.values() if grant.team_id in {one.id, one.org.id if one.org else ""}]
    org_wide = grant.team_id not in slack.workspaces
    before = places[0].installation
    if before is not None and bool(before.org_id) is not org_wide and before.org_id:
        raise SlackError("cannot_install_an_org_installed_app")
    # Without token rotation a second installation gets the token it already has.
    token = before.token if before and bool(before.org_id) is org_wide else new_secret(f"xoxb-{grant.team_id}-")
    put = partial(install_in_org, places) if org_wide else partial(install, places[0])
    installation = put(token, scopes=grant.scopes, installer_id=grant.user_id)
    if slack.config.token_rotation:
        _rotate(call, installation)
    for place in places:
        slack.updates.publish("workspace", team=place.id)
    return {**_credentials(call, installation), "authed_user": {"id": grant.user_id}}


def _rotate(call: Call, installation: Installation) -> None:
    token = new_secret(f"xoxe.xoxb-1-{installation.team_id or installation.org_id}-")
    installation.rotate(token, new_secret("xoxe-1-"), expires_s=call.slack.clock.now() + TOKEN_LIFE_S)


def _credentials(call: Call, installation: Installation) -> Json:
    workspace = next(one for one in call.slack.workspaces.values() if one.installation is installation)
    org = workspace.org
    rotates = installation.expires_s is not None
    return {
        "app_id": call.slack.config.app_id,
        "scope": ",".join(installation.scopes),
        "token_type": "bot",
        "access_token": installation.token,
        "bot_user_id": installation.bot_user_id,
        "team": None if workspace.org_wide else {"id": workspace.id, "name": workspace.name},
        "enterprise": {"id": org.id, "name": org.name} if org else None,
        "is_enterprise_install": workspace.org_wide,
        **({"expires_in": TOKEN_LIFE_S, "refresh_token": installation.refresh_token} if rotates else {}),
    }


METHODS = {"oauth.v2.access": Method(access, open=True), "oauth.v2.exchange": Method(exchange, open=True)}
