"""The campaign tools find what is meant, answer with totals that add up, and refuse what makes no sense."""

import inspect
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent.campaigns
from agent.campaigns import Campaign, CampaignLookupError, find_campaign
from agent.campaigns.market import LINES
from agent.tools import ToolError
from tests.agent.campaigns.world import World
from workflows.definition.effects import Effect

NAMES = [line.name for line in LINES]


async def test_the_list_has_each_campaign_with_its_budget_as_number_and_text(world: World) -> None:
    listed = await world.call("list_campaigns")
    assert listed["account"] == {"name": "Sandbox account", "currency": "EUR", "time_zone": "Europe/Berlin"}
    assert [each["name"] for each in listed["campaigns"]] == NAMES
    brand = listed["campaigns"][0]
    assert (brand["daily_budget_micros"], brand["daily_budget"]) == (120_000_000, "€120.00")


@pytest.mark.parametrize(
    "wanted, found",
    [
        ("Brand Search", "Brand Search"),
        ("  brand   SEARCH ", "Brand Search"),
        ("c-101", "Brand Search"),
        ("Spring Sale", "Spring Sale"),
        ("hiking", "Summer Hiking Boots"),
        ("runners retarg", "Trail Runners Retargeting"),
    ],
)
async def test_a_campaign_is_found_by_id_name_or_unique_part(world: World, wanted: str, found: str) -> None:
    answer = await world.call("campaign_performance", campaigns=[wanted], period="yesterday")
    assert [row["name"] for row in answer["campaigns"]] == [found]


@pytest.mark.parametrize(
    "wanted, candidates",
    [("trail", ["Trail Runners Prospecting", "Trail Runners Retargeting"]), ("Autumn", NAMES), ("", NAMES)],
)
async def test_an_ambiguous_or_unknown_name_lists_what_it_may_be(
    world: World, wanted: str, candidates: list[str]
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("pause_campaign", {}), ("change_budget", {"amount": 5})]
    for tool, rest in calls:
        with pytest.raises(ToolError) as error:
            await world.call(tool, campaign=wanted, **rest)
        assert all(name in str(error.value) for name in candidates)
        assert all(name not in str(error.value) for name in NAMES if name not in candidates)


def test_two_campaigns_of_one_name_are_told_apart_by_id() -> None:
    first = Campaign(
        id="1",
        name="Sale",
        status="active",
        channel="search",
        daily_budget_micros=1,
        currency="EUR",
        started_on="2026-01-01",
    )
    twins = [first, first.model_copy(update={"id": "2"})]
    with pytest.raises(CampaignLookupError, match=r"Sale \(1\), Sale \(2\)"):
        find_campaign(twins, "sale")
    assert find_campaign(twins, "2").id == "2"


@given(st.text(max_size=40))
def test_any_text_finds_one_campaign_or_says_why_not(text: str) -> None:
    campaigns = [
        Campaign(
            id=line.id, name=line.name, status="active", channel=line.channel, daily_budget_micros=1, currency="EUR",
            started_on=line.started_on,
        )
        for line in LINES
    ]  # fmt: skip
    with suppress(CampaignLookupError):
        assert find_campaign(campaigns, text) in campaigns


async def test_performance_names_its_days_and_adds_up(world: World) -> None:
    answer = await world.call("campaign_performance", campaigns="all", period="last week", compare_to="previous")
    assert answer["period"] == {"label": "last week", "start": "2026-11-16", "end": "2026-11-22", "days": 7}
    assert (answer["compared_to"]["start"], answer["compared_to"]["end"]) == ("2026-11-09", "2026-11-15")
    totals = answer["totals"]["figures"]
    for field in ("impressions", "clicks", "conversions", "spend_micros", "revenue_micros"):
        assert totals[field] == sum(row["figures"][field] for row in answer["campaigns"])
    assert totals["roas"] == round(totals["revenue_micros"] / totals["spend_micros"], 2)
    old = answer["totals"]["previous"]["clicks"]
    assert answer["totals"]["change_percent"]["clicks"] == round((totals["clicks"] - old) / old * 100, 1)
    assert len(json.dumps(answer)) < 16_000


async def test_last_week_is_the_askers(world: World) -> None:
    world.now = world.now.replace(hour=23, minute=30)  # Monday in Berlin, Sunday in New York
    berlin = await world.call("campaign_performance", period="last week")
    ctx = world.context(time_zone="America/New_York")
    new_york = await world.call("campaign_performance", ctx=ctx, period="last week")
    assert (berlin["period"]["start"], new_york["period"]["start"]) == ("2026-11-23", "2026-11-16")


async def test_an_asker_without_a_known_time_zone_is_answered_by_the_accounts_clock(world: World) -> None:
    world.now = world.now.replace(hour=23, minute=30)  # Monday in Berlin
    for zone in ("", "Mars/Base", "../etc"):
        answer = await world.call("campaign_performance", ctx=world.context(time_zone=zone), period="yesterday")
        assert answer["period"]["start"] == "2026-11-29"


async def test_a_day_that_is_not_over_is_noted(world: World) -> None:
    today = await world.call("campaign_performance", period="today")
    assert "until 15:00 Europe/Berlin" in today["notes"][0]
    assert (await world.call("campaign_performance", period="yesterday"))["notes"] == []


