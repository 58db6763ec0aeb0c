"""The composition root: every part of the product, put together once per process. Each part can be given instead of made."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import Self

import structlog
from aiohttp import web

from agent.campaigns import AccountCap, AdPlatform, SandboxPlatform, campaign_tools
from agent.execution import BeforeTool
from agent.files import file_tools
from agent.forgetting import Forgetting
from agent.guidance import Guidance
from agent.loop import Agent, make_agent
from agent.messages import Transcript
from agent.models.base import Model
from agent.pictures import Pictures
from agent.preferences import PreferenceBook
from agent.recall import recall_tools
from agent.reports import ReportDesk, make_reports
from agent.stops import Stopper
from agent.tools import Tool, Toolbox
from bot.about import About
from bot.approvals import Decisions
from bot.arrival import Arrival
from bot.backends import (
    chosen_model,
    make_dedup,
    make_exporters,
    make_pacer,
    make_pubsub,
    make_store,
    model_sees,
)
from bot.bolt import make_bolt
from bot.commands import Campaigns, Commands, Report, Summaries, Threadline
from bot.dialogs import Dialogs
from bot.dispatch import Dispatch
from bot.files import SlackFiles
from bot.groups import Groups
from bot.history import SlackHistory
from bot.home import Home
from bot.ingress import Ingress
from bot.keyring import Keyring
from bot.membership import Membership
from bot.oauth import InstallFlow, make_flow
from bot.people import SlackPeople
from bot.ratings import Ratings
from bot.render import SlackChannel
from bot.settings import Settings
from bot.settings_dialog import SettingsDialog
from bot.sockets import Sockets
from bot.takeover import Takeover
from bot.thread_commands import ThreadCommands
from bot.web import SlackRoutes, make_web
from bot.welcome import Welcome
from bot.workspaces import Workspaces
from workflows import Engine
from workflows.dedup import DedupCache
from workflows.pubsub import PubSub
from workflows.storage import Retention, Store


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
        keyring: Keyring | None = None,
        model: Model | None = None,
        platform: AdPlatform | None = None,
        guidance: Guidance | None = None,
        before_tool: BeforeTool | None = None,
    ) -> None:
        self.settings = settings
        self._sockets: Sockets | None = None
        self.store = store or make_store(settings)
        self.dedup = dedup or make_dedup(settings)
        self.engine = Engine(
            store=self.store, pubsub=pubsub or make_pubsub(settings), worker=worker, clock=clock, concurrency=settings.concurrency,
            lease_s=settings.lease_s, beat_s=settings.beat_s, poll_s=settings.poll_s, deployment=settings.deployment,
            exporters=make_exporters(settings), sweeps=(self._forget_departed, self._check_up, self._reseal), grace_s=settings.grace_s, retention=Retention(runs_days=settings.retention_days),
            tenant_concurrency=settings.tenant_concurrency or max(1, settings.concurrency * 4 // 5),
        )  # fmt: skip
        self.workspaces = Workspaces(settings, self.engine, keyring=keyring)
        self.installs, self.clients = self.workspaces.installs, self.workspaces.clients
        self.people = SlackPeople(self.clients, installer=self.installs.installer)
        self.pacer = make_pacer(settings)
        self.channel = SlackChannel(
            self.clients,
            deadline_s=settings.delivery_deadline_s,
            pacer=self.pacer,
            cards=settings.tool_activity == "cards",
            team_of=self.people.team,
            group=Groups(self.store).has,
        )
        self.platform = platform or SandboxPlatform(self.store, clock=self.store.now)
        self.reports = make_reports(self.platform, self.channel, store=self.store)
        self.desk = ReportDesk(self.engine, self.reports)
        self.model = model or chosen_model(settings)
        if settings.environment == "production" and settings.model == "offline" and model is None:
            structlog.get_logger().warning(
                "offline_model_in_production", unsafe="it understands a small grammar; set THREADLINE_MODEL"
            )
        self.dialogs = Dialogs(self.clients)
        self.preferences = PreferenceBook(self.store)
        self.files = SlackFiles(self.clients, api_url=settings.slack_api_url)
        self.sees = model_sees(settings)
        self.tools = Toolbox(self._tools())
        self.guidance = guidance or Guidance()
        self.agent = self._agent(self.model, before_tool)
        self.dialog = SettingsDialog(self.preferences, self.platform, self.people, self.dialogs)
        self.home = Home(
            self.store, self.platform, self.people, self.clients, self.tools, install_url=settings.install_url
        )
        self.forgetting = Forgetting(self.engine, self.agent, self.channel)
        self.commands = self._commands()
        welcome, in_threads = Welcome(self.engine, self.channel), ThreadCommands(self.commands, self.channel)
        self.ingress = Ingress(
            self.engine, self.agent, self.clients, self.dedup, self.installs, removal=self.workspaces.removal, checkups=self.workspaces.checkups,
            commands=in_threads, home=self.home, people=self.people,
        )  # fmt: skip
        self.takeover = Takeover(self.engine, self.installs, self.clients, self.channel, self.workspaces.removal)
        self.arrival = Arrival(self.engine, self.installs, self.ingress, welcome, self.takeover)
        self.engine.add(
            *self.agent.workflows, *self.reports.workflows, *in_threads.workflows, self.arrival.workflow, self.takeover.workflow, welcome.workflow,
            self.forgetting.workflow,
        )  # fmt: skip

    async def _forget_departed(self) -> int:
        return await self.installs.forget_departed(self.workspaces.credentials)

    async def _check_up(self) -> int:
        return await self.workspaces.checkups.sweep()

    async def _reseal(self) -> int:
        return await self.workspaces.resealing.sweep()

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
            pictures=Pictures(Transcript(self.store), self.files) if self.sees else None,
            history=SlackHistory(self.clients, self.people, pacer=self.pacer),
            serves=self.clients.serves,
            teller=self.channel,
        )

    def _tools(self) -> Iterable[Tool]:
        transcript = Transcript(self.store)
        cap = AccountCap(self.platform, self._spend_cap, self.store)
        return (
            *campaign_tools(self.platform, cap),
            *self.desk.tools(),
            *file_tools(transcript, self.files, sees=self.sees),
            *recall_tools(transcript),
        )

    async def _spend_cap(self, tenant: str) -> int | None:
        return (await self.preferences.of(tenant)).spend_cap_micros

    def _commands(self) -> Commands:
        stopper = Stopper(self.engine, turn=self.agent.turn.id)
        return Commands(
            (
                Report(self.store, self.desk, self.platform, self.people),
                Campaigns(self.platform),
                Summaries(self.desk, self.people, Membership(self.clients)),
                Threadline(
                    self.store,
                    stopper=stopper,
                    desk=self.desk,
                    people=self.people,
                    settings=self.dialog,
                    forgetting=self.forgetting,
                ),
            )
        )

    def web(self, *, slack: bool = True) -> web.Application:
        """The HTTP application; without `slack`, only health."""
        if not slack:
            return make_web(self.engine, None, about=About.of(self.settings))
        secret = self.settings.slack_signing_secret.get_secret_value()
        routes = SlackRoutes(self.dispatch, self._oauth(), signing_secret=secret)
        return make_web(self.engine, routes, about=About.of(self.settings), connected=lambda: self.connected)

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
            decisions=Decisions(self.engine, self.agent, self.people, self.channel, self.dialogs),
            commands=self.commands,
            dialog=self.dialog,
            home=self.home,
            ratings=Ratings(self.engine, self.dialogs),
        )
        return Dispatch(bolt, self.clients, self.ingress, self.takeover)

    def _oauth(self) -> InstallFlow | None:
        return make_flow(self.settings, self.store, self.arrival.install) if self.settings.slack_client_id else None

    async def open(self) -> None:
        """Connect and begin. Raises StoreUnavailableError, SchemaError."""
        await self.engine.open()

    async def close(self) -> None:
        """Hand over every run at its next step boundary and disconnect. What fails to close keeps nothing else open; it is raised at the end."""
        async with AsyncExitStack() as closing:  # the last one first
            closing.push_async_callback(self.pacer.close)
            closing.push_async_callback(self.dedup.close)
            closing.push_async_callback(self.model.close)
            closing.push_async_callback(self.workspaces.disconnect)
            closing.push_async_callback(self.engine.close)
            closing.push_async_callback(self.workspaces.rest)
            closing.push_async_callback(self.home.close)
            if "dispatch" in self.__dict__:  # made when something is served
                closing.push_async_callback(self.dispatch.close)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
