"""Ends other than clean ones, and what becomes of unread signals."""

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import a_run, accept, claim, claimed, new_id, ok
from workflows.storage.base import (
    RunState,
    StepBatch,
)


async def test_unread_signals_go_in_order_to_a_successor(store: AnyStore) -> None:
    for number in range(3):
        await accept(store, f"m{number}")
    run = (await claim(store))[0]
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,)))
    successor = new_id()
    outcome = await store.end(
        run.run_id, run.fence, RunState.FAILED, inbox_seen=3, successor_id=successor, error={"type": "X"}
    )
    assert (outcome.ended, outcome.successor, outcome.carried) == (True, successor, 2)
    assert [(each.seq, each.dedup_key, each.carried) for each in await store.inbox(successor)] == [
        (1, "m1", 1),
        (2, "m2", 1),
    ]
    ended, next_run = await store.run(run.run_id), await store.run(successor)
    assert ended is not None
    assert next_run is not None
    assert (ended.state, ended.error, next_run.state, next_run.inbox_seq) == (
        RunState.FAILED,
        {"type": "X"},
        RunState.READY,
        2,
    )


async def test_a_signal_carried_before_becomes_a_dead_letter(store: AnyStore) -> None:
    await accept(store)
    run = (await claim(store))[0]
    await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    second = (await claim(store))[0]
    outcome = await store.end(second.run_id, second.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    assert (outcome.successor, outcome.carried) == (None, 0)
    assert [
        (each.key, each.signal.dedup_key, each.signal.payload) for each in await store.dead_signals(tenant="T1")
    ] == [("thread", "m1", b'"hi"')]
    assert await store.dead_signals(tenant="T2") == []


async def test_it_does_not_pass_a_signal_it_has_not_seen(store: AnyStore) -> None:
    await accept(store)
    run = (await claim(store))[0]
    await accept(store, "m2")
    assert not (await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())).ended


async def test_a_stale_owner_cannot_end(store: AnyStore) -> None:
    run = await claimed(store)
    await store.release("A", held=[])
    await claim(store, "B")
    assert not (await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id())).ended


async def test_a_lost_reply_is_safe(store: AnyStore) -> None:
    run = await claimed(store)
    for _ in range(2):
        assert (await store.end(run.run_id, run.fence, RunState.CANCELLED, inbox_seen=0, successor_id=new_id())).ended


async def test_the_engines_own_signals_start_no_successor(store: AnyStore) -> None:
    run = await claimed(store, key="thread")
    await store.signal(run.run_id, tenant="T1", name="$cancel", dedup_key="c", payload=None)
    outcome = await store.end(run.run_id, run.fence, RunState.CANCELLED, inbox_seen=1, successor_id=new_id())
    assert (outcome.ended, outcome.successor) == (True, None)


async def test_a_failed_child_wakes_its_parent(store: AnyStore) -> None:
    parent = await claimed(store, key="thread")
    child = a_run(parent_id=parent.run_id, parent_path="a")
    await store.step(parent.run_id, parent.fence, StepBatch((ok("a"),), children=(child,), done=True))
    (running,) = await claim(store, "B")
    await store.end(child.run_id, running.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id())
    (live,) = await store.runs(tenant="T1", key="thread", states=[RunState.READY])
    assert [each.name for each in await store.inbox(live.run_id)] == ["task"]
