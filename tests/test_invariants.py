"""Each invariant is seen to be broken when it is: rows are made by the engine, then one is changed by hand."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.invariants import INVARIANTS, Invariants, InvariantViolation, executed_at_most_once
from tests.waiting import until
from workflows import Effect, Engine, RunState, StepContext, step, workflow
from workflows.pubsub import MemoryPubSub
from workflows.storage import MemoryStore


async def _undo(n: int) -> None:
    return None


@step(effect=Effect.READ, compensate=_undo)
async def first(value: Any, ctx: StepContext) -> int:
    return len([signal for signal in await ctx.signals.drain() if signal.name == "message"])


@step(effect=Effect.READ)
async def wrong(n: int) -> int:
    raise ValueError(f"no {n}")


@step(effect=Effect.READ)
async def begin(n: int, ctx: StepContext) -> str | None:
    return ctx.dispatch(CHILD, n) if n else None


CHILD = workflow("child").map(lambda n: n).commit()
FAILING = workflow("failing").then(first).then(wrong).commit()
GOING = workflow("going").then(first).then(begin).commit()
WAITING = workflow("waiting").wait_for("go", int).commit()
FLOWS = (CHILD, FAILING, GOING, WAITING)


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    """Runs gone wrong, gone well with a child, told of its end, and waiting; at rest."""
    store = MemoryStore()
    async with Engine(store=store, pubsub=MemoryPubSub(), workflows=FLOWS, poll_s=0.01, spans=_Nowhere()) as engine:
        for flow in (FAILING, GOING, WAITING):
            await engine.signal_with_start(flow, tenant="T1", key=flow.id, name="message", dedup_key=flow.id)

        async def at_rest() -> bool:
            runs = await store.runs()
            return len(runs) == 5 and all(run.state not in (RunState.READY, RunState.RUNNING) for run in runs)

        await until(at_rest, "all runs to end or wait")
        assert engine.worker is not None
        await engine.worker.stop()
        yield store


class _Nowhere:
    def put(self, span: Any) -> None:
        return None


async def test_what_the_engine_made_is_sound(store: MemoryStore) -> None:
    invariants = Invariants(store, workflows=FLOWS)
    await invariants.check(accepted=[("T1", flow.id) for flow in (FAILING, GOING, WAITING)])
    with pytest.raises(InvariantViolation, match="has not ended: suspended"):
        await invariants.check(settled=True)
    with pytest.raises(InvariantViolation, match="was accepted and is there 0 times"):
        await invariants.check(accepted=[("T1", "never seen")])


BROKEN = (
    ("a gap in the records", "update steps set seq = 7 where path = 'wrong'", "counts"),
    ("a record too many", "update runs set step_seq = step_seq + 1 where workflow = 'going'", "counts"),
    ("records of nobody", "delete from runs where workflow = 'failing'", "which is no run"),
    ("a record of a fence to come", "update steps set fence = 99 where path = 'begin'", "written under"),
    ("an old owner's late record", "update steps set fence = 0 where path = 'begin'", "written under"),
    ("a fallen fence", "update runs set fence = 0 where workflow = 'waiting'", "fell from fence"),
    ("an end that changed", "update runs set output = 'other' where workflow = 'child'", "had ended as"),
    ("an end undone", "update runs set state = 'ready', finished_at = null where workflow = 'child'", "had ended as"),
    ("a running run of nobody", "update runs set state = 'running' where workflow = 'waiting'", "with owner None"),
    ("an owner of a run at rest", "update runs set owner = 'w' where workflow = 'waiting'", "suspended with owner w"),
    ("a sleep over a cancel", "update runs set cancel_requested = 1 where workflow = 'waiting'", "asked it to stop"),
    ("an end without a time", "update runs set finished_at = null where workflow = 'going'", "finished at None"),
    ("too many tries", "update runs set attempts = 6 where workflow = 'waiting'", "tried 6 of 5"),
    ("a signal beyond the inbox", "update signals set seq = 9 where dedup_key = 'waiting'", "counts 1 signals and has"),
    (
        "a signal left in an ended run",
        "update signals set consumed_by = null where dedup_key = 'going'",
        "waits in a run that is done",
    ),
    (
        "a signal used by nothing",
        "update signals set consumed_by = 'nothing' where dedup_key = 'going'",
        "which is no record",
    ),
    (
        "a dead signal without a letter",
        "update signals set consumed_by = '$dead' where dedup_key = 'going'",
        "no dead letter",
    ),
    ("a failed run that is done", "update runs set state = 'done' where workflow = 'failing'", "is done and failed at"),
    (
        "a step after the failure",
        "update steps set seq = 4, fence = 2, path = 'late' where path = 'first!undo'",
        "went on to",
    ),
    ("a compensation left out", "delete from steps where path = 'first!undo'", "did not undo"),
    (
        "a compensation for nothing",
        "update steps set path = 'begin!undo' where path = 'begin'",
        "did not fail and undid",
    ),
    ("a child nobody hears of", "delete from signals where name = 'task'", "was told 0 times"),
    ("a child of nobody", "update runs set parent_id = 'gone' where workflow = 'child'", "never recorded"),
)


@pytest.mark.parametrize(("change", "words"), [each[1:] for each in BROKEN], ids=[each[0] for each in BROKEN])
async def test_what_breaks_an_invariant_is_named(store: MemoryStore, change: str, words: str) -> None:
    invariants = Invariants(store, workflows=FLOWS)
    await invariants.check()
    store._db.execute(change)
    with pytest.raises(InvariantViolation, match=words):
        await invariants.check()


async def test_two_live_runs_of_one_key_are_named(store: MemoryStore) -> None:
    store._db.execute("drop index runs_live_key")
    store._db.execute(
        "update runs set state = 'ready', finished_at = null, workflow = 'waiting', key = 'waiting' where workflow = 'failing'"
    )
    with pytest.raises(InvariantViolation, match="2 live runs have the key"):
        await Invariants(store).check()


def test_every_invariant_can_fail() -> None:
    """As many as the cases above were made for."""
    assert len(INVARIANTS) == 11


def test_an_effect_done_twice_is_named() -> None:
    executed_at_most_once(["a", "b"])
    with pytest.raises(InvariantViolation, match="a was done 2 times"):
        executed_at_most_once(["a", "b", "a"])
