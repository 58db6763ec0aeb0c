"""Schedules: any number of clocks, one firing; and what became of each."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import claim
from workflows.storage.base import MAX_QUEUED, Firing, FiringStatus, NewRun, RunState, Schedule
from workflows.storage.schema import Insert, Select, Update
from workflows.storage.tables import FIRINGS, SCHEDULES

DAY = timedelta(days=1)


async def weekly(store: AnyStore, **changes: Any) -> Schedule:
    """A schedule that is due."""
    due = (await store.now()).replace(microsecond=0) - timedelta(seconds=5)
    entry = Schedule("T1", "weekly", "w", "1", "0 9 * * 1", "Europe/Berlin", due, due_at=due, input=b"{}")
    return await store.put_schedule(replace(entry, **changes))


def moved(schedule: Schedule, *, days: int = 7) -> Schedule:
    at = schedule.due + days * DAY
    return replace(schedule, due_at=at, next_at=at, fired=schedule.fired + 1)


def firing(schedule: Schedule, **changes: Any) -> Firing:
    whole = Firing(
        "T1", schedule.name, f"run-{schedule.due:%m%d}", schedule.due, status=FiringStatus.SKIPPED, reason="busy"
    )
    return replace(whole, **changes)


def run_for(each: Firing, *, key: str = "schedule:weekly") -> NewRun:
    return NewRun(each.run_id, "T1", "w", key=key, input=b"{}")


async def fire(store: AnyStore, schedule: Schedule, **changes: Any) -> tuple[FiringStatus | None, Schedule]:
    each = firing(schedule, **changes)
    after = moved(schedule)
    return await store.tick(schedule, moved=after, firing=each, run=run_for(each)), after


async def end(store: AnyStore, run_id: str) -> None:
    (row,) = await claim(store)
    assert row.run_id == run_id
    assert (await store.end(run_id, row.fence, RunState.FAILED, inbox_seen=0, successor_id="none")).ended


async def test_two_clocks_fire_once(make_store: Callable[[], AnyStore]) -> None:
    stores = [make_store(), make_store()]
    for each in stores:
        await each.open()
    entry = await weekly(stores[0])
    outcomes = await asyncio.gather(*(fire(each, entry) for each in stores * 3))
    assert sorted(str(status) for status, _ in outcomes) == ["None"] * 5 + ["started"]
    (after,) = await stores[0].schedules(tenant="T1")
    assert (after.due, after.last_at, after.fired) == (entry.due + 7 * DAY, entry.due, 1)
    (run,) = await stores[0].runs(tenant="T1")
    assert (run.run_id, run.input, run.trace_id) == (firing(entry).run_id, b"{}", None)
    assert len(await stores[1].firings(tenant="T1", schedule="weekly")) == 1
    for each in stores:
        await each.close()


async def test_due_ones_are_listed_and_paused_and_ended_ones_are_not(store: AnyStore) -> None:
    await weekly(store)
    assert [each.name for each in await store.schedules(due=True)] == ["weekly"]
    assert await store.pause_schedule(tenant="T1", name="weekly", reason="holidays")
    assert await store.schedules(due=True) == []
    await weekly(store, name="over", ended=True)
    await weekly(store, name="later", next_at=await store.now() + DAY)
    assert await store.schedules(due=True) == []
    assert len(await store.schedules(tenant="T1")) == 3
    assert await store.schedules(tenant="T2") == []


async def test_one_can_be_read_and_deleted_by_its_own_tenant_only(store: AnyStore) -> None:
    entry = await weekly(store)
    assert await store.schedule(tenant="T1", name="weekly") == entry
    assert await store.schedule(tenant="T2", name="weekly") is None
    assert not await store.pause_schedule(tenant="T2", name="weekly", reason="mine")
    assert not await store.delete_schedule(tenant="T2", name="weekly")
    assert await store.delete_schedule(tenant="T1", name="weekly")
    assert not await store.delete_schedule(tenant="T1", name="weekly")


class TestPutting:
    async def test_put_again_with_the_same_times_it_goes_on_where_it_is(self, store: AnyStore) -> None:
        """A process that puts its schedules at every start must not lose the firing that is due just then."""
        entry = await weekly(store)
        _, after = await fire(store, entry)
        later = replace(entry, next_at=entry.next_at + 90 * DAY, due_at=entry.due + 90 * DAY, input=b"[]", version="2")
        again = await store.put_schedule(later)
        assert (again.due, again.next_at, again.fired, again.last_at) == (after.due, after.next_at, 1, entry.due)
        assert (again.input, again.version) == (b"[]", "2")

    @pytest.mark.parametrize(
        "change",
        [{"spec": "0 10 * * 1"}, {"tz": "UTC"}, {"jitter_s": 5.0}, {"max_firings": 9}, {"ends_at": datetime.max}],
    )
    async def test_put_again_with_other_times_it_begins_anew(self, store: AnyStore, change: dict[str, Any]) -> None:
        if "ends_at" in change:
            change = {"ends_at": await store.now() + 99 * DAY}
        entry = await weekly(store)
        await fire(store, entry)
        again = await store.put_schedule(replace(entry, next_at=entry.next_at + DAY, due_at=entry.due + DAY, **change))
        assert (again.due, again.fired) == (entry.due + DAY, 0)

    async def test_put_again_one_that_is_paused_fires_unless_it_is_to_stay_so(self, store: AnyStore) -> None:
        entry = await weekly(store)
        await store.pause_schedule(tenant="T1", name="weekly", reason="holidays")
        kept = await store.put_schedule(entry, keep_paused=True)
        assert (kept.paused, kept.paused_reason) == (True, "holidays")
        again = await store.put_schedule(entry)
        assert (again.paused, again.paused_reason) == (False, None)


class TestPausing:
    async def test_a_clock_that_read_it_before_it_was_paused_does_not_fire_it(self, store: AnyStore) -> None:
        entry = await weekly(store)
        await store.pause_schedule(tenant="T1", name="weekly", reason="holidays")
        assert (await fire(store, entry))[0] is None
        assert await store.runs(tenant="T1") == []
        assert await store.firings(tenant="T1", schedule="weekly") == []

    async def test_resumed_it_goes_on_at_the_time_named(self, store: AnyStore) -> None:
        entry = await weekly(store)
        assert not await store.resume_schedule(tenant="T1", name="weekly", due_at=entry.due, next_at=entry.due)
        await store.pause_schedule(tenant="T1", name="weekly", reason="holidays")
        at = entry.due + 14 * DAY
        assert await store.resume_schedule(tenant="T1", name="weekly", due_at=at, next_at=at + timedelta(minutes=1))
        again = await store.schedule(tenant="T1", name="weekly")
        assert again is not None
        assert (again.paused, again.paused_reason, again.due_at) == (False, None, at)


class TestOverlaps:
    async def test_while_a_run_is_live_the_next_firing_gets_the_status_it_was_given(self, store: AnyStore) -> None:
        entry = await weekly(store)
        status, entry = await fire(store, entry)
        assert status is FiringStatus.STARTED
        status, entry = await fire(store, entry)
        assert status is FiringStatus.SKIPPED
        status, entry = await fire(store, entry, status=FiringStatus.QUEUED, reason="wait")
        assert status is FiringStatus.QUEUED
        assert len(await store.runs(tenant="T1")) == 1
        assert [(each.status, each.reason) for each in await store.firings(tenant="T1", schedule="weekly")] == [
            ("queued", "wait"),
            ("skipped", "busy"),
            ("started", None),
        ]

    async def test_one_whose_runs_have_keys_of_their_own_starts_at_once(self, store: AnyStore) -> None:
        entry = await weekly(store)
        for _ in range(2):
            each, after = firing(entry), moved(entry)
            status = await store.tick(entry, moved=after, firing=each, run=run_for(each, key=each.run_id))
            assert status is FiringStatus.STARTED
            entry = after
        assert len(await store.runs(tenant="T1")) == 2

    async def test_one_without_a_run_is_only_written_down(self, store: AnyStore) -> None:
        entry = await weekly(store)
        each = firing(entry, status=FiringStatus.MISSED, reason="late", missed=7)
        assert await store.tick(entry, moved=moved(entry), firing=each, run=None) is FiringStatus.MISSED
        assert await store.runs(tenant="T1") == []
        (found,) = await store.firings(tenant="T1", schedule="weekly")
        assert (found.missed, found.reason, found.run_state) == (7, "late", None)

    async def test_what_waits_is_started_in_order_when_the_run_before_it_has_ended(self, store: AnyStore) -> None:
        entry = await weekly(store)
        first = firing(entry).run_id
        _, entry = await fire(store, entry)
        waiting = []
        for _ in range(2):
            waiting.append(firing(entry).run_id)
            _, entry = await fire(store, entry, status=FiringStatus.QUEUED)
        assert await store.queued_firings() == []
        await end(store, first)
        for run_id in waiting:
            (each,) = await store.queued_firings()
            assert each.run_id == run_id
            assert await store.start_firing(each, run_for(each))
            assert not await store.start_firing(each, run_for(each))
            assert await store.queued_firings() == []
            await end(store, run_id)
        assert {each.status for each in await store.firings(tenant="T1", schedule="weekly")} == {"started"}

    async def test_two_clocks_start_what_waits_once(self, make_store: Callable[[], AnyStore]) -> None:
        stores = [make_store(), make_store()]
        for each in stores:
            await each.open()
        entry = await weekly(stores[0])
        first = firing(entry).run_id
        _, entry = await fire(stores[0], entry)
        await fire(stores[0], entry, status=FiringStatus.QUEUED)
        await end(stores[0], first)
        (waiting,) = await stores[0].queued_firings()
        started = await asyncio.gather(*(each.start_firing(waiting, run_for(waiting)) for each in stores * 3))
        assert sum(started) == 1
        for each in stores:
            await each.close()

    async def test_one_that_waits_does_not_start_while_its_schedule_is_paused(self, store: AnyStore) -> None:
        entry = await weekly(store)
        first = firing(entry).run_id
        _, entry = await fire(store, entry)
        await fire(store, entry, status=FiringStatus.QUEUED)
        await end(store, first)
        await store.pause_schedule(tenant="T1", name="weekly", reason="holidays")
        assert await store.queued_firings() == []

    async def test_deleting_a_schedule_skips_what_waits_and_keeps_its_history(self, store: AnyStore) -> None:
        entry = await weekly(store)
        _, entry = await fire(store, entry)
        await fire(store, entry, status=FiringStatus.QUEUED)
        await store.delete_schedule(tenant="T1", name="weekly")
        assert await store.queued_firings() == []
        newest, oldest = await store.firings(tenant="T1", schedule="weekly")
        assert (newest.status, newest.reason) == ("skipped", "the schedule was deleted")
        assert (oldest.status, oldest.run_state) == ("started", RunState.READY)

    async def test_no_more_than_a_hundred_wait(self, store: AnyStore) -> None:
        entry = await weekly(store)
        _, entry = await fire(store, entry)
        values = {"tenant": "T1", "schedule": "weekly", "status": "queued", "due_at": entry.due - DAY}
        await store.write(*(Insert(FIRINGS, {**values, "run_id": f"waiting-{n}"}) for n in range(MAX_QUEUED)))
        assert (await fire(store, entry, status=FiringStatus.QUEUED))[0] is FiringStatus.SKIPPED
        (newest, *_) = await store.firings(tenant="T1", schedule="weekly")
        assert newest.reason == "the queue is full"


class TestByHand:
    async def test_one_can_be_fired_out_of_its_turn_once_per_id(self, store: AnyStore) -> None:
        entry = await weekly(store)
        each = firing(entry, run_id="by-hand", cause="manual")
        assert await store.fire_now(each, run_for(each)) is FiringStatus.STARTED
        assert await store.fire_now(each, run_for(each)) is FiringStatus.STARTED
        assert len(await store.runs(tenant="T1")) == 1
        (found,) = await store.firings(tenant="T1", schedule="weekly")
        assert (found.cause, found.run_state) == ("manual", RunState.READY)
        assert await store.schedule(tenant="T1", name="weekly") == entry

    async def test_one_that_is_not_there_or_another_tenants_is_not_fired(self, store: AnyStore) -> None:
        entry = await weekly(store)
        other = firing(entry, tenant="T2")
        assert await store.fire_now(other, replace(run_for(other), tenant="T2")) is None
        assert await store.runs(tenant="T2") == []


class TestHistory:
    async def test_it_is_read_in_pages_the_newest_first(self, store: AnyStore) -> None:
        entry = await weekly(store)
        for _ in range(5):
            _, entry = await fire(store, entry)
        page = await store.firings(tenant="T1", schedule="weekly", limit=2)
        rest = await store.firings(tenant="T1", schedule="weekly", before=page[-1].due_at)
        assert [each.due_at for each in (*page, *rest)] == [entry.due - n * 7 * DAY for n in range(1, 6)]
        assert await store.firings(tenant="T2", schedule="weekly") == []

    async def test_the_state_of_a_run_and_what_came_of_its_delivery_are_kept_apart(self, store: AnyStore) -> None:
        entry = await weekly(store)
        await fire(store, entry)
        run_id = firing(entry).run_id
        await end(store, run_id)
        (found,) = await store.firings(tenant="T1", schedule="weekly")
        assert (found.run_state, found.delivery) == (RunState.FAILED, None)
        where = {"tenant": "T1", "run_id": run_id}
        await store.write(Update(FIRINGS, where, {"delivery": "delivered", "delivery_detail": "C1/171.5"}))
        (found,) = await store.firings(tenant="T1", schedule="weekly")
        assert (found.run_state, found.delivery, found.delivery_detail) == (RunState.FAILED, "delivered", "C1/171.5")

    async def test_a_firing_whose_run_is_no_longer_kept_has_no_state(self, store: AnyStore) -> None:
        entry = await weekly(store)
        each = firing(entry, status=FiringStatus.STARTED)
        await store.tick(entry, moved=moved(entry), firing=each, run=None)
        (found,) = await store.firings(tenant="T1", schedule="weekly")
        assert (found.status, found.run_state) == ("started", None)


async def test_a_schedule_of_the_version_before_fires_as_it_did(store: AnyStore) -> None:
    """Its row knows nothing of the columns that came later: every time starts a run, whatever the one before does."""
    due = await store.now()
    values = {"tenant": "T1", "name": "old", "workflow": "w", "spec": "0 9 * * 1", "tz": "UTC", "next_at": due}
    await store.write(Insert(SCHEDULES, values))
    (entry,) = await store.schedules(due=True)
    assert (entry.due, entry.overlap, entry.catch_up, entry.jitter_s) == (due, "allow", "one", 0)
    rows = await store.read(Select(SCHEDULES, {"tenant": "T1"}))
    assert rows[0]["due_at"] is None
