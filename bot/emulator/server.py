"""The HTTP application: Web API, uploads, response URLs, OAuth, control API and the page."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from bot.emulator import consent, pages
from bot.emulator.api import answer
from bot.emulator.control import add_control_routes
from bot.emulator.errors import SlackError
from bot.emulator.responses import respond
from bot.emulator.slack import Slack

MAX_BODY_BYTES = 10 * 1024 * 1024
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
LOGIN_PAGE = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in</body></html>"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build_application(slack: Slack) -> web.Application:
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_only_from_here])
    app.router.add_route("*", "/api/{method}", _with(slack, answer))
    app.router.add_post("/upload/{file_id}", _with(slack, _upload))
    app.router.add_get("/files-pri/{place}/{name}", _with(slack, _download))
    app.router.add_get("/files-pri/{place}/download/{name}", _with(slack, _download))
    app.router.add_post("/response/{response_id}", _with(slack, _respond))
    app.router.add_get("/oauth/v2/authorize", _with(slack, consent.ask))
    app.router.add_post("/oauth/v2/authorize", _with(slack, consent.decide))
    app.router.add_get("/link/", _with(slack, _link))
    add_control_routes(app, slack)
    pages.add_page_routes(app)
    return app


def _with(slack: Slack, handler: Callable[[Slack, web.Request], Awaitable[web.StreamResponse]]) -> Handler:
    async def answer_request(request: web.Request) -> web.StreamResponse:
        return await handler(slack, request)

    return answer_request


@web.middleware
async def _only_from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse other sites' pages: a name that was rebound to 127.0.0.1, or a form posted from elsewhere."""
    host = urlsplit(f"//{request.host}").hostname
    origin = request.headers.get("Origin", "null")
    foreign = origin != "null" and urlsplit(origin).hostname not in LOOPBACK
    if host not in LOOPBACK or foreign:
        return web.json_response({"error": "The local Slack answers only to this machine."}, status=403)
    return await handler(request)


async def _link(slack: Slack, request: web.Request) -> web.StreamResponse:
    return await slack.deliveries.sockets.link(request)


async def _upload(slack: Slack, request: web.Request) -> web.StreamResponse:
    file = slack.files.find(request.match_info["file_id"])
    if file is None:
        return web.Response(status=404, text="no such upload")
    file.content = await request.read()
    return web.Response(text=f"OK - {len(file.content)}")


async def _download(slack: Slack, request: web.Request) -> web.StreamResponse:
    """The bytes, for a token of the same workspace with files:read; everybody else gets Slack's login page with 200."""
    team_id, _, file_id = request.match_info["place"].partition("-")
    file = slack.files.find(file_id)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    caller = slack.installation_of(token) if scheme == "Bearer" else None
    valid = caller is not None and not caller.revoked and not caller.expired(token, now_s=slack.clock.now())
    allowed = caller is not None and valid and "files:read" in caller.scopes and slack.has_app(caller, team_id)
    if file is None or file.content is None or file.team_id != team_id or not allowed:
        return web.Response(text=LOGIN_PAGE, content_type="text/html")
    return web.Response(body=file.content, content_type=file.mimetype)


async def _respond(slack: Slack, request: web.Request) -> web.StreamResponse:
    try:
        body = await request.json()
        respond(slack, request.match_info["response_id"], body if isinstance(body, dict) else {})
    except ValueError:
        return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
    except SlackError as error:
        status = 404 if error.code in {"expired_url", "used_url"} else 400
        return web.json_response({"ok": False, "error": error.code, **error.extra}, status=status)
    return web.json_response({"ok": True})