async def test_a_campaign_without_figures_has_no_ratios(world: World) -> None:
    answer = await world.call(
        "campaign_performance", campaigns=["Winter Clearance"], period="last week", compare_to="previous"
    )
    row = answer["campaigns"][0]
    assert (row["figures"]["roas"], row["figures"]["cpa"], row["change_percent"]["clicks"]) == (None, None, None)


@pytest.mark.parametrize(
    "arguments, wrong",
    [
        ({"period": "soonish"}, "last 30 days"),
        ({"period": "last week", "compare_to": "last week"}, "nothing to compare"),
        ({"campaigns": ["Foo"]}, "Brand Search"),
        ({"perod": "last week"}, "perod"),
    ],
)
async def test_performance_says_what_is_wrong(world: World, arguments: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ToolError, match=wrong):
        await world.call("campaign_performance", **arguments)


async def test_a_budget_is_changed_and_read_back(world: World) -> None:
    changed = await world.call("change_budget", campaign="brand search", amount="150")
    assert (changed["old"], changed["new"], changed["difference"]) == ("€120.00", "€150.00", "+€30.00 (+25.0%)")
    listed = await world.call("list_campaigns")
    assert listed["campaigns"][0]["daily_budget"] == "€150.00"
    assert await world.call("change_budget", campaign="brand search", amount=150.0) == changed


@pytest.mark.parametrize(
    "amount, wrong",
    [(0, "above zero"), ("-5", "above zero"), ("ten", "not an amount"), ("1.234", "finer"), (12001, "100 times")],
)
async def test_an_absurd_budget_is_refused_before_anybody_is_asked(
    world: World, amount: str | float, wrong: str
) -> None:
    tool = world.tools.get("change_budget")
    assert tool.evidence is not None
    with pytest.raises(ToolError, match=wrong):
        await tool.evidence(world.context(), campaign="Brand Search", amount=amount)
    with pytest.raises(ToolError, match=wrong):
        await world.call("change_budget", campaign="Brand Search", amount=amount)


async def test_an_unchanged_value_is_refused_before_anybody_is_asked(world: World) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("change_budget", {"campaign": "Brand Search", "amount": 120}),
        ("resume_campaign", {"campaign": "Brand Search"}),
        ("pause_campaign", {"campaign": "Winter Clearance"}),
    ]
    for name, arguments in cases:
        tool = world.tools.get(name)
        assert tool.evidence is not None
        with pytest.raises(ToolError, match="already"):
            await tool.evidence(world.context(), **arguments)
        with pytest.raises(ToolError, match="already"):
            await world.call(name, **arguments)


async def test_the_evidence_of_a_budget_shows_account_campaign_old_new_and_difference(world: World) -> None:
    tool = world.tools.get("change_budget")
    assert tool.evidence is not None
    shown = await tool.evidence(world.context(), campaign="spring sale", amount="100.5")
    assert shown.title == "Change the daily budget of Spring Sale from €80.00 to €100.50"
    facts = dict(shown.facts)
    assert facts["Daily budget now"] == "€80.00"
    assert facts["New daily budget"] == "€100.50"
    assert facts["Difference"] == "+€20.50 (+25.6%)"
    account = await world.platform.account("T1")
    assert facts["Account"] == f"Sandbox account ({account.id})", "whatever the workspace is called"


async def test_pausing_under_one_key_twice_gives_one_answer(world: World) -> None:
    first = await world.call("pause_campaign", campaign="spring sale")
    assert (first["old"], first["new"]) == ("active", "paused")
    assert await world.call("pause_campaign", campaign="spring sale") == first
    resumed = await world.call("resume_campaign", ctx=world.context(key="key-2"), campaign="spring sale")
    assert resumed["new"] == "active"


def test_what_the_tools_do_to_the_world_is_declared(world: World) -> None:
    declared = {tool.name: (tool.effect, tool.permission, tool.read_back) for tool in world.tools}
    assert declared == {
        "list_campaigns": (Effect.READ, "run", None),
        "campaign_performance": (Effect.READ, "run", None),
        "change_budget": (Effect.IRREVERSIBLE, "ask", "list_campaigns"),
        "pause_campaign": (Effect.IDEMPOTENT, "ask", None),
        "resume_campaign": (Effect.IDEMPOTENT, "ask", None),
    }


async def test_a_tool_works_for_the_tenant_of_its_context_only(world: World) -> None:
    await world.call("pause_campaign", ctx=world.context(tenant="T1"), campaign="Brand Search")
    mine = await world.call("list_campaigns", ctx=world.context(tenant="T1"))
    theirs = await world.call("list_campaigns", ctx=world.context(tenant="T2"))
    assert (mine["campaigns"][0]["status"], theirs["campaigns"][0]["status"]) == ("paused", "active")


def test_no_tool_takes_a_tenant(world: World) -> None:
    for tool in world.tools:
        assert not {"tenant", "account", "ctx"} & set(tool.parameters.model_fields)


def test_the_package_exports_what_it_says() -> None:
    names = [n for n, v in vars(agent.campaigns).items() if not n.startswith("_") and not inspect.ismodule(v)]
    assert sorted(names) == sorted(agent.campaigns.__all__)
