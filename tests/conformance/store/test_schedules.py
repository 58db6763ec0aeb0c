"""Schedules: any number of clocks, one firing."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import a_run
from workflows.storage.base import (
    Schedule,
)


async def weekly(store: AnyStore) -> Schedule:
    entry = Schedule(
        "T1",
        "weekly",
        "w",
        "1",
        "0 9 * * 1",
        "Europe/Berlin",
        await store.now() - timedelta(seconds=1),
        input=b"{}",
    )
    await store.put_schedule(entry)
    return (await store.schedules(tenant="T1"))[0]


async def test_two_clocks_fire_once(make_store: Callable[[], AnyStore]) -> None:
    stores = [make_store(), make_store()]
    for each in stores:
        await each.open()
    entry = await weekly(stores[0])
    following = entry.next_at + timedelta(days=7)
    fired = await asyncio.gather(
        *(each.tick(entry, next_at=following, run=a_run(input=entry.input)) for each in stores * 3)
    )
    assert sum(fired) == 1
    (after,) = await stores[0].schedules(tenant="T1")
    assert (after.next_at, after.last_at) == (following, entry.next_at)
    assert len(await stores[0].runs(tenant="T1")) == 1
    for each in stores:
        await each.close()


async def test_due_ones_are_listed_and_paused_ones_are_not(store: AnyStore) -> None:
    entry = await weekly(store)
    assert [each.name for each in await store.schedules(due=True)] == ["weekly"]
    await store.put_schedule(Schedule("T1", "weekly", "w", "1", entry.spec, entry.tz, entry.next_at, paused=True))
    assert await store.schedules(due=True) == []


async def test_one_can_be_deleted_by_its_own_tenant_only(store: AnyStore) -> None:
    await weekly(store)
    assert not await store.delete_schedule(tenant="T2", name="weekly")
    assert await store.delete_schedule(tenant="T1", name="weekly")
