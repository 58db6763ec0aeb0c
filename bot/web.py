"""The HTTP side: Slack's requests checked before anything reads them, health, and the install pages."""

import json
import time
from typing import Any
from urllib.parse import parse_qs

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_sdk.signature import SignatureVerifier

from bot.clients import Clients
from bot.events import tenant_of
from bot.installs import Installs
from workflows import Engine
from workflows.storage import StoreUnavailableError

BODY_LIMIT = 1024 * 1024
"""Bytes. Slack's events are a few kilobytes; its largest interaction payloads some hundred."""
ENGINE = web.AppKey("engine", Engine)


class SlackRoutes:
    """The endpoints Slack calls. Bolt sees only requests that are signed, fresh, well-formed and of a known workspace."""

    def __init__(
        self, bolt: AsyncApp, oauth: AsyncOAuthFlow | None, clients: Clients, installs: Installs, *, signing_secret: str
    ) -> None:
        self._bolt = bolt
        self._flow = oauth
        self._clients = clients
        self._installs = installs
        self._verifier = SignatureVerifier(signing_secret)

    async def events(self, request: web.Request) -> web.Response:
        """Events, commands and interactivity: 400 malformed, 401 unsigned, 413 too large, 503 not stored, else 200."""
        began = time.perf_counter()
        response = await self._answer(request)
        took_ms = round((time.perf_counter() - began) * 1000, 1)
        structlog.get_logger().debug("slack_request", status=response.status, took_ms=took_ms)
        return response

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _refused(413, "the body is too large")
        if not self._signed(request, body):
            return _refused(401, "the signature is missing, wrong or old")
        envelope = _json(request, body)
        if envelope is None:
            return _refused(400, "the body is not what its content type says")
        try:
            return await self._accept(request, envelope)
        except StoreUnavailableError as error:
            structlog.get_logger().warning("not_accepted", error=str(error))
            return web.Response(status=503, text="not stored; deliver it again")

    def _signed(self, request: web.Request, body: bytes) -> bool:
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        try:
            return bool(timestamp and signature) and self._verifier.is_valid(body, timestamp, signature)
        except (ValueError, TypeError):
            return False

    async def _accept(self, request: web.Request, envelope: dict[str, Any]) -> web.Response:
        if envelope.get("type") == "event_callback":
            tenant = tenant_of(envelope)
            if not tenant:
                return web.Response(text="")
            if await self._clients.known(tenant) is None:
                await self._installs.keep(tenant, envelope)
                structlog.get_logger().info("event_of_unknown_workspace", tenant=tenant)
                return web.Response(text="")
        return await to_aiohttp_response(await self._bolt.async_dispatch(await to_bolt_request(request)))

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
            return await to_aiohttp_response(await getattr(self._flow, step)(await to_bolt_request(request)))
        except StoreUnavailableError:
            return web.Response(
                status=503,
                text="Threadline can't reach its database right now. Please try the installation again in a minute.",
            )


def _json(request: web.Request, body: bytes) -> dict[str, Any] | None:
    """The envelope of a JSON body; an empty one for forms, which Bolt reads; None if the body is malformed."""
    if request.content_type == "application/x-www-form-urlencoded":
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return None
        return {} if "=" in text and _payload_is_json(text) else None
    try:
        envelope = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return envelope if isinstance(envelope, dict) else None


def _payload_is_json(text: str) -> bool:
    for payload in parse_qs(text).get("payload", []):
        try:
            if not isinstance(json.loads(payload), dict):
                return False
        except (ValueError, RecursionError):
            return False
    return True


def _refused(status: int, reason: str) -> web.Response:
    structlog.get_logger().info("request_refused", status=status, reason=reason)
    return web.Response(status=status, text=reason)


async def _healthz(request: web.Request) -> web.Response:
    """The process lives."""
    return web.json_response({"ok": True})


async def _readyz(request: web.Request) -> web.Response:
    """It can take messages: its store answers."""
    try:
        await request.app[ENGINE].store.ping()
    except Exception as error:
        return web.json_response({"ok": False, "error": f"{type(error).__name__}"}, status=503)
    return web.json_response({"ok": True})


def make_web(engine: Engine, routes: SlackRoutes | None) -> web.Application:
    """The aiohttp application. `routes` None: health only, as workers and clocks serve it."""
    app = web.Application(client_max_size=BODY_LIMIT)
    app[ENGINE] = engine
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz)
    if routes is not None:
        app.router.add_post("/slack/events", routes.events)
        app.router.add_get("/slack/install", routes.install)
        app.router.add_get("/slack/oauth_redirect", routes.redirected)
    return app
