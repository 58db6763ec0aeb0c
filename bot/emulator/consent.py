"""/oauth/v2/authorize: the page where an admin lets the app into a workspace."""

import html
from collections.abc import Mapping
from pathlib import Path
from string import Template
from urllib.parse import urlencode, urljoin, urlsplit

from aiohttp import web

from bot.emulator.ids import new_secret
from bot.emulator.slack import Grant, Slack
from bot.emulator.workspace import Organization, User, Workspace

CODE_LIFE_S = 600.0
PLACE_COOKIE = "local_slack_place"
"""Set by the page: cookies know no ports, so it survives the way over the app's own address."""
PAGE = Template((Path(__file__).parent / "page" / "consent.html").read_text(encoding="utf-8"))
MEANING = {
    "app_mentions:read": "See messages that mention it",
    "assistant:write": "Act as an agent in direct messages",
    "channels:history": "Read messages in public channels it is in",
    "channels:read": "See the list of public channels",
    "chat:write": "Send messages",
    "commands": "Add slash commands",
    "files:read": "See files shared where it is",
    "files:write": "Upload files",
    "groups:history": "Read messages in private channels it is in",
    "groups:read": "See the private channels it is in",
    "im:history": "Read direct messages with it",
    "im:read": "See the direct messages it is in",
    "im:write": "Start direct messages",
    "mpim:history": "Read messages in group conversations it is in",
    "mpim:read": "See the group conversations it is in",
    "reactions:write": "Add reactions",
    "team:read": "See the workspace's name and address",
    "users:read": "See the people in the workspace",
    "users:read.email": "See e-mail addresses",
}


async def ask(slack: Slack, request: web.Request) -> web.StreamResponse:
    """Show what the app wants, for a workspace and a person to be chosen."""
    if problem := _problem(slack, request.query):
        return _failure(problem)
    scopes = _scopes(request.query)
    admins = [(w, person) for w in slack.workspaces.values() for person in w.people if person.is_admin]
    chosen = _chosen(admins, request.query.get("team", ""), request.cookies.get(PLACE_COOKIE, ""))
    options = [
        f'<option value="{workspace.org.id}:{person.id}">The whole of {html.escape(workspace.org.name)}, as '
        f"{html.escape(person.real_name)}</option>"
        for workspace, person in admins
        if workspace.org and _first_of(slack, workspace.org) is workspace
    ]
    options += [
        f'<option value="{workspace.id}:{person.id}"{" selected" if (workspace, person) == chosen else ""}>'
        f"{html.escape(workspace.name)}, as {html.escape(person.real_name)}</option>"
        for workspace, person in admins
    ]
    hidden = [
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
        for name, value in request.query.items()
        if name != "team"
    ]
    page = PAGE.substitute(
        app=html.escape(slack.config.app_name),
        about=html.escape(slack.config.app_description),
        hidden="".join(hidden),
        options="".join(options),
        letter=html.escape(slack.config.app_name[:1]),
        permissions=_permissions(slack.config.app_name, scopes),
    )
    return web.Response(text=page, content_type="text/html")


def _permissions(app: str, scopes: list[str]) -> str:
    """What the app could see, and what it could do: Slack tells the two apart."""
    seen = [scope for scope in scopes if scope.endswith((":read", ":history", ":read.email"))]
    done = [scope for scope in scopes if scope not in seen]
    return "".join(
        f"<details><summary>What will {html.escape(app)} be able to {what}?</summary><ul>{_listed(listed)}</ul></details>"
        for what, listed in (("view", seen), ("do", done))
        if listed
    )


def _listed(scopes: list[str]) -> str:
    return "".join(
        f"<li>{html.escape(MEANING.get(scope, scope))}<code>{html.escape(scope)}</code></li>" for scope in scopes
    )


def _chosen(admins: list[tuple[Workspace, User]], team: str, place: str) -> tuple[Workspace, User]:
    """Who most likely installs: an admin of `team`, else of the page one came from, whose place is ``T0HARBOR.U0DANA``.

    A place that has the app already says nothing: an installation there is begun on purpose only, by naming the team.
    """
    team_id, _, user_id = place.partition(".")

    def unlikely(entry: tuple[Workspace, User]) -> tuple[bool, ...]:
        workspace, person = entry
        return (
            workspace.id != team,
            workspace.installation is not None,
            workspace.id != team_id,
            person.id != user_id,
        )

    return min(admins, key=unlikely)


async def decide(slack: Slack, request: web.Request) -> web.StreamResponse:
    """Allow or Cancel: back to the app with a code, or with access_denied."""
    form = {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
    if problem := _problem(slack, form):
        return _failure(problem)
    redirect_uri = _redirect_uri(slack, form)
    answer = {"state": form["state"]} if form.get("state") else {}
    if form.get("decision") != "allow":
        return _redirect(redirect_uri, {"error": "access_denied", **answer})
    team_id, _, user_id = form.get("installer", "").partition(":")
    if not any(user_id in place.users for place in slack.workspaces.values() if team_id in _ids(place)):
        return _failure("That workspace does not exist.")
    code = new_secret("code.")
    expires_s = slack.clock.now() + CODE_LIFE_S
    slack.grants[code] = Grant(team_id, user_id, redirect_uri, tuple(_scopes(form)), expires_s)
    return _redirect(redirect_uri, {"code": code, **answer})


def _ids(place: Workspace) -> set[str]:
    """What an installation may name to come to a workspace: itself, or its organization."""
    return {place.id, place.org.id} if place.org else {place.id}


def _first_of(slack: Slack, org: Organization) -> Workspace:
    """The workspace whose admins speak for the organization."""
    return next(one for one in slack.workspaces.values() if one.org == org)


def _problem(slack: Slack, fields: Mapping[str, str]) -> str:
    """Why this request can not be answered, as Slack's error page would say it, or an empty string."""
    if not slack.config.client_id or fields.get("client_id") != slack.config.client_id:
        return "invalid_client_id: this Slack knows no app with that client id."
    if not _scopes(fields):
        return "no_scopes: the app asks for no permission."
    redirect_uri = _redirect_uri(slack, fields)
    if urlsplit(redirect_uri).scheme not in {"http", "https"}:
        return "bad_redirect_uri: there is no redirect_uri to go back to."
    known = slack.config.redirect_urls
    if known and not redirect_uri.startswith(known):
        return "bad_redirect_uri: that redirect_uri is not one of the app's."
    return ""


def _redirect_uri(slack: Slack, fields: Mapping[str, str]) -> str:
    """The one asked for, else the app's first, else the app's usual path beside its request URL: in dev it has a port only then."""
    beside = [urljoin(url, "/slack/oauth_redirect") for url in slack.deliveries.urls]
    return fields.get("redirect_uri") or next(iter([*slack.config.redirect_urls, *beside]), "")


def _scopes(fields: Mapping[str, str]) -> list[str]:
    return [scope for scope in fields.get("scope", "").replace(" ", ",").split(",") if scope]


def _redirect(redirect_uri: str, fields: Mapping[str, str]) -> web.StreamResponse:
    joint = "&" if urlsplit(redirect_uri).query else "?"
    return web.Response(status=302, headers={"Location": f"{redirect_uri}{joint}{urlencode(fields)}"})


def _failure(problem: str) -> web.StreamResponse:
    return web.Response(status=400, text=f"<!DOCTYPE html><p>{html.escape(problem)}</p>", content_type="text/html")
