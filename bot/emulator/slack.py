"""The local Slack itself: everything it holds, and how its parts find each other."""

from collections import deque
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bot.emulator import events, seed
from bot.emulator.clock import Clock
from bot.emulator.config import EmulatorConfig
from bot.emulator.delivery import Deliveries, Delivery
from bot.emulator.faults import Faults
from bot.emulator.files import Files
from bot.emulator.interactions import Interactions
from bot.emulator.limits import Limits
from bot.emulator.messages import Message, Timeline
from bot.emulator.scheduled import Scheduled
from bot.emulator.sessions import Sessions
from bot.emulator.subscriptions import subscribed
from bot.emulator.updates import Updates
from bot.emulator.workspace import Channel, Installation, Json, User, Workspace

CONTEXTS = 2000
"""Events whose authorizations can still be asked for."""


@dataclass(frozen=True, slots=True)
class Grant:
    """An OAuth code: what was allowed, until `expires_s`, in a workspace, or in the whole organization that `team_id` names."""

    team_id: str
    user_id: str
    redirect_uri: str
    scopes: tuple[str, ...]
    expires_s: float


@dataclass(slots=True)
class Slack:
    """All state of one emulator, in memory. `url` is its own address, known once it listens."""

    config: EmulatorConfig
    clock: Clock
    updates: Updates
    deliveries: Deliveries
    sessions: Sessions
    interactions: Interactions
    limits: Limits
    scheduled: Scheduled
    workspaces: dict[str, Workspace]
    timeline: Timeline = field(default_factory=Timeline)
    faults: Faults = field(default_factory=Faults)
    files: Files = field(default_factory=Files)
    calls: deque[Json] = field(default_factory=lambda: deque(maxlen=5000))
    grants: dict[str, Grant] = field(default_factory=dict)
    revoked: dict[str, Installation] = field(default_factory=dict)
    contexts: dict[str, list[Json]] = field(default_factory=dict)
    url: str = ""

    @classmethod
    def create(cls, config: EmulatorConfig, clock: Clock) -> "Slack":
        updates = Updates()
        made = [seed.northwind(config), seed.harbor(config), *(seed.meridian(config) if config.grid else ())]
        workspaces = {workspace.id: workspace for workspace in made}
        return cls(
            config,
            clock,
            updates,
            Deliveries(config, clock, updates),
            Sessions(clock, updates),
            Interactions(clock),
            Limits(clock, enforced=config.rate_limits, commercial=config.commercial),
            Scheduled(clock),
            workspaces,
        )

    @property
    def home(self) -> Workspace:
        """The workspace meant when none is named."""
        return next(iter(self.workspaces.values()))

    def installation_of(self, token: str) -> Installation | None:
        """The installation `token` belongs to, also when it was revoked."""
        live = (workspace.installation for workspace in self.workspaces.values())
        known = next((one for one in live if one and one.knows(token)), None)
        return known or next((one for one in self.revoked.values() if one.knows(token)), None)

    def has_app(self, installation: Installation, team_id: str) -> bool:
        """Whether `installation` is that of the workspace `team_id`, or of the organization which that is or belongs to."""
        workspace = self.workspaces.get(team_id)
        whole = bool(team_id) and team_id == installation.org_id and not installation.revoked
        return whole or (workspace is not None and workspace.installation is installation)

    def workspace_of(self, channel_id: str) -> Workspace | None:
        return next((one for one in self.workspaces.values() if channel_id in one.channels), None)

    def channel(self, message: Message) -> Channel:
        return self.workspaces[message.team_id].channels[message.channel_id]

    def user(self, user_id: str) -> User | None:
        return next((one.users[user_id] for one in self.workspaces.values() if user_id in one.users), None)

    def hears(self, channel: Channel) -> bool:
        """Whether the app is told what happens in `channel`: it is installed, and a member."""
        workspace = self.workspaces[channel.team_id]
        return workspace.installation is not None and workspace.bot_user_id in channel.members

    def emit(self, team_id: str, *bodies: Json) -> list[Delivery]:
        """Deliver what the app subscribes to of one workspace's events, the first attempts in this order."""
        workspace = self.workspaces[team_id]
        told = [body for body in bodies if subscribed(self.config, workspace.installation, body)]
        return self.deliveries.send(*(self._enveloped(body, workspace) for body in told))

    def _enveloped(self, body: Json, workspace: Workspace) -> Json:
        """In a channel shared with another company the envelope names the author's workspace, and who is told only in `authorizations`."""
        wrapped = events.envelope(body, workspace, app_id=self.config.app_id, now_s=self.clock.now())
        channel = workspace.channels.get(str(body.get("channel")))
        others = (
            [self.workspaces[team_id] for team_id in channel.shared_with if team_id in self.workspaces]
            if channel
            else []
        )
        told = [events.authorization(one) for one in (workspace, *others) if one.installation]
        self.contexts[wrapped["event_context"]] = told
        if len(self.contexts) > CONTEXTS:
            del self.contexts[next(iter(self.contexts))]
        if channel is None or not channel.shared_with:
            return wrapped
        team_id = str(body.get("user_team") or workspace.id)
        return {**wrapped, "team_id": team_id, "context_team_id": team_id, "is_ext_shared_channel": True}

    def unfurls(self, url: str) -> bool:
        """Whether the app's manifest names the domain of `url`, or one above it."""
        host = urlsplit(url).hostname or ""
        return any(host == domain or host.endswith(f".{domain}") for domain in self.config.unfurl_domains)

    def permalink(self, message: Message) -> str:
        thread = f"&thread_ts={message.thread_ts}" if message.thread_ts else ""
        return f"{self.url}/#channel={message.channel_id}&ts={message.ts}{thread}"

    def wire(self, message: Message, *, include_metadata: bool = False) -> Json:
        """A message as the Web API and events show it, with its place in the thread."""
        body = {**message.wire(include_metadata=include_metadata), **self.timeline.thread_counts(message)}
        if message.thread_ts and message.thread_ts != message.ts:
            root = self.timeline.find(message.channel_id, message.thread_ts)
            if root:
                body["parent_user_id"] = root.user_id
        author = self.user(message.user_id)
        if author and not author.is_bot and self.channel(message).shared_with:
            body |= {"team": author.team_id, "user_team": author.team_id, "source_team": author.team_id}
        return body

    def sees(self, installation: Installation, user: User) -> bool:
        """Whether the app may know of a person: one of its own workspace, or one it shares a channel with."""
        channels = (channel for one in self.workspaces.values() for channel in one.channels.values())
        shared = (one for one in channels if one.shared_with and installation.bot_user_id in one.members)
        return self.has_app(installation, user.team_id) or any(user.id in one.members for one in shared)

    def remove_app(self, workspace: Workspace, *, error: str, tell: bool = True, order: str = "") -> None:
        """End the installation in `workspace`: its token answers `error` from now on, and the app is told, unless that comes later.

        `order` names the event that is sent first of the two, by default that of the configuration.
        """
        installation, first = workspace.installation, order or self.config.uninstall_order
        if installation is None:
            return
        ts = self.clock.timestamp()
        if tell:
            pair = [events.app_uninstalled(ts=ts), events.tokens_revoked(installation, ts=ts)]
            self.emit(workspace.id, *(pair if first == "app_uninstalled" else pair[::-1]))
        installation.revoked = error
        self.revoked[installation.token] = installation
        for each in [one for one in self.workspaces.values() if one.installation is installation]:
            each.installation = None
            for channel in each.channels.values():
                if channel.kind != "im" and each.bot_user_id in channel.members:
                    channel.members.remove(each.bot_user_id)
            self.updates.publish("workspace", team=each.id)
