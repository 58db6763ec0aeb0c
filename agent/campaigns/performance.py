"""Performance over a period: which campaigns, which days, totals, and what to compare them with."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from agent.campaigns.lookup import find_campaign, fold
from agent.campaigns.periods import Period, PeriodError, preceding
from agent.campaigns.phrases import parse_period, today_in
from agent.campaigns.platform import AdPlatform, Campaign, Metrics, total
from agent.campaigns.results import AccountResult, CampaignRow, Performance, PeriodResult, Row


@dataclass(frozen=True, slots=True)
class Window:
    """The days asked about, and those compared with."""

    period: Period
    compared_to: Period | None

    @classmethod
    def read(cls, period: str, compare_to: str, *, now: datetime, time_zone: str) -> "Window":
        """From words; `compare_to` is "none", "previous" or a period. Raises PeriodError, also when both are the same days."""
        asked = parse_period(period, now=now, time_zone=time_zone)
        wanted = fold(compare_to)
        if wanted in {"", "none", "no", "nothing"}:
            return cls(asked, None)
        if wanted == "previous":
            return cls(asked, preceding(asked))
        other = parse_period(compare_to, now=now, time_zone=time_zone, relative_to=asked)
        if (other.start, other.end) == (asked.start, asked.end):
            raise PeriodError(
                f"{compare_to!r} is the same {asked.days} days as {period!r}; there is nothing to compare"
            )
        return cls(asked, other)


def clock_of(asker_zone: str, account_zone: str, now: datetime) -> str:
    """The time zone that words such as "yesterday" are read in: the asker's, or the account's if nobody knows the asker's."""
    try:
        today_in(asker_zone, now)
    except PeriodError:
        return account_zone
    return asker_zone


def choose(campaigns: Sequence[Campaign], wanted: Sequence[str] | str) -> list[Campaign]:
    """The campaigns meant by names, or all of them; each once. Raises CampaignLookupError."""
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if not names or any(fold(name) in {"all", "all campaigns"} for name in names):
        return list(campaigns)
    found = {campaign.id: campaign for campaign in (find_campaign(campaigns, name) for name in names)}
    return list(found.values())


async def measure(
    platform: AdPlatform, tenant: str, campaigns: Sequence[Campaign], window: Window, *, now: datetime
) -> Performance:
    """The figures of `campaigns` over `window`, each and in total."""
    account = await platform.account(tenant)
    current = await _sums(platform, tenant, campaigns, window.period)
    earlier = await _sums(platform, tenant, campaigns, window.compared_to) if window.compared_to else None
    rows = tuple(
        CampaignRow.about(each, current[each.id], None if earlier is None else earlier[each.id]) for each in campaigns
    )
    totals = Row.of(
        total(current.values()), None if earlier is None else total(earlier.values()), currency=account.currency
    )
    return Performance(
        account=AccountResult.of(account),
        period=PeriodResult.of(window.period),
        compared_to=PeriodResult.of(window.compared_to) if window.compared_to else None,
        totals=totals,
        campaigns=rows,
        notes=_notes(window.period, account.time_zone, now),
    )


async def _sums(platform: AdPlatform, tenant: str, campaigns: Sequence[Campaign], period: Period) -> dict[str, Metrics]:
    sums: dict[str, Metrics] = defaultdict(Metrics, {campaign.id: Metrics() for campaign in campaigns})
    for row in await platform.daily_metrics(tenant, list(sums), start=period.start, end=period.end):
        sums[row.campaign_id] += row.metrics
    return sums


def _notes(period: Period, time_zone: str, now: datetime) -> tuple[str, ...]:
    today = today_in(time_zone, now)
    if period.end < today:
        return ()
    clock = now.astimezone(ZoneInfo(time_zone))
    return (f"{today.day} {today:%B %Y} is not over: it counts until {clock:%H}:00 {time_zone}, the account's time.",)
