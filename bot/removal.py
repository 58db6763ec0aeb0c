"""What ends when a workspace has removed the app: its work at once, its data when the retention is over."""

from agent.approvals import all_withdrawn
from agent.messages import MESSAGES
from agent.stops import LIVE
from bot.installs import Installs
from workflows import Engine
from workflows.storage import Delete


class Removal:
    """Ends it all. Whoever calls it knows that Slack takes the token no more."""

    def __init__(self, engine: Engine, installs: Installs) -> None:
        self._engine = engine
        self._installs = installs

    async def complete(self, tenant: str, token: str | None) -> None:
        """No live run, no schedule, no token; the token last, so that a repetition after a crash does all of it.

        `token` is the one that is refused, as in `Installs.uninstall`: an installation with another one stands, and so does its work.
        Raises StoreUnavailableError, CredentialsUnavailableError.
        """
        if not await self._installs.stands_on(tenant, token=token):
            return
        # What waits for a turn is nobody's to read any more: the end of that turn would begin one for it while the token is still there.
        await self._engine.store.write(Delete(MESSAGES, {"tenant": tenant, "position": None}))
        await self.stop_work(tenant)
        await self._installs.uninstall(tenant, token=token)
        await self.stop_work(
            tenant
        )  # what began meanwhile, such as a turn for what had waited for one that was stopped

    async def replaced(self, tenant: str) -> None:
        """The same for one whose organization has the app now, whatever its token is. Raises StoreUnavailableError."""
        await self.stop_work(tenant)
        await self._installs.retire(tenant)
        await self.stop_work(tenant)

    async def stop_work(self, tenant: str) -> None:
        """End what is done for a tenant. What begins after that finds the app gone. Raises StoreUnavailableError."""
        # First: the end of one would begin a turn.
        await self._engine.store.write(all_withdrawn(tenant))
        while schedules := await self._engine.store.schedules(tenant=tenant, limit=1000):
            for schedule in schedules:
                await self._engine.store.delete_schedule(tenant=tenant, name=schedule.name)
        before: str | None = None
        while runs := await self._engine.runs(tenant=tenant, states=LIVE, limit=1000, before=before):
            for run in runs:
                await self._engine.cancel(run.run_id, tenant=tenant)
            before = runs[-1].cursor
