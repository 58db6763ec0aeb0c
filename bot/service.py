"""The composition root: every part of the product, put together once per process. Each part can be given instead of made."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Self

import structlog
from aiohttp import web
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.web.async_client import AsyncWebClient

from agent.calls import BeforeTool
from agent.campaigns import AccountCap, AdPlatform, SandboxPlatform, campaign_tools
from agent.files import file_tools
from agent.guidance import Guidance
from agent.loop import Agent, make_agent
from agent.messages import Transcript
from agent.models import make_model
from agent.models.base import Model
from agent.preferences import PreferenceBook
from agent.reports import ReportDesk, make_reports
from agent.schema import AGENT
from agent.stops import Stopper
from agent.tools import Tool, Toolbox
from bot.actions import Decisions
from bot.bolt import InstallFlow, make_bolt, oauth_settings
from bot.clients import Clients, CredentialSource, EitherSource, OneWorkspace
from bot.commands import Campaigns, Commands, Report, Summaries, Threadline
from bot.departures import Departures
from bot.dispatch import Dispatch
from bot.files import SlackFiles
from bot.history import SlackHistory
from bot.home import Home
from bot.ingress import Ingress
from bot.installs import INSTALLATIONS, Installs, tenant_of_installation
from bot.keyring import Keyring, KeyringError
from bot.oauth import InstallationStore
from bot.people import SlackPeople
from bot.ratings import Ratings
from bot.render import SlackChannel
from bot.render.pacing import MemoryPacer, Pacer, RedisPacer
from bot.rotation import Rotation
from bot.schema import BOT
from bot.settings import Settings, SettingsError
from bot.settings_dialog import SettingsDialog
from bot.sockets import Sockets
from bot.thread_commands import ThreadCommands
from bot.web import SlackRoutes, make_web
from bot.welcome import Welcome
from workflows import Engine
from workflows.dedup import DedupCache, MemoryDedupCache, RedisDedupCache
from workflows.pubsub import MemoryPubSub, PubSub, RedisPubSub
from workflows.storage import PostgresStore, Retention, Schema, SqliteStore, Store
from workflows.tracing import SpanSink
from workflows.tracing.otel import OtelSink

TABLES: tuple[Schema, ...] = (AGENT, BOT)
"""What the floors above the engine store, with the migrations that led there."""


class Service:
    """One process of the product. `worker` and `clock` say which roles it plays besides serving HTTP."""

    def __init__(
        self,
        settings: Settings,
        *,
        worker: bool,
        clock: bool,
        store: Store | None = None,
        pubsub: PubSub | None = None,
        dedup: DedupCache | None = None,
        model: Model | None = None,
        platform: AdPlatform | None = None,
        guidance: Guidance | None = None,
        before_tool: BeforeTool | None = None,
    ) -> None:
        self.settings = settings
        self._sockets: Sockets | None = None
        self.store = store or _store(settings)
        self.dedup = dedup or _dedup(settings)
        self.engine = Engine(
            store=self.store, pubsub=pubsub or _pubsub(settings), worker=worker, clock=clock, concurrency=settings.concurrency,
            lease_s=settings.lease_s, beat_s=settings.beat_s, poll_s=settings.poll_s, deployment=settings.deployment,
            exporters=_exporters(settings), sweeps=(self._forget_departed,), grace_s=settings.grace_s, retention=Retention(runs_days=settings.retention_days),
            tenant_concurrency=settings.tenant_concurrency or max(1, settings.concurrency * 4 // 5),
        )  # fmt: skip
        keyring = _keyring(settings)
        self.rotation = Rotation(
            self.store, keyring, INSTALLATIONS,
            client=AsyncWebClient(base_url=settings.slack_api_url, timeout=5, retry_handlers=[]),
            client_id=settings.slack_client_id, client_secret=settings.slack_client_secret.get_secret_value(),
        )  # fmt: skip
        departures = Departures(self.store, kept=timedelta(days=settings.departed_days))
        self.installs = Installs(self.store, keyring, self.rotation, departures)
        self.credentials = _credentials(settings, self.installs)
        self.clients = Clients(
            self.credentials,
            api_url=settings.slack_api_url,
            timeout_s=settings.delivery_deadline_s / 2,
        )
        self.people = SlackPeople(self.clients)
        self.pacer = _pacer(settings)
        self.channel = SlackChannel(
            self.clients,
            deadline_s=settings.delivery_deadline_s,
            pacer=self.pacer,
            cards=settings.tool_activity == "cards",
            team_of=self.people.team,
        )
        self.platform = platform or SandboxPlatform(self.store, clock=self.store.now)
        self.reports = make_reports(self.platform, self.channel)
        self.desk = ReportDesk(self.engine, self.reports)
        self.model = model or _model(settings)
        if settings.environment == "production" and settings.model == "offline" and model is None:
            structlog.get_logger().warning(
                "offline_model_in_production", unsafe="it understands a small grammar; set THREADLINE_MODEL"
            )
        self.preferences = PreferenceBook(self.store)
        self.tools = Toolbox(self._tools())
        self.guidance = guidance or Guidance()
        self.agent = self._agent(self.model, before_tool)
        self.dialog = SettingsDialog(self.preferences, self.platform, self.people, self.clients)
        self.home = Home(self.store, self.platform, self.people, self.clients, self.tools)
        self.commands = self._commands()
        self.welcome = Welcome(self.engine, self.channel)
        in_threads = ThreadCommands(self.commands, self.channel)
        self.engine.add(*self.agent.workflows, *self.reports.workflows, self.welcome.workflow, in_threads.workflow)
        self.ingress = Ingress(
            self.engine, self.agent, self.clients, self.dedup, self.installs, commands=in_threads, home=self.home
        )

    async def _forget_departed(self) -> int:
        return await self.installs.forget_departed(self.credentials)

    def _agent(self, model: Model, before_tool: BeforeTool | None) -> Agent:
        return make_agent(
            store=self.store,
            model=model,
            toolbox=self.tools,
            guidance=self.guidance,
            channel=self.channel,
            people=self.people,
            tracer=self.engine.tracer,
            before_tool=before_tool,
            history=SlackHistory(self.clients, self.people, pacer=self.pacer),
        )

    def _tools(self) -> Iterable[Tool]:
        files = SlackFiles(self.clients, api_url=self.settings.slack_api_url)
        cap = AccountCap(self.platform, self._spend_cap)
        return (*campaign_tools(self.platform, cap), *self.desk.tools(), *file_tools(Transcript(self.store), files))

    async def _spend_cap(self, tenant: str) -> int | None:
        return (await self.preferences.of(tenant)).spend_cap_micros

    def _commands(self) -> Commands:
        stopper = Stopper(self.engine, turn=self.agent.turn.id)
        return Commands(
            (
                Report(self.store, self.desk, self.platform, self.people),
                Campaigns(self.platform),
                Summaries(self.desk, self.people),
                Threadline(self.store, stopper, self.desk, self.people, self.dialog),
            )
        )

    def web(self, *, slack: bool = True) -> web.Application:
        """The HTTP application; without `slack`, only health."""
        if not slack:
            return make_web(self.engine, None)
        secret = self.settings.slack_signing_secret.get_secret_value()
        routes = SlackRoutes(self.dispatch, self._oauth(), signing_secret=secret)
        return make_web(self.engine, routes, connected=lambda: self.connected)

    @property
    def connected(self) -> bool:
        """Whether Slack can reach this process as far as it knows: over HTTP always, in Socket Mode while a connection is open."""
        return self._sockets is None or self._sockets.connected

    @asynccontextmanager
    async def listening_to_slack(self) -> AsyncIterator[None]:
        """In Socket Mode, hold the connections open meanwhile; over HTTP there is nothing to do."""
        token = self.settings.slack_app_token.get_secret_value()
        if not token:
            yield
            return
        self._sockets = Sockets(
            token, self.dispatch.answer, api_url=self.settings.slack_api_url,
            count=self.settings.socket_connections, ping_s=self.settings.socket_ping_s,
        )  # fmt: skip
        await self._sockets.start()
        try:
            yield
        finally:
            await self._sockets.close()

    @cached_property
    def dispatch(self) -> Dispatch:
        """Where everything that Slack sends is answered."""
        bolt = make_bolt(
            self.settings,
            clients=self.clients,
            ingress=self.ingress,
            decisions=Decisions(self.engine, self.agent, self.people, self.channel, self.clients),
            commands=self.commands,
            dialog=self.dialog,
            home=self.home,
            ratings=Ratings(self.engine, self.clients),
        )
        return Dispatch(bolt, self.clients, self.ingress)

    def _oauth(self) -> InstallFlow | None:
        if not self.settings.slack_client_id:
            return None
        settings = oauth_settings(self.settings, self.store, InstallationStore(self.installs), self._installed)
        return InstallFlow(client=AsyncWebClient(base_url=self.settings.slack_api_url, timeout=5), settings=settings)

    async def _installed(self, installation: Installation) -> None:
        """What was said just before is taken in, and whoever installed is greeted."""
        tenant = tenant_of_installation(installation)
        await self.ingress.replay(tenant)
        if installation.user_id:
            place = installation.team_name or installation.enterprise_name or "your workspace"
            await self.welcome.greet(tenant, installer=installation.user_id, place=place)

    async def open(self) -> None:
        """Connect and begin. Raises StoreUnavailableError, SchemaError."""
        await self.engine.open()

    async def close(self) -> None:
        """Hand over every run at its next step boundary and disconnect."""
        await self.rotation.close()
        await self.engine.close()
        await self.model.close()
        await self.dedup.close()
        await self.pacer.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _store(settings: Settings) -> Store:
    if settings.database_url.startswith(("postgres://", "postgresql://")):
        return PostgresStore(settings.database_url, tables=TABLES)
    if settings.database_url:
        raise SettingsError("DATABASE_URL must begin with postgresql://; leave it empty for the embedded SQLite file")
    settings.make_data_dir()
    return SqliteStore(settings.sqlite_path, tables=TABLES)


def _pubsub(settings: Settings) -> PubSub:
    return RedisPubSub(settings.redis_url, settings.redis_prefix) if settings.redis_url else MemoryPubSub()


def _exporters(settings: Settings) -> tuple[SpanSink, ...]:
    """OpenTelemetry where its collector is named. Raises SettingsError if the extra is not installed."""
    if not settings.otlp_endpoint:
        return ()
    attributes = {"threadline.deployment": settings.deployment} if settings.deployment else None
    try:
        return (OtelSink(endpoint=f"{settings.otlp_endpoint.rstrip('/')}/v1/traces", attributes=attributes),)
    except ImportError as error:
        raise SettingsError(f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but {error}") from None


def _dedup(settings: Settings) -> DedupCache:
    return RedisDedupCache(settings.redis_url, settings.redis_prefix) if settings.redis_url else MemoryDedupCache()


def _pacer(settings: Settings) -> Pacer:
    return RedisPacer(settings.redis_url, settings.redis_prefix) if settings.redis_url else MemoryPacer()


def _keyring(settings: Settings) -> Keyring:
    keys, path = settings.encryption_keys.get_secret_value(), Path(settings.data_dir) / "encryption.key"
    try:
        return Keyring.parse(keys) if keys else Keyring.of_file(path)
    except KeyringError as error:
        raise SettingsError(f"{'THREADLINE_ENCRYPTION_KEYS' if keys else path}: {error}") from None


def _credentials(settings: Settings, installs: Installs) -> CredentialSource:
    token = settings.slack_bot_token.get_secret_value()
    sources: Iterable[CredentialSource] = (OneWorkspace(token, api_url=settings.slack_api_url),) if token else ()
    return EitherSource(installs, *sources)


def _model(settings: Settings) -> Model:
    try:
        return make_model(
            settings.model,
            anthropic_api_key=settings.anthropic_api_key.get_secret_value() or None,
            anthropic_base_url=settings.anthropic_base_url or None,
            openai_api_key=settings.openai_api_key.get_secret_value() or None,
            openai_base_url=settings.openai_base_url or None,
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None
