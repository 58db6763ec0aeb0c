"""What a workspace leaves behind is deleted after the stated retention, and not if it comes back before."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.approvals import waiting
from agent.messages import MESSAGES
from bot.departures import CLAIM, DEPARTURES
from bot.installs import INSTALLATIONS, KEPT_EVENTS
from tests.bot.bench import HARBOR, HARBOR_BOT, NORTHWIND, Bench, envelope, message_event
from tests.waiting import until
from workflows.storage import Select, StoreUnavailableError, Update
from workflows.storage.ageing import rows_of_tenants

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
DAY = 86_400.0
QUESTION = "how did Brand Search do last week?"


async def conversation(bench: Bench) -> str:
    """An answered question in Harbor; returns its ts."""
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    await bench.answer(ts, "#ads")
    await bench.idle(HARBOR)
    return ts


async def left_behind(bench: Bench, tenant: str = HARBOR) -> dict[str, int]:
    """How many rows of a workspace each table holds, where it holds any."""
    store = bench.service.store
    counts = {
        each.name: len(await store.read(Select(each, {"tenant": tenant}))) for each in rows_of_tenants(store.tables)
    }
    counts["runs"] = len(await store.runs(tenant=tenant))
    return {name: count for name, count in counts.items() if count}


async def departures(bench: Bench) -> list[dict[str, Any]]:
    return await bench.service.store.read(Select(DEPARTURES, {}))


async def uninstalled(bench: Bench) -> None:
    await bench.people.uninstall(HARBOR)
    await bench.settled(type="app_uninstalled")
    assert await bench.service.installs.credentials(HARBOR) is None


@BOTH
async def test_everything_of_a_workspace_is_gone_after_thirty_days_and_nothing_of_another(bench: Bench) -> None:
    await bench.install()
    await conversation(bench)
    mine = await bench.asked(f"@Threadline {QUESTION}")
    await bench.answer(mine)
    await bench.idle()
    others = await left_behind(bench, NORTHWIND)
    await uninstalled(bench)
    await bench.time_passes(29 * DAY)
    before = await left_behind(bench)
    assert {"messages", "installations", "runs"} <= set(before)
    await bench.time_passes(1.1 * DAY)

    async def gone() -> bool:
        return not await departures(bench)

    await until(gone, "the deletion")
    assert await left_behind(bench) == {}
    now = await left_behind(bench, NORTHWIND)
    assert now["messages"] == others["messages"]
    assert now["runs"] == others["runs"]


async def test_a_workspace_that_comes_back_before_keeps_its_data(bench: Bench) -> None:
    await bench.install()
    ts = await conversation(bench)
    await uninstalled(bench)
    await bench.time_passes(29 * DAY)
    await bench.install()
    assert await departures(bench) == []
    await bench.time_passes(31 * DAY)
    assert await bench.service.installs.forget_departed(bench.service.workspaces.credentials) == 0
    assert await bench.service.store.read(Select(MESSAGES, {"tenant": HARBOR}))
    await bench.people.post_message("#ads", "@dana", "and the week before?", thread_ts=ts)
    await bench.answer(ts, "#ads", count=2)


async def test_a_deletion_that_was_cut_off_is_finished_by_another_process(bench: Bench) -> None:
    await bench.install()
    await conversation(bench)
    await uninstalled(bench)
    store, [row] = bench.service.store, await departures(bench)
    await store.set_clock_offset(timedelta(days=31))
    dying = bench.service.installs._departures
    assert await dying._claimed(row) is not None
    await store.forget(HARBOR, limit=3)
    with pytest.raises(StoreUnavailableError, match="is being deleted; install again in a minute"):
        await dying.returning(HARBOR)
    page = await bench.install()
    assert (page.status, "in a minute" in page.text) == (503, True)
    assert await left_behind(bench)
    await store.set_clock_offset(timedelta(days=31) + CLAIM)

    async def gone() -> bool:
        return not await departures(bench)

    await until(gone, "the deletion")
    assert await left_behind(bench) == {}
    assert (await bench.install()).status == 200


@pytest.mark.parametrize("storage", ["servers"], indirect=True)
async def test_of_several_clocks_one_deletes(bench: Bench) -> None:
    await bench.install()
    await conversation(bench)
    others = [(await bench.replica())[0] for _ in range(2)]
    assert bench.service.engine.clock is not None
    await bench.service.engine.clock.stop()
    await uninstalled(bench)
    await bench.service.store.set_clock_offset(timedelta(days=31))
    services = [bench.service, *others]
    with capture_logs() as lines:
        await asyncio.gather(*(each.installs.forget_departed(each.workspaces.credentials) for each in services * 2))
    assert [line["event"] for line in lines].count("workspace_forgotten") == 1
    assert await left_behind(bench) == {}


async def test_what_was_kept_of_a_workspace_that_never_installs_goes_after_an_hour(bench: Bench) -> None:
    event = message_event("hi", ts="1700000000.000001")
    assert (await bench.post_json(envelope(event, team=HARBOR, bot=HARBOR_BOT))).status == 200
    assert await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR}))
    await bench.time_passes(3700)

    async def gone() -> bool:
        return not await departures(bench)

    await until(gone, "the kept event to go")
    assert await left_behind(bench) == {}


async def test_an_hour_after_something_was_kept_the_data_of_a_workspace_that_left_is_still_there(bench: Bench) -> None:
    await bench.install()
    await conversation(bench)
    await uninstalled(bench)
    before = await left_behind(bench)
    event = message_event("hi", ts="1700000000.000001")
    await bench.post_json(envelope(event, team=HARBOR, bot=HARBOR_BOT))
    await bench.time_passes(2 * DAY)
    await bench.service.installs.forget_departed(bench.service.workspaces.credentials)
    assert (await left_behind(bench))["messages"] == before["messages"]


async def test_the_workspace_of_the_settings_is_never_forgotten(bench: Bench) -> None:
    """Whatever an older installation of it left behind: it has the app."""
    await bench.asked(f"@Threadline {QUESTION}")
    await bench.idle()
    await bench.service.store.write(await bench.service.installs._departures.left(NORTHWIND))
    await bench.time_passes(31 * DAY)

    async def dropped() -> bool:
        return not await departures(bench)

    await until(dropped, "the departure to be dropped")
    assert await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND}))


async def test_a_workspace_whose_token_was_lost_is_not_forgotten_until_it_leaves(bench: Bench) -> None:
    await bench.install()
    await conversation(bench)
    store = bench.service.store
    rows = await store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))
    now = await store.now()
    await store.write(Update(INSTALLATIONS, {"tenant": HARBOR}, {"lost": True, "expires_at": now - timedelta(hours=1)}))
    bench.service.installs.refresh(HARBOR)
    event = message_event("hi", ts="1700000000.000001")
    assert (await bench.post_json(envelope(event, team=HARBOR, bot=HARBOR_BOT))).status == 200
    await bench.time_passes(2 * DAY)
    await bench.service.installs.forget_departed(bench.service.workspaces.credentials)
    assert await store.read(Select(MESSAGES, {"tenant": HARBOR}))
    left = envelope({"type": "app_uninstalled"}, team=HARBOR, bot=HARBOR_BOT)
    assert (await bench.post_json(left)).status == 200
    [row] = await store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))
    assert (row["removed_at"] is not None, row["token"] != rows[0]["token"]) == (True, True)
    assert len(await departures(bench)) == 1


async def worked(bench: Bench) -> list[str]:
    """The runs of Harbor once none is live, but for those that follow an installation."""
    return [run.run_id for run in await bench.idle(HARBOR) if run.workflow != bench.service.arrival.workflow.id]


@BOTH
async def test_what_waited_for_an_approval_is_not_done_after_the_app_left_nor_when_it_comes_back(bench: Bench) -> None:
    await bench.install()
    [name, *_] = [each.name for each in await bench.service.platform.campaigns(HARBOR) if each.status == "active"]
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline pause {name}")
    await bench.answer(ts, "#ads", count=2)
    before = await worked(bench)
    [asked] = await waiting(bench.service.store, HARBOR)
    await uninstalled(bench)
    assert await waiting(bench.service.store, HARBOR) == []
    await bench.install()
    await bench.click(asked.id, user="U0DANA", team=HARBOR)
    await bench.time_passes(1.1 * DAY)
    assert await worked(bench) == before
    assert await bench.status_of(name, tenant=HARBOR) == "active"


async def said(bench: Bench, ts: str, text: str = QUESTION) -> int:
    """A question in Harbor, as Slack delivers it; returns the answer's status."""
    event = message_event(f"<@{HARBOR_BOT}> {text}", ts=ts, thread_ts="1700000000.000001")
    return (await bench.post_json(envelope(event, team=HARBOR, bot=HARBOR_BOT, event_id=f"Ev{ts}"))).status


