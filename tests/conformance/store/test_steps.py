"""Steps: records, and all that belongs to their commit, under the fence."""

from tests.conformance.conftest import NOTES, AnyStore
from tests.conformance.store.acts import a_run, accept, claim, claimed, new_id, ok
from workflows.storage import Delete, Insert, Select, Update
from workflows.storage.base import (
    RunState,
    StepBatch,
)


async def test_records_come_back_in_order(store: AnyStore) -> None:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a", b"1"), ok("b", b"2"))))
    await store.step(run.run_id, run.fence, StepBatch((ok("c", None),)))
    loaded = await store.load(run.run_id)
    assert [(each.path, each.seq, each.output) for each in loaded] == [
        ("a", 1, b"1"),
        ("b", 2, b"2"),
        ("c", 3, None),
    ]


async def test_progress_resets_attempts(store: AnyStore) -> None:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),)))
    row = await store.run(run.run_id)
    assert row is not None
    assert (row.attempts, row.step_seq) == (0, 1)


async def test_a_stale_fence_writes_nothing(store: AnyStore) -> None:
    run = await claimed(store)
    await store.release("A", held=[])
    await claim(store, "B")
    outcome = await store.step(
        run.run_id, run.fence, StepBatch((ok("a"),), writes=(Insert(NOTES, {"tenant": "T1", "id": "n"}),))
    )
    assert (outcome.recorded, outcome.owned) == (False, False)
    assert await store.load(run.run_id) == []
    assert await store.read(Select(NOTES, {"tenant": "T1"})) == []


async def test_the_identical_batch_again_is_the_same_write(store: AnyStore) -> None:
    run = await claimed(store)
    batch = StepBatch((ok("a"), ok("b")), writes=(Insert(NOTES, {"tenant": "T1", "id": "n"}),))
    assert (await store.step(run.run_id, run.fence, batch)).recorded
    again = await store.step(run.run_id, run.fence, batch)
    assert (again.recorded, again.owned) == (True, True)
    assert len(await store.load(run.run_id)) == 2


async def test_an_earlier_owners_record_does_not_let_a_later_fence_pass_for_it(store: AnyStore) -> None:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),)))
    await store.release("A", held=[])
    later = (await claim(store, "B"))[0]
    outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),)))
    assert (outcome.recorded, outcome.owned) == (True, False)
    assert (await store.step(later.run_id, later.fence, StepBatch((ok("a"),)))).recorded is False


async def test_the_last_step_ends_the_run_in_the_same_commit(store: AnyStore) -> None:
    run = await claimed(store)
    outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True, output=b"9"))
    row = await store.run(run.run_id)
    assert row is not None
    assert (outcome.recorded, outcome.owned, row.state, row.output, row.owner) == (
        True,
        False,
        RunState.DONE,
        b"9",
        None,
    )
    assert row.finished_at is not None


async def test_a_lost_reply_of_the_end_is_safe(store: AnyStore) -> None:
    run = await claimed(store)
    batch = StepBatch((ok("a"),), done=True, output=b"9")
    await store.step(run.run_id, run.fence, batch)
    assert (await store.step(run.run_id, run.fence, batch)).recorded


async def test_the_end_does_not_pass_a_signal_it_has_not_seen(store: AnyStore) -> None:
    await accept(store)
    run = (await claim(store))[0]
    await accept(store, "m2")
    outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True, inbox_seen=1))
    assert (outcome.recorded, outcome.owned, outcome.inbox_seq) == (False, True, 2)
    assert await store.load(run.run_id) == []


async def test_the_end_does_not_pass_a_cancel(store: AnyStore) -> None:
    run = await claimed(store)
    await store.signal(run.run_id, tenant="T1", name="$cancel", dedup_key="c", payload=None)
    outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True, inbox_seen=1))
    assert (outcome.recorded, outcome.owned, outcome.cancel_requested) == (False, True, True)


async def test_signals_used_are_consumed_with_the_step_that_used_them(store: AnyStore) -> None:
    await accept(store)
    await accept(store, "m2")
    run = (await claim(store))[0]
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,)))
    assert [each.dedup_key for each in await store.inbox(run.run_id)] == ["m2"]


async def test_rows_of_upper_floors_ride_in_the_same_commit(store: AnyStore) -> None:
    run = await claimed(store)
    await store.write(Insert(NOTES, {"tenant": "T1", "id": "old"}), Insert(NOTES, {"tenant": "T1", "id": "gone"}))
    writes = (
        Insert(NOTES, {"tenant": "T1", "id": "new", "n": 3, "body": {"a": [1, None]}, "raw": b"\x00", "ratio": 0.5}),
        Update(NOTES, {"tenant": "T1", "id": "old"}, {"n": 7, "done": True}),
        Delete(NOTES, {"tenant": "T1", "id": "gone"}),
    )
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), writes=writes))
    rows = await store.read(Select(NOTES, {"tenant": "T1"}, order=("id",)))
    assert [(row["id"], row["n"], row["done"], row["body"], row["raw"], row["ratio"]) for row in rows] == [
        ("new", 3, False, {"a": [1, None]}, b"\x00", 0.5),
        ("old", 7, True, None, None, None),
    ]


async def test_children_are_part_of_the_step(store: AnyStore) -> None:
    run = await claimed(store)
    child = a_run(parent_id=run.run_id, parent_path="a", input=b"5")
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), children=(child,)))
    row = await store.run(child.run_id)
    assert row is not None
    assert (row.parent_id, row.input, row.tenant) == (run.run_id, b"5", "T1")


async def test_a_childs_end_wakes_its_parents_key(store: AnyStore) -> None:
    parent = await claimed(store, key="thread")
    child = a_run(parent_id=parent.run_id, parent_path="a")
    await store.step(parent.run_id, parent.fence, StepBatch((ok("a"),), children=(child,)))
    assert await store.suspend(parent.run_id, parent.fence, inbox_seen=0, until=None)
    (running,) = await claim(store, "B")
    assert running.run_id == child.run_id
    await store.step(child.run_id, running.fence, StepBatch((ok("x"),), done=True, successor_id=new_id()))
    assert [each.name for each in await store.inbox(parent.run_id)] == ["task"]
    row = await store.run(parent.run_id)
    assert row is not None
    assert row.state is RunState.READY
