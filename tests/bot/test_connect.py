"""A channel shared with another company by Slack Connect: its people may ask, and decide nothing."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.stops import STOPS
from bot.emulator.errors import ControlError
from tests.bot.bench import HARBOR, HARBOR_BOT, NORTHWIND, Bench
from tests.bot.listening import Listener
from tests.waiting import until
from workflows.storage import Select

PARTNERS = "#partners"
QUESTION = "@Threadline how did Brand Search do last week?"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, {}, connect=True) as bench:
        yield bench


async def test_a_stranger_is_answered_by_the_app_of_the_company_that_has_it(bench: Bench) -> None:
    """The envelope names the stranger's workspace, where nobody has installed anything."""
    ts = await bench.asked(QUESTION, channel=PARTNERS, user="@dana")
    assert "Brand Search" in (await bench.answer(ts, PARTNERS))["plain"]
    assert {run.tenant for run in await bench.idle()} == {NORTHWIND}
    assert await bench.service.engine.runs(tenant=HARBOR) == []
    [*_, started] = await bench.people.calls("chat.startStream")
    assert (started["result"]["ok"], started["args"]["recipient_team_id"]) == (True, HARBOR)


async def test_an_admin_of_the_other_company_approves_nothing(bench: Bench) -> None:
    ts = await bench.asked("@Threadline pause Brand Search", channel=PARTNERS)

    async def card() -> bool:
        return any("Approve" in each["plain"] for each in await bench.replies(ts, PARTNERS))

    await until(card, "a card")
    [shown] = [each for each in await bench.replies(ts, PARTNERS) if "Approve" in each["plain"]]
    assert (await bench.people.click(PARTNERS, shown["ts"], "approval_approve", "@dana"))["ok"]
    await bench.idle()
    assert await bench.status_of("Brand Search") != "paused"
    assert (await bench.people.click(PARTNERS, shown["ts"], "approval_approve", "@ada"))["ok"]

    async def paused() -> bool:
        return await bench.status_of("Brand Search") == "paused"

    await until(paused, "the campaign to be paused")


async def test_with_the_app_in_both_companies_the_one_that_is_mentioned_answers(bench: Bench) -> None:
    await bench.install()
    ts = await bench.asked(f"<@{HARBOR_BOT}> how did Brand Search do last week?", channel=PARTNERS, user="@dana")
    await bench.settled(ts=ts)
    await bench.idle()
    assert await bench.replies(ts, PARTNERS) == [], "Northwind's app is not meant"
    ours = await bench.asked(QUESTION, channel=PARTNERS, user="@dana")
    await bench.answer(ours, PARTNERS)


async def test_a_strangers_commands_are_those_of_their_own_workspace(bench: Bench) -> None:
    with pytest.raises(ControlError, match="is not a command of this workspace"):
        await bench.people.command(PARTNERS, "@dana", "/report")


async def test_a_stranger_gives_no_commands_in_a_thread_either(bench: Bench) -> None:
    await bench.people.command(PARTNERS, "@ada", "/summaries", "every monday 9:00")
    root = await bench.people.post_message(PARTNERS, "@ada", "the plan for December")
    for text in ("!summaries off", "!threadline usage", "@Threadline !threadline forget this channel"):
        ts = await bench.people.post_message(PARTNERS, "@dana", text, thread_ts=root)
        await bench.settled(ts=ts)
    assert {run.workflow for run in await bench.idle()} <= {"agentic-loop"}
    assert len(await bench.service.store.schedules(tenant=NORTHWIND, limit=10)) == 1


async def test_a_stranger_changes_no_schedule_by_talking_either(bench: Bench) -> None:
    """What acts on the world asks first: somebody of the company the campaigns are of decides."""
    asked = {
        "@Threadline post a summary here every day at 9": 0,
        "@Threadline cancel the summaries in this channel": 1,
    }
    for text, scheduled in asked.items():
        if scheduled:
            await bench.people.command(PARTNERS, "@ada", "/summaries", "every monday 9:00")
        ts = await bench.asked(text, channel=PARTNERS, user="@dana")
        await bench.answer(ts, PARTNERS, count=2)
        await bench.idle()
        assert len(await bench.service.store.schedules(tenant=NORTHWIND, limit=10)) == scheduled
        [shown] = [each for each in await bench.replies(ts, PARTNERS) if "[Approve]" in each["plain"]]
    assert (await bench.people.click(PARTNERS, shown["ts"], "approval_approve", "@ada"))["ok"]
    await bench.idle()
    assert await bench.service.store.schedules(tenant=NORTHWIND, limit=10) == []


@pytest.mark.parametrize("how", ["word", "button"])
async def test_a_stranger_stops_what_they_asked_for_and_nothing_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    listener = Listener()
    monkeypatch.setattr(bench.service.model, "stream", listener.stream)
    listener.gate.clear()
    root = await bench.asked(QUESTION, channel=PARTNERS)
    await until(lambda: len(listener.requests) == 1, "the turn of Northwind's own")
    await stop(bench, root, how)
    own = await bench.asked(QUESTION, channel=PARTNERS, user="@dana")
    await until(lambda: len(listener.requests) == 2, "the turn of the stranger's")
    await stop(bench, own, how)

    async def ended() -> bool:
        return any("Stopped" in each["plain"] for each in await bench.replies(own, PARTNERS))

    await until(ended, "the stranger's own turn to end")
    listener.gate.set()
    await bench.answer(root, PARTNERS)
    await bench.idle()
    assert not any("Stopped" in each["plain"] for each in await bench.replies(root, PARTNERS))
    assert await bench.service.store.read(Select(STOPS, {"tenant": NORTHWIND})) == []


async def stop(bench: Bench, root: str, how: str) -> None:
    if how == "button":
        await bench.people.stop(PARTNERS, root, "@dana")
        await bench.settled(type="agent_session_stopped")
    else:
        ts = await bench.people.post_message(PARTNERS, "@dana", "stop", thread_ts=root)
        await bench.settled(ts=ts)
