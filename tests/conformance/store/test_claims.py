"""Claims: each due run goes to one worker."""

import asyncio
from datetime import timedelta

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import WORKFLOWS, a_run, claim, claimed
from workflows.storage.base import (
    RunState,
)


async def test_a_due_run_is_claimed_once(store: AnyStore) -> None:
    run_id = await store.start(a_run())
    assert [run.run_id for run in await claim(store, "A")] == [run_id]
    assert await claim(store, "B") == []


async def test_claiming_raises_fence_and_attempts(store: AnyStore) -> None:
    run = await claimed(store)
    assert (run.fence, run.attempts, run.owner, run.state) == (1, 1, "A", RunState.RUNNING)


async def test_a_run_of_an_unknown_version_is_left_for_one_that_knows_it(store: AnyStore) -> None:
    await store.start(a_run(version="2"))
    assert await claim(store) == []


async def test_a_run_that_is_not_due_is_left(store: AnyStore) -> None:
    await store.start(a_run(available_at=await store.now() + timedelta(hours=1)))
    assert await claim(store) == []
    await store.set_clock_offset(timedelta(hours=2))
    assert len(await claim(store)) == 1


async def test_tenants_at_their_cap_are_left_out(store: AnyStore) -> None:
    await store.start(a_run())
    await store.register("A", host="h", deployment="d", lease=timedelta(seconds=9))
    assert await store.claim("A", queues=["default"], workflows=WORKFLOWS, limit=9, leave_out=["T1"]) == []


async def test_racing_claims_share_the_runs(store: AnyStore) -> None:
    ids = {await store.start(a_run()) for _ in range(20)}
    taken = [
        run.run_id
        for batch in await asyncio.gather(*(claim(store, f"W{n}", limit=3) for n in range(10)))
        for run in batch
    ]
    assert len(taken) == len(set(taken))
    assert set(taken) <= ids


async def test_only_one_live_run_per_key(store: AnyStore) -> None:
    first = await store.start(a_run(key="k"))
    assert await store.start(a_run(key="k")) == first
    assert await store.start(a_run(key="k", tenant="T2")) != first


async def test_starting_the_same_id_twice_starts_once(store: AnyStore) -> None:
    run = a_run()
    assert await store.start(run) == await store.start(run)
    assert len(await store.runs(tenant="T1")) == 1
