"""The sandbox is one market for everybody, stands still in the past, and reacts to changes."""

from datetime import UTC, date, datetime, timedelta

import pytest

from agent.campaigns import Metrics, UnchangedError, UnknownCampaignError, total
from agent.campaigns.market import LINES
from tests.agent.campaigns.world import SUNDAY, World

BRAND, TRAIL = "c-101", "c-104"
MILLION = 1_000_000


async def metrics(world: World, campaign: str, start: date, end: date, *, tenant: str = "T1") -> Metrics:
    rows = await world.platform.daily_metrics(tenant, [campaign], start=start, end=end)
    return total(row.metrics for row in rows)


async def test_two_processes_see_the_same_market(world: World) -> None:
    other = World()
    await other.store.open()
    span = {"start": date(2026, 9, 1), "end": date(2026, 11, 29)}
    ids = [line.id for line in LINES]
    assert await world.platform.daily_metrics("T1", ids, **span) == await other.platform.daily_metrics(
        "T1", ids, **span
    )
    await other.store.close()


async def test_figures_are_plausible_for_every_campaign_and_day(world: World) -> None:
    for campaign in await world.platform.campaigns("T1"):
        for row in await world.platform.daily_metrics(
            "T1", [campaign.id], start=date(2025, 12, 1), end=date(2026, 11, 28)
        ):
            seen = row.metrics
            assert 0 <= seen.conversions <= seen.clicks <= seen.impressions
            assert 0 <= seen.spend_micros <= campaign.daily_budget_micros
            assert (seen.revenue_micros > 0) == (seen.conversions > 0)


async def test_season_and_weekdays_show(world: World) -> None:
    april = await metrics(world, "c-102", date(2026, 4, 1), date(2026, 4, 30))
    october = await metrics(world, "c-102", date(2026, 10, 1), date(2026, 10, 30))
    assert april.clicks > october.clicks * 1.05


async def test_a_raised_budget_buys_more_at_a_higher_price(world: World) -> None:
    day = date(2026, 12, 4)
    world.now = datetime(2026, 12, 3, 12, tzinfo=UTC)
    await world.platform.set_daily_budget("T1", BRAND, micros=480 * MILLION, key="k", by="U1")
    world.now = datetime(2026, 12, 6, 12, tzinfo=UTC)
    raised = await metrics(world, BRAND, day, day)
    untouched = World(now=world.now)
    await untouched.store.open()
    usual = await metrics(untouched, BRAND, day, day)
    await untouched.store.close()
    assert usual.spend_micros * 1.5 < raised.spend_micros < usual.spend_micros * 4
    assert raised.cpc_micros is not None
    assert usual.cpc_micros is not None
    assert raised.cpc_micros > usual.cpc_micros


async def test_a_change_leaves_the_days_before_it_alone(world: World) -> None:
    before = await metrics(world, BRAND, date(2026, 11, 1), date(2026, 11, 28))
    await world.platform.set_daily_budget("T1", BRAND, micros=500 * MILLION, key="k", by="U1")
    await world.platform.set_status("T1", BRAND, status="paused", key="k2", by="U1")
    assert await metrics(world, BRAND, date(2026, 11, 1), date(2026, 11, 28)) == before


async def test_a_paused_campaign_stops_within_the_hour_and_keeps_what_it_had(world: World) -> None:
    today = SUNDAY.date()
    so_far = await metrics(world, BRAND, today, today)
    await world.platform.set_status("T1", BRAND, status="paused", key="k", by="U1")
    world.now = SUNDAY + timedelta(days=2)
    assert await metrics(world, BRAND, today, today) == so_far
    assert (await metrics(world, BRAND, date(2026, 11, 30), date(2026, 12, 1))).spend_micros == 0


async def test_today_grows_by_the_hour(world: World) -> None:
    day, spends = date(2026, 11, 29), []
    for hour in range(0, 23, 3):
        world.now = datetime(2026, 11, 29, hour, 30, tzinfo=UTC)
        spends.append((await metrics(world, BRAND, day, day)).spend_micros)
    assert spends == sorted(spends)
    assert spends[0] < spends[-1] / 10


@pytest.mark.parametrize("day", [date(2026, 3, 29), date(2026, 10, 25)])
async def test_days_of_23_and_25_hours_count_in_full(world: World, day: date) -> None:
    world.now = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=23, minutes=30)
    after = await metrics(world, BRAND, day, day)
    world.now += timedelta(days=7)
    assert after == await metrics(world, BRAND, day, day)


async def test_the_future_has_no_figures(world: World) -> None:
    assert await world.platform.daily_metrics("T1", [BRAND], start=date(2026, 11, 30), end=date(2026, 12, 5)) == []


async def test_the_same_key_twice_is_one_change(world: World) -> None:
    first = await world.platform.set_daily_budget("T1", BRAND, micros=150 * MILLION, key="k", by="U1")
    world.now += timedelta(minutes=5)
    assert await world.platform.set_daily_budget("T1", BRAND, micros=150 * MILLION, key="k", by="U1") == first
    assert await world.platform.set_daily_budget("T1", BRAND, micros=999 * MILLION, key="k", by="U1") == first
    assert (first.old, first.new) == ("120000000", "150000000")
    campaigns = {campaign.id: campaign for campaign in await world.platform.campaigns("T1")}
    assert campaigns[BRAND].daily_budget_micros == 150 * MILLION


async def test_an_unchanged_value_and_an_unknown_campaign_are_refused(world: World) -> None:
    with pytest.raises(UnchangedError, match="Brand Search"):
        await world.platform.set_daily_budget("T1", BRAND, micros=120 * MILLION, key="k", by="U1")
    with pytest.raises(UnknownCampaignError, match="c-999"):
        await world.platform.set_status("T1", "c-999", status="paused", key="k", by="U1")
    with pytest.raises(UnknownCampaignError, match="c-999"):
        await world.platform.daily_metrics("T1", ["c-999"], start=date(2026, 11, 1), end=date(2026, 11, 2))


async def test_tenants_never_meet(world: World) -> None:
    await world.platform.set_status("T1", TRAIL, status="paused", key="k", by="U1")
    await world.platform.set_daily_budget("T2", TRAIL, micros=7 * MILLION, key="k", by="U2")
    mine = {c.id: c for c in await world.platform.campaigns("T1")}[TRAIL]
    theirs = {c.id: c for c in await world.platform.campaigns("T2")}[TRAIL]
    assert (mine.status, mine.daily_budget_micros) == ("paused", 95 * MILLION)
    assert (theirs.status, theirs.daily_budget_micros) == ("active", 7 * MILLION)
    assert (await world.platform.account("T1")).id != (await world.platform.account("T2")).id


def test_ratios_come_from_totals() -> None:
    both = Metrics(impressions=1000, clicks=10, spend_micros=10 * MILLION, conversions=1, revenue_micros=0) + Metrics(
        impressions=10, clicks=10, spend_micros=0, conversions=0, revenue_micros=5 * MILLION
    )
    assert both.ctr == pytest.approx(20 / 1010)
    assert (both.cpc_micros, both.cpa_micros, both.roas) == (500_000, 10 * MILLION, 0.5)
    nothing = Metrics()
    assert (nothing.ctr, nothing.cpc_micros, nothing.cpa_micros, nothing.roas) == (None, None, None, None)
