"""The HTTP side: Slack's requests checked before anything reads them, health, and the install pages."""

import time
from collections.abc import Callable
from functools import partial

import aiohttp
import structlog
from aiohttp import web
from slack_bolt import BoltResponse
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_sdk.signature import SignatureVerifier

from bot.about import About
from bot.bodies import MalformedBodyError, read_body
from bot.clients import CredentialsUnavailableError
from bot.dispatch import Dispatch, refused
from bot.pages import failure_page
from bot.render.refusals import UNKNOWN
from workflows import Engine
from workflows.storage import StoreUnavailableError

BODY_LIMIT = 1024 * 1024
"""Bytes. Slack's events are a few kilobytes; its largest interaction payloads some hundred."""
ENGINE = web.AppKey("engine", Engine)
CONNECTED: web.AppKey[Callable[[], bool]] = web.AppKey("connected")


class SlackRoutes:
    """The endpoints Slack calls. Only requests that are signed, fresh and well-formed get further."""

    def __init__(self, dispatch: Dispatch, oauth: AsyncOAuthFlow | None, *, signing_secret: str) -> None:
        self._dispatch = dispatch
        self._flow = oauth
        self._verifier = SignatureVerifier(signing_secret) if signing_secret else None

    async def events(self, request: web.Request) -> web.Response:
        """Events, commands and interactivity: 400 malformed, 401 unsigned, 413 too large, 503 not stored, else 200."""
        began = time.perf_counter()
        response = await to_aiohttp_response(await self._answer(request))
        took_ms = round((time.perf_counter() - began) * 1000, 1)
        structlog.get_logger().debug("slack_request", status=response.status, took_ms=took_ms)
        return response

    async def _answer(self, request: web.Request) -> BoltResponse:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return refused(413, "the body is too large")
        except (aiohttp.ClientPayloadError, web.RequestPayloadError):
            return refused(400, "the body can't be unpacked")
        if not self._signed(request, body):
            return refused(401, "the signature is missing, wrong or old")
        try:
            envelope = read_body(request.content_type, body)
        except MalformedBodyError:
            return refused(400, "the body is not what its content type says")
        return await self._dispatch.answer(envelope, request.headers)

    def _signed(self, request: web.Request, body: bytes) -> bool:
        """Without a secret, as Socket Mode alone needs none, nothing is known to be Slack's."""
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        try:
            return self._verifier is not None and self._verifier.is_valid(body, timestamp, signature)
        except (ValueError, TypeError, ArithmeticError):
            return False

    async def install(self, request: web.Request) -> web.Response:
        """Begin an installation."""
        return await self._oauth(request, "handle_installation")

    async def redirected(self, request: web.Request) -> web.Response:
        """Slack sends the admin back here with a code."""
        return await self._oauth(request, "handle_callback")

    async def _oauth(self, request: web.Request, step: str) -> web.Response:
        if self._flow is None:
            return web.Response(status=404, text="This deployment serves one workspace; it is not installed by OAuth.")
        try:
            response = await getattr(self._flow, step)(await to_bolt_request(request))
        except (StoreUnavailableError, CredentialsUnavailableError, *UNKNOWN) as error:
            structlog.get_logger().warning("install_interrupted", step=step, error=f"{type(error).__name__}: {error}")
            response = failure_page("storage_error" if isinstance(error, StoreUnavailableError) else "unreachable")
        return await to_aiohttp_response(response)


async def _healthz(request: web.Request) -> web.Response:
    """The process lives."""
    return web.json_response({"ok": True})


async def _readyz(request: web.Request) -> web.Response:
    """It can take messages: its store answers, and in Socket Mode it has a connection."""
    try:
        await request.app[ENGINE].store.ping()
    except Exception as error:
        return web.json_response({"ok": False, "error": f"{type(error).__name__}"}, status=503)
    if not request.app[CONNECTED]():
        return web.json_response({"ok": False, "error": "no connection to Slack is open"}, status=503)
    return web.json_response({"ok": True})


async def _public(page: str, request: web.Request) -> web.Response:
    return web.Response(text=page, content_type="text/html")


def make_web(
    engine: Engine, routes: SlackRoutes | None, *, about: About, connected: Callable[[], bool] = lambda: True
) -> web.Application:
    """The aiohttp application. `routes` None: health only, as workers and clocks serve it. `connected`: whether Slack can reach it."""
    app = web.Application(client_max_size=BODY_LIMIT)
    app[ENGINE] = engine
    app[CONNECTED] = connected
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz)
    if routes is not None:
        app.router.add_post("/slack/events", routes.events)
        app.router.add_get("/slack/install", routes.install)
        app.router.add_get("/slack/oauth_redirect", routes.redirected)
        for path, page in (("/", about.landing()), ("/privacy", about.privacy()), ("/support", about.support())):
            app.router.add_get(path, partial(_public, page))
    return app
