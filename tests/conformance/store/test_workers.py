"""Workers: leases, and what is taken back from those that are gone."""

from datetime import timedelta

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import WORKFLOWS, a_run, claim, claimed, new_id
from workflows.storage.base import ReapOutcome, RunState


async def test_a_dead_workers_runs_are_freed_after_its_lease(store: AnyStore) -> None:
    run = await claimed(store)
    assert await store.reap() == ReapOutcome((), ())
    await store.set_clock_offset(timedelta(minutes=5))
    assert await store.reap() == ReapOutcome((run.run_id,), ())
    assert [each.run_id for each in await claim(store, "B")] == [run.run_id]


async def test_a_reaped_worker_cannot_beat_again(store: AnyStore) -> None:
    await claimed(store)
    assert await store.beat("A", lease=timedelta(seconds=9))
    await store.set_clock_offset(timedelta(minutes=5))
    await store.reap()
    assert not await store.beat("A", lease=timedelta(seconds=9))


async def test_a_beating_worker_keeps_its_runs(store: AnyStore) -> None:
    await claimed(store)
    await store.set_clock_offset(timedelta(seconds=25))
    await store.beat("A", lease=timedelta(seconds=30))
    await store.set_clock_offset(timedelta(seconds=50))
    assert await store.reap() == ReapOutcome((), ())


async def test_a_run_out_of_attempts_is_handed_to_the_reaper_to_end(store: AnyStore) -> None:
    run = await claimed(store, max_attempts=1)
    await store.set_clock_offset(timedelta(minutes=5))
    reaped = await store.reap()
    assert reaped.freed == ()
    assert [(each.run_id, each.fence) for each in reaped.dead] == [(run.run_id, run.fence + 1)]
    assert (await store.end(run.run_id, reaped.dead[0].fence, RunState.DEAD, inbox_seen=0, successor_id=new_id())).ended


async def test_release_gives_back_only_what_is_not_held_and_counts_as_no_attempt(store: AnyStore) -> None:
    for _ in range(2):
        await store.start(a_run())
    held, lost = await claim(store, limit=2)
    assert await store.release("A", held=[held.run_id]) == [lost.run_id]
    (again,) = await claim(store, "B")
    assert (again.run_id, again.attempts, again.fence) == (lost.run_id, 1, 3)


async def test_a_run_that_breaks_its_worker_counts_its_attempts_until_it_is_dead(store: AnyStore) -> None:
    run = await claimed(store, max_attempts=2)
    await store.abandon("A", run.run_id, delay=timedelta(seconds=30))
    assert await claim(store) == []
    await store.set_clock_offset(timedelta(seconds=31))
    await store.beat("A", lease=timedelta(minutes=10))
    (again,) = await claim(store, lease_s=600)
    assert again.attempts == 2
    await store.abandon("A", run.run_id, delay=timedelta(seconds=30))
    reaped = await store.reap()
    assert (reaped.freed, [each.run_id for each in reaped.dead]) == ((), [run.run_id])


async def test_a_worker_that_was_reaped_claims_nothing(store: AnyStore) -> None:
    await claimed(store)
    await store.start(a_run())
    await store.set_clock_offset(timedelta(minutes=5))
    await store.reap()
    assert await store.claim("A", queues=["default"], workflows=WORKFLOWS, limit=5) == []
