"""The campaign tools. The tenant is the context's, never an argument: no model can ask for another's account."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agent.campaigns.cap import NoCap, SpendCap
from agent.campaigns.lookup import CampaignLookupError, find_campaign
from agent.campaigns.money import format_micros, parse_micros
from agent.campaigns.performance import Window, choose, clock_of, measure
from agent.campaigns.periods import PeriodError
from agent.campaigns.platform import AdPlatform, Campaign, PlatformError, Status
from agent.campaigns.results import (
    AccountResult,
    BudgetChange,
    CampaignList,
    CampaignResult,
    Performance,
    StatusChange,
)
from agent.tools import Evidence, Tool, ToolContext, ToolError, tool
from workflows import Effect

_LARGEST_FACTOR = 100

CampaignName = Annotated[str, Field(description="The campaign's name, enough of it to be the only one, or its id.")]
Amount = Annotated[
    str | float,
    Field(description="The new daily budget in the account's currency, as a decimal number such as 120.50."),
]


def campaign_tools(platform: AdPlatform, cap: SpendCap | None = None) -> tuple[Tool, ...]:
    """The tools over `platform`: list_campaigns, campaign_performance, change_budget, pause_campaign, resume_campaign.

    `cap` is asked when a change is proposed and again when it is made.
    """
    cap = cap or NoCap()
    return (
        _list_campaigns(platform),
        _campaign_performance(platform),
        _change_budget(platform, cap),
        _pause_campaign(platform),
        _resume_campaign(platform, cap),
    )


def _list_campaigns(platform: AdPlatform) -> Tool:
    @tool(effect=Effect.READ)
    async def list_campaigns(ctx: ToolContext) -> CampaignList:
        """List the account's campaigns as they stand now: name, status, channel, daily budget, start."""
        account = await platform.account(ctx.tenant)
        campaigns = await platform.campaigns(ctx.tenant)
        return CampaignList(
            account=AccountResult.of(account), campaigns=tuple(CampaignResult.of(campaign) for campaign in campaigns)
        )

    return list_campaigns


def _campaign_performance(platform: AdPlatform) -> Tool:
    @tool(effect=Effect.READ)
    async def campaign_performance(
        ctx: ToolContext,
        *,
        campaigns: Annotated[
            list[str] | str, Field(description='Names or ids of campaigns, or "all". Default: all.')
        ] = "all",
        period: Annotated[
            str,
            Field(
                description='Days in words or ISO: "last week", "October 2026", "2026-11-01..2026-11-07". No future days.'
            ),
        ] = "last 7 days",
        compare_to: Annotated[
            str,
            Field(
                description='"none", "previous" (the period before, equally long), or a period such as "a year earlier".'
            ),
        ] = "none",
    ) -> Performance:
        """Measure campaigns over a period: impressions, clicks, spend, conversions, revenue, CTR, CPC, CPA and ROAS, each and in total.

        The exact days are in the result; state them. Words such as "last week" are meant in the asker's time zone.
        """
        account = await platform.account(ctx.tenant)
        zone = clock_of(ctx.asker.time_zone, account.time_zone, ctx.now)
        try:
            window = Window.read(period, compare_to, now=ctx.now, time_zone=zone)
            chosen = choose(await platform.campaigns(ctx.tenant), campaigns)
        except (PeriodError, CampaignLookupError) as error:
            raise ToolError(str(error)) from None
        return await measure(platform, ctx.tenant, chosen, window, now=ctx.now)

    return campaign_performance


@dataclass(frozen=True, slots=True)
class _Budget:
    """A budget change that was checked."""

    campaign: Campaign
    new_micros: int

    @property
    def old(self) -> str:
        return format_micros(self.campaign.daily_budget_micros, self.campaign.currency)

    @property
    def new(self) -> str:
        return format_micros(self.new_micros, self.campaign.currency)


def _change_budget(platform: AdPlatform, cap: SpendCap) -> Tool:
    async def evidence(ctx: ToolContext, *, campaign: str, amount: str | float) -> Evidence:
        asked = await _checked_budget(platform, cap, ctx.tenant, campaign, amount)
        if asked.new_micros == asked.campaign.daily_budget_micros:
            raise ToolError(f"{asked.campaign.name} has a daily budget of {asked.old} already; nothing to do")
        account = await platform.account(ctx.tenant)
        return Evidence(
            title=f"Change the daily budget of {asked.campaign.name} from {asked.old} to {asked.new}",
            facts=(
                ("Account", f"{account.name} ({account.id})"),
                ("Campaign", f"{asked.campaign.name} ({asked.campaign.status})"),
                ("Daily budget now", asked.old),
                ("New daily budget", asked.new),
                ("Difference", _difference(asked.campaign.daily_budget_micros, asked.new_micros, account.currency)),
            ),
            spend_micros=max(0, asked.new_micros - asked.campaign.daily_budget_micros),
        )

    @tool(effect=Effect.IRREVERSIBLE, permission="ask", evidence=evidence, read_back="list_campaigns")
    async def change_budget(ctx: ToolContext, *, campaign: CampaignName, amount: Amount) -> BudgetChange:
        """Set a campaign's daily budget. Give the new amount itself, not a difference or a percentage; read the current one first."""
        async with cap.alone(ctx.tenant, key=ctx.idempotency_key):
            asked = await _checked_budget(platform, cap, ctx.tenant, campaign, amount)
            try:
                change = await platform.set_daily_budget(
                    ctx.tenant, asked.campaign.id, micros=asked.new_micros, key=ctx.idempotency_key, by=ctx.asker.id
                )
            except PlatformError as error:
                raise ToolError(str(error)) from None
        account = await platform.account(ctx.tenant)
        old, new = int(change.old), int(change.new)
        return BudgetChange(
            account=account.name,
            campaign=asked.campaign.name,
            old_micros=old,
            old=format_micros(old, account.currency),
            new_micros=new,
            new=format_micros(new, account.currency),
            difference=_difference(old, new, account.currency),
        )

    return change_budget


