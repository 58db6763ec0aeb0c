"""An organization that installs the app takes the place of installations of its workspaces: what goes on there goes on as the organization's.

Slack names the organization with what happens in a workspace from then on, so that nothing would find what the workspace had begun.
"""

from dataclasses import replace

import structlog
from pydantic import BaseModel, ConfigDict
from slack_sdk.errors import SlackApiError

from agent.approvals import waiting
from agent.channel import DELIVERY_RETRY, ChannelUnavailableError
from agent.messages import PARTICIPATION
from bot.clients import Clients, CredentialsUnavailableError, UnknownTenantError
from bot.installs import Installs
from bot.removal import Removal
from bot.render import SlackChannel
from bot.render.refusals import UNKNOWN
from workflows import Effect, Engine, StepContext, Workflow, step, workflow
from workflows.storage import Insert, Select

TRIES = 5
"""Tries that wait until the cards can be edited; the rest is not to be held up for ever."""
BATCH = 200
PAGES = 100


class Taking(BaseModel):
    """The workspace that an organization takes over."""

    model_config = ConfigDict(frozen=True)

    team: str


class Takeover:
    """The workflow, and what starts it. Each part of it may be done again: the workspace's installation ends last."""

    def __init__(
        self, engine: Engine, installs: Installs, clients: Clients, channel: SlackChannel, removal: Removal
    ) -> None:
        self._engine = engine
        self._installs = installs
        self._clients = clients
        self._channel = channel
        self._removal = removal
        taking = step(id="take", effect=Effect.IDEMPOTENT, retry=DELIVERY_RETRY)(self._take)
        self.workflow: Workflow[Taking, None] = workflow("takeover").then(taking).commit()

    async def begin(self, org: str, team: str) -> bool:
        """Take a workspace over if it has an installation of its own. Raises StoreUnavailableError."""
        if not team or team == org or not await self._installs.installed(team):
            return False
        await self._engine.start(self.workflow, Taking(team=team), tenant=org, key=f"takeover:{team}")
        return True

    async def begin_all(self, org: str) -> None:
        """The same for all workspaces that an organization has given to the app, as far as Slack says which; others when they speak.

        Raises StoreUnavailableError.
        """
        try:
            await self._begin_all(org)
        except (SlackApiError, UnknownTenantError, CredentialsUnavailableError, *UNKNOWN) as error:
            structlog.get_logger().warning(
                "workspaces_not_listed", tenant=org, error=f"{type(error).__name__}: {error}"
            )

    async def _begin_all(self, org: str) -> None:
        client, cursor = await self._clients.of(org), ""
        for _ in range(PAGES):
            page = await client.auth_teams_list(limit=1000, cursor=cursor)
            for team in page.get("teams") or ():
                await self.begin(org, str(team["id"]))
            if not (cursor := str((page.get("response_metadata") or {}).get("next_cursor") or "")):
                return

    async def _take(self, taking: Taking, ctx: StepContext) -> None:
        org, team = ctx.tenant, taking.team
        if not await self._installs.installed(team):
            return
        await self._schedules(org, team)
        await self._threads(org, team)
        await self._cards(org, team, ctx)
        await self._removal.replaced(team)
        structlog.get_logger().info("workspace_taken_over", tenant=org, team=team)

    async def _schedules(self, org: str, team: str) -> None:
        store = self._engine.store
        while schedules := await store.schedules(tenant=team, limit=BATCH):
            for each in schedules:
                if await store.schedule(tenant=org, name=each.name) is None:
                    await store.put_schedule(replace(each, tenant=org), keep_paused=True)
                await store.delete_schedule(tenant=team, name=each.name)

    async def _threads(self, org: str, team: str) -> None:
        """The agent takes part where it did; what was said before it reads in the thread itself, as in any that it is brought into."""
        store = self._engine.store
        rows = await store.read(Select(PARTICIPATION, {"tenant": team}))
        for start in range(0, len(rows), BATCH):
            await store.write(*(Insert(PARTICIPATION, {**row, "tenant": org}) for row in rows[start : start + BATCH]))

    async def _cards(self, org: str, team: str, ctx: StepContext) -> None:
        """What was asked for is shown to have expired, and may be asked for again: who decides is the organization's to say now."""
        left = 0
        for each in await waiting(self._engine.store, team):
            thread = each.thread.model_copy(update={"tenant": org})
            card = each.card.model_copy(update={"state": "expired"})
            left += not await self._channel.settle(thread, each.places, card)
        if left and ctx.attempt <= TRIES:
            raise ChannelUnavailableError(f"{left} cards could not be edited")
