"""Leases and quarantine, on a clock of the test's own."""

from datetime import timedelta
from typing import Any

import pytest

from workflows import Engine
from workflows.storage import MemoryStore, StoreUnavailableError
from workflows.storage.base import NewRun
from workflows.workers.lease import Lease
from workflows.workers.quarantine import Quarantine


class Ticking:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Flaky:
    """A store whose beats can be made to fail."""

    def __init__(self) -> None:
        self.away = False
        self.alive = True

    async def register(self, worker_id: str, **_: Any) -> None:
        return

    async def beat(self, worker_id: str, **_: Any) -> bool:
        if self.away:
            raise StoreUnavailableError("away")
        return self.alive


async def beating(lease: Lease, clock: Ticking, *, seconds: int) -> None:
    for _ in range(seconds):
        clock.now += 1
        await lease.renew()


@pytest.mark.parametrize(("lease_s", "beat_s"), [(10, 0), (10, -1), (10, 10), (10, 11), (0, None), (-1, None)])
def test_a_lease_that_no_beat_keeps_is_refused(lease_s: float, beat_s: float | None) -> None:
    with pytest.raises(ValueError, match="0 < beat_s < lease_s"):
        Engine(store=MemoryStore(), lease_s=lease_s, beat_s=beat_s)


async def test_only_a_worker_that_held_its_lease_for_a_whole_one_may_judge_others() -> None:
    clock, store = Ticking(), Flaky()
    lease = Lease(store, lease_s=10, clock=clock)  # type: ignore[arg-type]
    assert not lease.seasoned
    await lease.register()
    assert not lease.seasoned
    await beating(lease, clock, seconds=10)
    assert lease.seasoned


async def test_one_that_was_frozen_judges_nobody_until_it_has_beaten_for_a_whole_lease() -> None:
    """Its machine may have been: then the others were as silent as itself. It would even reap its own lease."""
    clock, store = Ticking(), Flaky()
    lease = Lease(store, lease_s=10, clock=clock)  # type: ignore[arg-type]
    await lease.register()
    await beating(lease, clock, seconds=10)
    clock.now += 60
    assert not lease.seasoned
    assert await lease.renew()
    assert not lease.seasoned
    await beating(lease, clock, seconds=10)
    assert lease.seasoned


async def test_an_outage_begins_the_wait_anew() -> None:
    """While storage was away nobody could beat: the silence of others says nothing."""
    clock, store = Ticking(), Flaky()
    lease = Lease(store, lease_s=10, clock=clock)  # type: ignore[arg-type]
    await lease.register()
    await beating(lease, clock, seconds=10)
    store.away = True
    with pytest.raises(StoreUnavailableError):
        await lease.renew()
    assert not lease.seasoned
    store.away = False
    assert await lease.renew()
    await beating(lease, clock, seconds=9)
    assert not lease.seasoned
    await beating(lease, clock, seconds=1)
    assert lease.seasoned


async def test_a_worker_that_was_reaped_is_another_one_afterwards() -> None:
    clock, store = Ticking(), Flaky()
    lease = Lease(store, lease_s=10, clock=clock)  # type: ignore[arg-type]
    await lease.register()
    clock.now += 10
    before, store.alive = lease.worker_id, False
    assert not await lease.renew()
    lease.replace()
    assert lease.worker_id != before
    assert not lease.seasoned


WORKERS = ("A", "B", "C")
WANTED: dict[str, Any] = {"queues": ["default"], "workflows": [("w", "1")]}


async def suspect_waiting(store: MemoryStore, *, seconds: float) -> None:
    """One run that two workers died with, due for so long; and three workers."""
    await store.open()
    await store.start(NewRun("0199-suspect", "T1", "w"))
    for _ in range(2):
        await store.register("dying", host="h", deployment="", lease=timedelta(seconds=-1))
        await store.claim("dying", queues=["default"], workflows=[("w", "1")], limit=1)
        await store.reap()
    for worker_id in WORKERS:
        await store.register(worker_id, host="h", deployment="", lease=timedelta(hours=1))
    await store.set_clock_offset(timedelta(seconds=seconds))


async def making_room(store: MemoryStore) -> int:
    count = 0
    for worker_id in WORKERS:
        quarantine = Quarantine(store, patience=timedelta(seconds=5))
        await quarantine.look(worker_id, **WANTED)
        count += quarantine.making_room
    return count


@pytest.mark.parametrize(("seconds", "workers"), [(1, 0), (6, 1), (11, 2), (16, 3)])
async def test_one_worker_makes_room_and_another_one_if_that_does_not_help(seconds: float, workers: int) -> None:
    store = MemoryStore()
    await suspect_waiting(store, seconds=seconds)
    assert await making_room(store) == workers
    await store.close()


async def test_the_one_that_makes_room_hands_over_what_it_holds_when_its_notice_is_up() -> None:
    store, clock = MemoryStore(), Ticking()
    await suspect_waiting(store, seconds=3600)
    quarantine = Quarantine(store, notice_s=10, clock=clock)
    await quarantine.look("A", **WANTED)
    assert quarantine.making_room
    assert not quarantine.handing_over
    clock.now += 10
    assert quarantine.handing_over
    quarantine.over()
    assert not quarantine.making_room
    await store.close()


async def test_room_is_made_no_more_once_another_has_taken_the_suspect() -> None:
    store = MemoryStore()
    await suspect_waiting(store, seconds=3600)
    quarantine = Quarantine(store)
    await quarantine.look("A", **WANTED)
    assert quarantine.making_room
    assert len(await store.claim("B", limit=1, suspects="head", **WANTED)) == 1
    await quarantine.look("A", **WANTED)
    assert not quarantine.making_room
    await store.close()
