"""Claims: each due run goes to one worker."""

import asyncio
from datetime import timedelta

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import WORKFLOWS, a_run, accept, claim, claimed, new_id, ok
from workflows.storage.base import ReapOutcome, RunState, StepBatch


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


async def test_starting_a_run_again_that_has_ended_since_gives_its_own_id_and_not_that_of_its_keys_next_run(
    store: AnyStore,
) -> None:
    """The reply was lost, and whoever asks again is told which run is its own."""
    run = a_run(key="k")
    await store.start(run)
    (held,) = await claim(store)
    await store.end(held.run_id, held.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id())
    await store.start(a_run(key="k"))
    assert await store.start(run) == run.run_id


async def test_a_run_started_for_a_worker_is_that_workers_from_its_first_commit(store: AnyStore) -> None:
    await store.register("A", host="h", deployment="d", lease=timedelta(seconds=9))
    started, message = await store.start(a_run(owner="A")), await accept(store, owner="A")
    for run_id in (started, message.run_id):
        run = await store.run(run_id)
        assert run is not None
        assert (run.state, run.owner, run.fence, run.attempts) == (RunState.RUNNING, "A", 1, 1)
        assert (await store.step(run_id, 1, StepBatch((ok("a"),)))).recorded
    assert message.claimed
    assert await claim(store, "B", limit=9) == []


async def test_a_run_started_for_a_worker_that_was_reaped_is_anyones(store: AnyStore) -> None:
    started, message = await store.start(a_run(owner="gone")), await accept(store, owner="gone")
    assert not message.claimed
    assert {run.run_id for run in await claim(store, "B", limit=9)} == {started, message.run_id}


async def test_a_message_to_a_live_run_claims_nothing(store: AnyStore) -> None:
    first = await accept(store, "m1")
    await claim(store, "A")
    second = await accept(store, "m2", owner="A")
    assert (second.run_id, second.claimed, second.started) == (first.run_id, False, False)
    run = await store.run(first.run_id)
    assert run is not None
    assert run.fence == 1


async def test_a_run_started_for_a_worker_that_dies_is_freed(store: AnyStore) -> None:
    await store.register("A", host="h", deployment="d", lease=timedelta(seconds=9))
    started = await store.start(a_run(owner="A"))
    await store.set_clock_offset(timedelta(seconds=10))
    assert await store.reap() == ReapOutcome((started,), ())


async def test_what_a_worker_started_and_does_not_hold_is_released(store: AnyStore) -> None:
    """The reply of the insert was lost: the worker does not know that the run is its own."""
    await store.register("A", host="h", deployment="d", lease=timedelta(seconds=9))
    started, kept = await store.start(a_run(owner="A")), await store.start(a_run(owner="A"))
    assert await store.release("A", held=[kept]) == [started]
    (run,) = await claim(store, "B", limit=9)
    assert (run.run_id, run.fence, run.attempts) == (started, 3, 1)
