"""The HTTP side: Slack's requests checked before anything reads them, health, and the install pages."""

import time

import aiohttp
import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier

from bot.bodies import Envelope, MalformedBodyError, read_body
from bot.bolt import AGAIN
from bot.clients import Clients, CredentialsUnavailableError
from bot.events import kind_of, tenant_of
from bot.ingress import Ingress
from bot.pages import failure_page
from bot.render.posting import UNKNOWN
from workflows import Engine
from workflows.storage import StoreUnavailableError

BODY_LIMIT = 1024 * 1024
"""Bytes. Slack's events are a few kilobytes; its largest interaction payloads some hundred."""
ENGINE = web.AppKey("engine", Engine)


class SlackRoutes:
    """The endpoints Slack calls. Bolt sees only requests that are signed, fresh, well-formed and of a known workspace."""

    def __init__(
        self, bolt: AsyncApp, oauth: AsyncOAuthFlow | None, clients: Clients, ingress: Ingress, *, signing_secret: str
    ) -> None:
        self._bolt = bolt
        self._flow = oauth
        self._clients = clients
        self._ingress = ingress
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
        except (aiohttp.ClientPayloadError, web.RequestPayloadError):
            return _refused(400, "the body can't be unpacked")
        if not self._signed(request, body):
            return _refused(401, "the signature is missing, wrong or old")
        try:
            envelope = read_body(request.content_type, body)
        except MalformedBodyError:
            return _refused(400, "the body is not what its content type says")
        try:
            return await self._accept(request, envelope)
        except (StoreUnavailableError, CredentialsUnavailableError) as error:
            structlog.get_logger().warning("not_accepted", error=str(error))
            return web.Response(status=503, text=AGAIN)

    def _signed(self, request: web.Request, body: bytes) -> bool:
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        try:
            return bool(timestamp and signature) and self._verifier.is_valid(body, timestamp, signature)
        except (ValueError, TypeError, ArithmeticError):
            return False

    async def _accept(self, request: web.Request, envelope: Envelope) -> web.Response:
        if "ssl_check" in envelope:
            return web.Response()
        if envelope.get("type") == "event_callback":
            if not isinstance(kind_of(envelope), str):
                return _refused(400, "the envelope holds no event")
            tenant = tenant_of(envelope)
            if not tenant:
                return web.Response()
            if await self._clients.known(tenant) is None:
                await self._ingress.hold(tenant, envelope)
                return web.Response()
        return await self._dispatched(request, envelope)

    async def _dispatched(self, request: web.Request, envelope: Envelope) -> web.Response:
        """Bolt's "socket mode" is a request that was verified and read already, which this one is."""
        try:
            asked = AsyncBoltRequest(mode="socket_mode", body=envelope, headers=dict(request.headers))
        except Exception as error:
            # Bolt looks for ids while it makes the request, and trips over fields of a type that Slack never sends.
            return _refused(400, f"the body can't be read: {type(error).__name__}")
        try:
            return await to_aiohttp_response(await self._bolt.async_dispatch(asked))
        except (AttributeError, LookupError, TypeError) as error:
            # What our listeners raise ends in Bolt's error handler. This is that handler itself, tripping on the same fields.
            return _refused(400, f"the body can't be read: {type(error).__name__}")

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
