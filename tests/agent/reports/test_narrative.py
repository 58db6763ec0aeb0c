"""What a report says: each number once and alike, days in words, and nothing about a past that is only true today."""

import re
from datetime import date

import pytest

from agent.campaigns import Period, parse_period
from agent.campaigns.performance import Window, choose, measure
from agent.campaigns.results import Performance
from agent.models.offline.figures import performance as answered
from agent.reports.document import Document, Grid, Number
from agent.reports.narrative import document
from tests.agent.campaigns.conftest import world
from tests.agent.campaigns.world import World

__all__ = ["world"]

DASH = "\N{EN DASH}"
ISO = re.compile(r"\d{4}-\d\d-\d\d")


async def measured(world: World, period: str, compare_to: str = "none") -> Performance:
    window = Window.read(period, compare_to, now=world.now, time_zone="Europe/Berlin")
    campaigns = choose(await world.platform.campaigns("T1"), "all")
    return await measure(world.platform, "T1", campaigns, window, now=world.now)


def grid(made: Document) -> Grid:
    assert made.grid is not None
    return made.grid


def words(made: Document) -> str:
    cells = [cell.text if isinstance(cell, Number) else cell for row in grid(made).rows for cell in row]
    return "\n".join([made.summary, made.body, grid(made).caption, *cells])


@pytest.mark.parametrize(
    "period, days",
    [
        ("October 2026", f"1{DASH}31 October 2026"),
        ("yesterday", "28 November 2026"),
        ("Q3", f"1 July {DASH} 30 September 2026"),
        ("today", "29 November 2026"),
    ],
)
async def test_days_are_in_words_as_in_answers(world: World, period: str, days: str) -> None:
    performance = await measured(world, period, "previous")
    report = document(performance, title="Campaign report")
    assert report.summary == f"Campaign report: Sandbox account, {days}"
    assert grid(report).caption == f"Campaigns, {days}"
    assert days in answered(performance, metrics=(), side_by_side=False, everything=True)
    assert not ISO.search(words(report)), "one style of dates"
    assert performance.compared_to is not None
    assert f"Changes are against {performance.compared_to.dates}." in report.body


async def test_a_figure_is_a_number_with_its_usual_decimals(world: World) -> None:
    report = document(await measured(world, "October 2026"), title="Campaign report")
    head, *rows = grid(report).rows
    for row in rows:
        by_name = {str(name): cell for name, cell in zip(head, row, strict=True)}
        for name in ("Spend", "Impressions", "Clicks", "Conversions", "Revenue"):
            cell = by_name[name]
            assert isinstance(cell, Number)
            assert float(re.sub(r"[€,]", "", cell.text)) == pytest.approx(cell.value)
        for name in ("CTR", "CPA", "ROAS"):
            cell = by_name[name]
            assert cell == "n/a" or (isinstance(cell, Number) and re.fullmatch(r"€?[\d,]+\.\d\d(?: %)?", cell.text))


async def test_a_ratio_has_two_decimals_wherever_it_stands(world: World) -> None:
    performance = await measured(world, "October 2026")
    flat = performance.totals.figures.model_copy(update={"roas": 6.6})
    rows = tuple(row.model_copy(update={"figures": flat}) for row in performance.campaigns)
    totals = performance.totals.model_copy(update={"figures": flat})
    report = document(performance.model_copy(update={"totals": totals, "campaigns": rows}), title="Campaign report")
    assert "6.60" in report.body
    assert not re.search(r"\b6\.6\b", words(report))


@pytest.mark.parametrize(
    "period, label",
    [
        (Period(date(2026, 2, 1), date(2026, 2, 28), "February 2026"), "Winter Clearance"),
        (Period(date(2026, 10, 1), date(2026, 10, 31), "October 2026"), "Winter Clearance (paused)"),
    ],
)
async def test_todays_status_is_not_that_of_a_period_in_which_it_spent(
    world: World, period: Period, label: str
) -> None:
    """Winter Clearance is paused since March 2026."""
    assert parse_period(period.label, now=world.now).start == period.start
    performance = await measured(world, period.label)
    names = [row[0] for row in grid(document(performance, title="Campaign report")).rows]
    assert label in names
    answer = answered(performance, metrics=(), side_by_side=False, everything=True)
    assert f"| {label} |" in answer
