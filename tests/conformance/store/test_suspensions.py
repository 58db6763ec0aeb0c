"""Suspended runs, and what wakes them."""

from datetime import timedelta

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import accept, claim, claimed
from workflows.storage.base import (
    RunState,
)


async def test_a_suspended_run_is_held_by_nobody(store: AnyStore) -> None:
    run = await claimed(store)
    assert await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)
    row = await store.run(run.run_id)
    assert row is not None
    assert (row.state, row.owner, row.available_at) == (RunState.SUSPENDED, None, None)
    assert await claim(store) == []


async def test_it_wakes_when_its_time_comes(store: AnyStore) -> None:
    run = await claimed(store)
    await store.suspend(run.run_id, run.fence, inbox_seen=0, until=await store.now() + timedelta(minutes=5))
    assert await claim(store) == []
    await store.set_clock_offset(timedelta(minutes=6))
    assert [each.run_id for each in await claim(store)] == [run.run_id]


async def test_a_signal_wakes_it_at_once(store: AnyStore) -> None:
    run = await claimed(store, key="thread")
    await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)
    outcome = await accept(store)
    assert (outcome.run_id, outcome.started) == (run.run_id, False)
    assert [each.run_id for each in await claim(store)] == [run.run_id]


async def test_it_does_not_sleep_past_a_signal_it_has_not_seen(store: AnyStore) -> None:
    run = await claimed(store, key="thread")
    await accept(store)
    assert not await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)


async def test_a_stale_owner_cannot_suspend(store: AnyStore) -> None:
    run = await claimed(store)
    await store.release("A", held=[])
    await claim(store, "B")
    assert not await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)
