"""A workspace that installs the app: what it said just before is taken in, and whoever installed it is greeted.

The installation is written in the commit that begins this work, so that neither is there without the other, whatever dies meanwhile.
"""

import asyncio
from uuid import uuid4

import structlog
from pydantic import BaseModel, ConfigDict
from slack_sdk.oauth.installation_store.models.installation import Installation

from agent.channel import DELIVERY_RETRY
from bot.ingress import Ingress
from bot.installs import Installs, tenant_of_installation
from bot.takeover import Takeover
from bot.welcome import Welcome
from workflows import Effect, Engine, StepContext, Workflow, step, workflow
from workflows.storage import StoreUnavailableError

TRIES = 3
PAUSE_S = 0.2


class Arrived(BaseModel):
    """Who installed the app, if Slack says so, and the name of where."""

    model_config = ConfigDict(frozen=True)

    installer: str
    place: str


class Arrival:
    """The workflow, and what starts it."""

    def __init__(
        self, engine: Engine, installs: Installs, ingress: Ingress, welcome: Welcome, takeover: Takeover
    ) -> None:
        self._engine = engine
        self._installs = installs
        self._ingress = ingress
        self._welcome = welcome
        self._takeover = takeover
        replaying = step(id="replay", effect=Effect.IDEMPOTENT, retry=DELIVERY_RETRY)(self._replay)
        greeting = step(id="greet", effect=Effect.IDEMPOTENT, retry=DELIVERY_RETRY)(self._greet)
        self.workflow: Workflow[Arrived, Arrived] = workflow("arrival").then(replaying).then(greeting).commit()

    async def install(self, installation: Installation) -> None:
        """Insert or replace an installation. Raises StoreUnavailableError, also while the data of one before is being deleted."""
        tenant = tenant_of_installation(installation)
        place = installation.team_name or installation.enterprise_name or "your workspace"
        arrived = Arrived(installer=installation.user_id or "", place=place)
        await self._begun(tenant, installation, arrived, run_id=str(uuid4()))
        self._installs.refresh(tenant)
        structlog.get_logger().info("app_installed", tenant=tenant, team=place)

    async def _begun(self, tenant: str, installation: Installation, arrived: Arrived, *, run_id: str) -> None:
        """A code of Slack's works once, so that a moment without storage is waited out. A lost reply finds the run of the first try."""
        for tried in range(1, TRIES + 1):
            try:
                writes = await self._installs.saving(installation)
                await self._engine.start(self.workflow, arrived, tenant=tenant, run_id=run_id, writes=writes)
                return
            except StoreUnavailableError:
                if tried == TRIES:
                    raise
                await asyncio.sleep(PAUSE_S)

    async def _replay(self, arrived: Arrived, ctx: StepContext) -> Arrived:
        self._installs.refresh(ctx.tenant)  # this process may have a token from before
        if ctx.tenant.startswith("E"):  # as all organizations' ids do
            await self._takeover.begin_all(ctx.tenant)
        await self._ingress.replay(ctx.tenant)
        return arrived

    async def _greet(self, arrived: Arrived, ctx: StepContext) -> Arrived:
        if arrived.installer:
            await self._welcome.greet(ctx.tenant, installer=arrived.installer, place=arrived.place)
        return arrived