@BOTH
@pytest.mark.parametrize("moment", ["before the first batch", "after the last batch"])
async def test_what_is_said_while_the_old_data_is_deleted_is_not_acknowledged_until_it_is_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Acknowledged, it would go with the old data, or stay for ever with nothing to delete it."""
    await bench.install()
    await conversation(bench)
    await uninstalled(bench)
    store, statuses = bench.service.store, list[int]()
    forget = store.forget

    async def meanwhile(workspace: str, *, limit: int = 200) -> int:
        first = "first" in moment and not statuses
        if first:
            statuses.append(await said(bench, "1700000001.000001"))
        removed = await forget(workspace, limit=limit)
        if removed == 0 and not statuses:
            statuses.append(await said(bench, "1700000001.000001"))
        return removed

    monkeypatch.setattr(store, "forget", meanwhile)
    await bench.time_passes(30.1 * DAY)

    async def gone() -> bool:
        return bool(statuses) and not await departures(bench)

    await until(gone, "the deletion")
    assert statuses == [503]
    assert await left_behind(bench) == {}
    assert await said(bench, "1700000001.000001") == 200
    assert len(await departures(bench)) == 1
    assert [row["event_id"] for row in await store.read(Select(KEPT_EVENTS, {"tenant": HARBOR}))] == [
        "Ev1700000001.000001"
    ]


async def test_a_deletion_does_not_begin_within_an_hour_of_what_was_kept(bench: Bench) -> None:
    """Of two processes one keeps an event while the other is about to claim the deletion."""
    await bench.install()
    await conversation(bench)
    await uninstalled(bench)
    store, departing = bench.service.store, bench.service.installs._departures
    assert bench.service.engine.clock is not None
    await bench.service.engine.clock.stop()
    await store.set_clock_offset(timedelta(days=30, minutes=1))
    [due] = await departing.due()
    assert await said(bench, "1700000001.000001") == 200
    assert await departing.forget(due) == 0
    assert await departing.due() == []
    assert await store.read(Select(KEPT_EVENTS, {"tenant": HARBOR}))
    await store.set_clock_offset(timedelta(days=30, minutes=62))
    [due] = await departing.due()
    assert await departing.forget(due) > 0
    assert await left_behind(bench) == {}


async def test_of_more_than_can_be_kept_none_is_acknowledged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.installs.KEPT_PER_TENANT", 3)
    assert [await said(bench, f"1700000001.00000{n}") for n in range(5)] == [200, 200, 200, 503, 503]
    assert await said(bench, "1700000001.000001") == 200, "a copy of one that is kept"
    assert len(await bench.service.store.read(Select(KEPT_EVENTS, {"tenant": HARBOR}))) == 3