def _pause_campaign(platform: AdPlatform) -> Tool:
    async def evidence(ctx: ToolContext, *, campaign: str) -> Evidence:
        return await _status_evidence(platform, ctx.tenant, campaign, "paused")

    @tool(effect=Effect.IDEMPOTENT, permission="ask", evidence=evidence)
    async def pause_campaign(ctx: ToolContext, *, campaign: CampaignName) -> StatusChange:
        """Pause an active campaign: it stops spending until it is resumed."""
        return await _set_status(platform, ctx, campaign, "paused")

    return pause_campaign


def _resume_campaign(platform: AdPlatform, cap: SpendCap) -> Tool:
    async def within(ctx: ToolContext, name: str) -> None:
        campaign = await _found(platform, ctx.tenant, name)
        await cap.check(ctx.tenant, campaign, becomes_micros=campaign.daily_budget_micros)

    async def evidence(ctx: ToolContext, *, campaign: str) -> Evidence:
        await within(ctx, campaign)
        return await _status_evidence(platform, ctx.tenant, campaign, "active")

    @tool(effect=Effect.IDEMPOTENT, permission="ask", evidence=evidence)
    async def resume_campaign(ctx: ToolContext, *, campaign: CampaignName) -> StatusChange:
        """Resume a paused campaign: it spends up to its daily budget again."""
        async with cap.alone(ctx.tenant, key=ctx.idempotency_key):
            await within(ctx, campaign)
            return await _set_status(platform, ctx, campaign, "active")

    return resume_campaign


async def _found(platform: AdPlatform, tenant: str, name: str) -> Campaign:
    try:
        return find_campaign(await platform.campaigns(tenant), name)
    except CampaignLookupError as error:
        raise ToolError(str(error)) from None


async def _checked_budget(platform: AdPlatform, cap: SpendCap, tenant: str, name: str, amount: str | float) -> _Budget:
    campaign = await _found(platform, tenant, name)
    try:
        asked = _Budget(campaign, parse_micros(amount, campaign.currency))
    except ValueError as error:
        raise ToolError(str(error)) from None
    if 0 < campaign.daily_budget_micros * _LARGEST_FACTOR < asked.new_micros:
        raise ToolError(
            f"{asked.new} a day is more than {_LARGEST_FACTOR} times the {asked.old} that {campaign.name} has now;"
            " if it is meant, go there in smaller steps"
        )
    if campaign.status == "active":
        await cap.check(tenant, campaign, becomes_micros=asked.new_micros)
    return asked


def _difference(old_micros: int, new_micros: int, currency: str) -> str:
    difference = new_micros - old_micros
    sign = "+" if difference > 0 else ""
    share = f" ({difference / old_micros:+.1%})" if old_micros else ""
    return f"{sign}{format_micros(difference, currency)}{share}"


async def _status_evidence(platform: AdPlatform, tenant: str, name: str, status: Status) -> Evidence:
    campaign = await _found(platform, tenant, name)
    if campaign.status == status:
        raise ToolError(f"{campaign.name} is {status} already; nothing to do")
    account = await platform.account(tenant)
    return Evidence(
        title=f"{'Pause' if status == 'paused' else 'Resume'} {campaign.name}",
        facts=(
            ("Account", f"{account.name} ({account.id})"),
            ("Campaign", campaign.name),
            ("Status now", campaign.status),
            ("New status", status),
            ("Daily budget", format_micros(campaign.daily_budget_micros, campaign.currency)),
        ),
        spend_micros=campaign.daily_budget_micros if status == "active" else 0,
    )


async def _set_status(platform: AdPlatform, ctx: ToolContext, name: str, status: Status) -> StatusChange:
    campaign = await _found(platform, ctx.tenant, name)
    try:
        change = await platform.set_status(
            ctx.tenant, campaign.id, status=status, key=ctx.idempotency_key, by=ctx.asker.id
        )
    except PlatformError as error:
        raise ToolError(str(error)) from None
    account = await platform.account(ctx.tenant)
    return StatusChange(account=account.name, campaign=campaign.name, old=_status(change.old), new=_status(change.new))


def _status(text: str) -> Status:
    return "paused" if text == "paused" else "active"
