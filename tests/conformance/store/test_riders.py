"""Writes of the floors above inside an operation: in order, in its commit, and only if it takes effect."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tests.conformance.conftest import NOTES, AnyStore
from tests.conformance.store.acts import a_run, claim, claimed, new_id, ok
from workflows.storage import Column, Delete, Index, Insert, Is, Select, Table, Update, Write
from workflows.storage.base import RunState, StepBatch
from workflows.storage.riders import split
from workflows.storage.tables import RUNS

Rows = list[tuple[str, int]]
ROW = {"tenant": "T1", "id": "a"}


def insert(row_id: str = "a", n: int = 0, **options: Any) -> Insert:
    return Insert(NOTES, {"tenant": "T1", "id": row_id, "n": n}, **options)


def update(n: int, row_id: str = "a") -> Update:
    return Update(NOTES, {"tenant": "T1", "id": row_id}, {"n": n})


RAISE = Update(NOTES, {"tenant": "T1", "n": Is("<", 5)}, {"n": 5})

SEQUENCES: dict[str, tuple[Sequence[Write], Rows]] = {
    "two updates of one row": ((insert(), update(1), update(2)), [("a", 2)]),
    "an update of a row inserted before": ((insert(), update(7)), [("a", 7)]),
    "an update before the row is there": ((update(7), insert()), [("a", 0)]),
    "a row inserted twice": ((insert(n=1), insert(n=2)), [("a", 1)]),
    "a row inserted, then replaced": ((insert(n=1), insert(n=2, on_conflict="replace")), [("a", 2)]),
    "a row inserted, then deleted": ((insert(), Delete(NOTES, ROW)), []),
    "a row deleted, then inserted": ((insert(n=1), Delete(NOTES, ROW), insert(n=2)), [("a", 2)]),
    "a range, then a row of it": ((insert(), insert("b"), RAISE, update(9)), [("a", 9), ("b", 5)]),
    "a row, then a range it is in": ((insert(), insert("b"), update(1), RAISE), [("a", 5), ("b", 5)]),
    "a row that moves to another key": (
        (insert(n=1), Update(NOTES, ROW, {"id": "b"}), update(3, "b"), insert(n=4)),
        [("a", 4), ("b", 3)],
    ),
}


async def rows(store: AnyStore) -> Rows:
    return [(row["id"], row["n"]) for row in await store.read(Select(NOTES, {"tenant": "T1"}, order=("id",)))]


async def _step(store: AnyStore, writes: Sequence[Write]) -> None:
    run = await claimed(store)
    assert (await store.step(run.run_id, run.fence, StepBatch((ok("a"),), writes=tuple(writes)))).recorded


async def _end(store: AnyStore, writes: Sequence[Write]) -> None:
    run = await claimed(store)
    outcome = await store.end(
        run.run_id, run.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id(), writes=writes
    )
    assert outcome.ended


async def _start(store: AnyStore, writes: Sequence[Write]) -> None:
    await store.start(a_run(), writes=writes)


async def _signal(store: AnyStore, writes: Sequence[Write]) -> None:
    run = a_run(key="k")
    outcome = await store.signal_with_start(run, name="m", dedup_key="d", payload=None, writes=writes)
    assert outcome.started


async def _write(store: AnyStore, writes: Sequence[Write]) -> None:
    await store.write(*writes)


CARRIERS: dict[str, Callable[[AnyStore, Sequence[Write]], Awaitable[None]]] = {
    "step": _step,
    "end": _end,
    "start": _start,
    "signal_with_start": _signal,
    "write": _write,
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("sequence", SEQUENCES)
async def test_writes_to_one_row_happen_in_order(store: AnyStore, carrier: str, sequence: str) -> None:
    writes, expected = SEQUENCES[sequence]
    await CARRIERS[carrier](store, writes)
    assert await rows(store) == expected


async def test_an_operation_that_is_refused_writes_none_of_them(store: AnyStore) -> None:
    run = await claimed(store)
    await store.release("A", held=[])
    await claim(store, "B")
    writes = (insert(), update(1), update(2))
    assert not (await store.step(run.run_id, run.fence, StepBatch((ok("a"),), writes=writes))).recorded
    stale = await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id(), writes=writes)
    assert not stale.ended
    assert await rows(store) == []


async def test_one_that_fails_takes_the_whole_operation_with_it(store: AnyStore) -> None:
    run = await claimed(store)
    writes = (insert(), update(1), insert(on_conflict="fail"))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),), writes=writes))
    assert await store.load(run.run_id) == []
    assert await rows(store) == []


async def test_the_identical_batch_again_writes_nothing_again(store: AnyStore) -> None:
    run = await claimed(store)
    batch = StepBatch((ok("a"),), writes=(insert(), update(1), update(2)))
    for _ in range(2):
        assert (await store.step(run.run_id, run.fence, batch)).recorded
        assert await rows(store) == [("a", 2)]
        await store.write(update(2))


async def test_a_run_may_ride_in_the_end_of_another(store: AnyStore) -> None:
    run = await claimed(store)
    values = {"run_id": "next", "tenant": "T1", "workflow": "w", "input": b"1"}
    await store.end(
        run.run_id, run.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id(), writes=(Insert(RUNS, values),)
    )
    assert [each.run_id for each in await claim(store)] == ["next"]


UNIQUE = Table(
    "names",
    (Column("tenant", "text"), Column("id", "text"), Column("name", "text")),
    ("tenant", "id"),
    (Index("n", ("name",), unique=True),),
)
NAMED = [Insert(UNIQUE, {"tenant": "T1", "id": each, "name": each}) for each in "ab"]


@pytest.mark.parametrize(
    ("writes", "ride"),
    [
        ((insert("a"), insert("b"), update(1, "c"), Delete(NOTES, {"tenant": "T1", "id": "d"})), 4),
        ((insert("a"), update(1, "a"), insert("b")), 1),
        ((insert("a"), RAISE), 1),
        ((RAISE, insert("a")), 1),
        ((RAISE,), 1),
        ((NAMED[0],), 1),
        (NAMED, 1),
        ((Insert(RUNS, {"run_id": "r", "tenant": "T1", "workflow": "w"}),), 1),
        ((Update(RUNS, {"tenant": "T1", "run_id": "r"}, {"queue": "q"}),), 0),
        ((), 0),
    ],
)
def test_only_what_may_touch_a_row_twice_costs_a_transaction(writes: Sequence[Write], ride: int) -> None:
    riding, following = split(writes)
    assert (len(riding), len(following)) == (ride, len(writes) - ride)
