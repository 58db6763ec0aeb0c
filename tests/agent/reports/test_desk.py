"""Ordering a report from a conversation: the days are said, and what can't be reported on is refused before it is promised."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_core import from_json

from agent.campaigns import SandboxPlatform
from agent.channel import Delivered, Notes
from agent.models.base import Person
from agent.reports import Document, LostPlace, ReportDesk, make_reports
from agent.thread import Thread
from agent.tools import Toolbox, ToolContext, ToolError
from bot.backends import TABLES
from workflows import Engine, RunState
from workflows.storage import MemoryStore

NOW = datetime(2026, 11, 29, 14, 20, tzinfo=UTC)


class Silent:
    """Posts nothing."""

    async def publish(
        self, thread: Thread, document: Document, *, delivery_id: str, reply_url: str | None, notes: Notes
    ) -> Delivered:
        return Delivered(message_ids=(delivery_id,))

    async def find(self, thread: Thread, *, delivery_id: str, notes: Notes) -> Delivered | None:
        return None

    async def tell_lost(
        self, tenant: str, user_id: str, lost: LostPlace, *, delivery_id: str, notes: Notes
    ) -> Delivered:
        return Delivered(message_ids=(delivery_id,))


async def ordered(**arguments: Any) -> tuple[dict[str, Any] | str, int]:
    """What the tool answers, or its error, and how many reports were begun."""
    store = MemoryStore(tables=TABLES)
    reports = make_reports(SandboxPlatform(store), Silent(), store=store)
    engine = Engine(store=store, workflows=reports.workflows, worker=False)
    tools = Toolbox(ReportDesk(engine, reports).tools())

    async def report(text: str) -> None:
        """Nobody watches."""

    asker = Person(id="U1", name="Ana", time_zone="Europe/Berlin")
    ctx = ToolContext("T1", asker, NOW, "key-1", report, Thread(tenant="T1", channel="C1", root="1.1"))
    async with engine:
        try:
            answer = from_json(await tools.get("make_report").run(arguments, ctx))
        except ToolError as error:
            answer = str(error)
        return answer, len(await engine.runs(tenant="T1"))


@pytest.mark.parametrize(
    "period, label, days",
    [
        ("October", "October 2026", "1\N{EN DASH}31 October 2026"),
        ("the week before", "last week", "16\N{EN DASH}22 November 2026"),
    ],
)
async def test_the_days_of_a_report_are_said_when_it_is_ordered(period: str, label: str, days: str) -> None:
    answer, begun = await ordered(period=period)
    assert isinstance(answer, dict)
    assert (answer["period"], answer["days"]) == (label, days)
    assert begun == 1


@pytest.mark.parametrize(
    "period, why", [("next month", "still to come"), ("December 2026", "not begun"), ("whenever", "no period")]
)
async def test_a_report_that_can_not_be_made_is_not_promised(period: str, why: str) -> None:
    answer, begun = await ordered(period=period)
    assert why in answer
    assert begun == 0


async def test_a_summarys_schedule_tells_that_it_was_delivered() -> None:
    store = MemoryStore(tables=TABLES)
    reports = make_reports(SandboxPlatform(store), Silent(), store=store)
    async with Engine(store=store, workflows=reports.workflows, poll_s=0.05) as engine:
        desk = ReportDesk(engine, reports)
        asker = Person(id="U1", name="Ana", time_zone="Europe/Berlin")
        entry = await desk.schedule("every monday 9:00", tenant="T1", channel="C1", asker=asker)
        firing = await engine.schedules.run_now(entry.name, tenant="T1")
        await (await engine.run(firing.run_id, tenant="T1")).result(timeout=10)
        (told,) = await engine.schedules.history(entry.name, tenant="T1")
        assert (told.run_state, told.delivery) == (RunState.DONE, "delivered")
