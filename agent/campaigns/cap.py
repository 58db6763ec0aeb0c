"""The spend cap: what the daily budgets of a tenant's active campaigns may come to."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from agent.campaigns.money import format_micros
from agent.campaigns.platform import AdPlatform, Campaign
from agent.tools import ToolError

CapOf = Callable[[str], Awaitable[int | None]]
"""Micros a day for a tenant; None is no cap."""


class SpendCap(Protocol):
    """Says whether a change keeps within the cap."""

    async def check(self, tenant: str, campaign: Campaign, *, becomes_micros: int) -> None:
        """Raises ToolError if the account's active daily budgets would be above the cap with this campaign at `becomes_micros`."""
        ...


class NoCap:
    """Nothing is capped."""

    async def check(self, tenant: str, campaign: Campaign, *, becomes_micros: int) -> None:
        return


class AccountCap:
    """Compares with the account as it stands at that moment. A change that lowers the total is always within."""

    def __init__(self, platform: AdPlatform, cap_of: CapOf) -> None:
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
