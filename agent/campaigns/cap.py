"""The spend cap: what the daily budgets of a tenant's active campaigns may come to.

A platform knows no cap, so looking at the account and changing it are two calls. One change of an account is made at a time, over all
replicas: of two that are approved at once, each within the cap and both together above it, the second is refused.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Protocol

from agent.campaigns.money import format_micros
from agent.campaigns.platform import AdPlatform, Campaign
from agent.tools import ToolError
from workflows.storage import Column, Delete, Insert, Select, Store, StoreUnavailableError, Table, Update

CapOf = Callable[[str], Awaitable[int | None]]
"""Micros a day for a tenant; None is no cap."""


SPEND_CLAIMS = Table(
    "spend_claims", (Column("tenant", "text"), Column("key", "text"), Column("until", "time")), ("tenant",)
)
CLAIM = timedelta(seconds=60)
"""How long one change may take. Of a process that dies in it nobody waits longer."""
WAIT_S = 10.0
LOOK_S = 0.05


class SpendCap(Protocol):
    """Says whether a change keeps within the cap."""

    async def check(self, tenant: str, campaign: Campaign, *, becomes_micros: int) -> None:
        """Raises ToolError if the account's active daily budgets would be above the cap with this campaign at `becomes_micros`."""
        ...

    def alone(self, tenant: str, *, key: str) -> AbstractAsyncContextManager[None]:
        """Check and change in here: nobody else changes this account meanwhile. `key` is the change's own.

        Raises ToolError if others go on changing it.
        """
        ...


class NoCap:
    """Nothing is capped."""

    def alone(self, tenant: str, *, key: str) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    async def check(self, tenant: str, campaign: Campaign, *, becomes_micros: int) -> None:
        return


class AccountCap:
    """Compares with the account as it stands at that moment. A change that lowers the total is always within."""

    def __init__(self, platform: AdPlatform, cap_of: CapOf, store: Store) -> None:
        self._store = store
        self._platform = platform
        self._cap_of = cap_of

    async def check(self, tenant: str, campaign: Campaign, *, becomes_micros: int) -> None:
        cap = await self._cap_of(tenant)
        if cap is None:
            return
        active = {each.id: each for each in await self._platform.campaigns(tenant) if each.status == "active"}
        total = sum(each.daily_budget_micros for each in active.values())
        now = active[campaign.id].daily_budget_micros if campaign.id in active else 0
        after = total - now + becomes_micros
        if becomes_micros > now and after > cap:
            raise ToolError(
                f"the daily budgets of all active campaigns would come to {format_micros(after, campaign.currency)}, above the cap of"
                f" {format_micros(cap, campaign.currency)} that the admins have set; nothing was changed"
            )

    @contextlib.asynccontextmanager
    async def alone(self, tenant: str, *, key: str) -> AsyncIterator[None]:
        end = asyncio.get_running_loop().time() + WAIT_S
        while not await self._claimed(tenant, key):
            if asyncio.get_running_loop().time() >= end:
                raise ToolError(
                    "another change of this account is being made; nothing was changed, try again in a minute"
                )
            await asyncio.sleep(LOOK_S)
        try:
            yield
        finally:
            with contextlib.suppress(StoreUnavailableError):  # it ends by itself, and what was changed has been changed
                await self._store.write(Delete(SPEND_CLAIMS, {"tenant": tenant, "key": key}))

    async def _claimed(self, tenant: str, key: str) -> bool:
        """Whether the account is this change's: free, its own from before it was cut off, or of one that took too long."""
        now = await self._store.now()
        claim = {"tenant": tenant, "key": key, "until": now + CLAIM}
        if await self._store.write(Insert(SPEND_CLAIMS, claim)):
            return True
        rows = await self._store.read(Select(SPEND_CLAIMS, {"tenant": tenant}))
        if not rows or (rows[0]["key"] != key and rows[0]["until"] > now):
            return False
        return await self._store.write(Update(SPEND_CLAIMS, rows[0], {"key": key, "until": now + CLAIM})) == 1
