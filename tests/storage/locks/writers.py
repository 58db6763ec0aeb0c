"""Everyone who writes to `runs`, and the worlds they meet in.

In each world there is the run R of the key "thread". Worker A has claimed it once, under fence 1, recorded "a" and seen the one message
in its inbox. A's lease is over, so whoever reaps takes from it. A goes on under fence 1 in every world: where the run is no longer its
own, it is the owner that comes too late. R's child C is A's too. Worker B claims.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from workflows.storage import Insert, PostgresStore, Retention
from workflows.storage.base import Firing, Fork, NewRun, Record, RunState, Schedule, Status, StepBatch
from workflows.storage.tables import APPROVALS

Store = PostgresStore
Write = Callable[[Store], Coroutine[Any, Any, Any]]
DUE = datetime(2026, 1, 5, 9, tzinfo=UTC)
FAILURE = {"type": "Broken", "message": "it broke", "causes": []}
EVERYTHING_IS_OVER = Retention(runs_days=1e-9, received_days=99, dead_letters_days=98)


def new(run_id: str, *, key: str | None = "thread", **changes: Any) -> NewRun:
    return NewRun(**{"run_id": run_id, "tenant": "T1", "workflow": "w", "key": key, "trace_id": run_id, **changes})


def ok(path: str) -> Record:
    return Record(path, Status.OK, b"1")


def weekly() -> Schedule:
    return Schedule("T1", "s", "w", "1", "0 9 * * 1", "UTC", DUE, due_at=DUE)


# Worlds


async def running(store: Store) -> None:
    """A works on R and on C."""
    await store.register("A", host="a", deployment="", lease=timedelta(seconds=-1))
    await store.register("B", host="b", deployment="", lease=timedelta(days=1))
    await store.signal_with_start(new("R"), name="message", dedup_key="m0", payload=b"0")
    await store.claim("A", queues=["default"], workflows=[("w", "1")], limit=1)
    child = new("C", key=None, queue="tasks", parent_id="R", parent_path="a")
    await store.step("R", 1, StepBatch((ok("a"),), children=(child,)))
    await store.claim("A", queues=["tasks"], workflows=[("w", "1")], limit=1)
    pending = {"tenant": "T1", "id": "ap", "workflow": "w", "key": "thread", "body": {}}
    await store.write(Insert(APPROVALS, {**pending, "expires_at": await store.now() + timedelta(days=1)}))
    await store.put_schedule(weekly())


async def ready(store: Store) -> None:
    """A has lost R, and nobody has it yet."""
    await running(store)
    assert await store.release("A", held=["C"]) == ["R"]


async def suspended(store: Store) -> None:
    """R sleeps until a signal comes."""
    await running(store)
    assert await store.suspend("R", 1, inbox_seen=1, until=None)


async def dead(store: Store) -> None:
    """R is dead, and so is the message that two runs did not read. It has no child."""
    await store.register("A", host="a", deployment="", lease=timedelta(seconds=-1))
    await store.register("B", host="b", deployment="", lease=timedelta(days=1))
    await store.signal_with_start(new("R0"), name="message", dedup_key="m0", payload=b"0")
    await store.claim("A", queues=["default"], workflows=[("w", "1")], limit=1)
    await store.end("R0", 1, RunState.FAILED, inbox_seen=1, successor_id="R")
    await store.claim("A", queues=["default"], workflows=[("w", "1")], limit=1)
    assert (await store.sweep(EVERYTHING_IS_OVER)).runs == 1  # R0
    await store.step("R", 1, StepBatch((ok("a"),)))
    await store.end("R", 1, RunState.DEAD, inbox_seen=1, successor_id="none", error=FAILURE)
    await store.put_schedule(weekly())


WORLDS = {world.__name__: world for world in (running, ready, suspended, dead)}


# Writers


async def claims(store: Store) -> Any:
    return await store.claim("B", queues=["default"], workflows=[("w", "1")], limit=1)


async def records(store: Store) -> Any:
    return await store.step("R", 1, StepBatch((ok("b"),), consumed=(1,)))


async def finishes(store: Store) -> Any:
    return await store.step(
        "R", 1, StepBatch((ok("z"),), consumed=(1,), done=True, output=b"9", inbox_seen=1, successor_id="S1")
    )


async def fails(store: Store) -> Any:
    return await store.end("R", 1, RunState.FAILED, inbox_seen=1, successor_id="S2", error=FAILURE)


async def suspends(store: Store) -> Any:
    return await store.suspend("R", 1, inbox_seen=1, until=None)


async def signals(store: Store) -> Any:
    return await store.signal("R", tenant="T1", name="note", dedup_key="n1", payload=b"1")


async def cancels(store: Store) -> Any:
    return await store.signal("R", tenant="T1", name="$cancel", dedup_key="$cancel", payload=None)


async def writes(store: Store) -> Any:
    """A message, by signal-with-start."""
    return await store.signal_with_start(new("N1"), name="message", dedup_key="m1", payload=b"1")


async def writes_again(store: Store) -> Any:
    """Another message."""
    return await store.signal_with_start(new("N2"), name="message", dedup_key="m2", payload=b"2")


async def decides(store: Store) -> Any:
    return await store.decide("ap", new("N3", key=None), decision="approved", by="U", reason=None)


async def starts(store: Store) -> Any:
    return await store.start(new("N4"))


async def ends_its_child(store: Store) -> Any:
    return await store.step("C", 1, StepBatch((ok("c"),), done=True, successor_id="N5"))


async def ticks(store: Store) -> Any:
    firing = Firing("T1", "s", "N6", DUE)
    moved = replace(weekly(), next_at=DUE + timedelta(days=7), due_at=DUE + timedelta(days=7), fired=1)
    return await store.tick(weekly(), moved=moved, firing=firing, run=new("N6"))


async def fires_by_hand(store: Store) -> Any:
    return await store.fire_now(Firing("T1", "s", "N7", DUE, cause="manual"), new("N7"))


async def releases(store: Store) -> Any:
    return await store.release("A", held=["C"])


async def abandons(store: Store) -> Any:
    return await store.abandon("A", "R", delay=timedelta(hours=1))


async def reaps(store: Store) -> Any:
    return await store.reap()


async def forks(store: Store) -> Any:
    return await store.fork(Fork("F", "R", "T1", cut=2, input=b"2"))


async def redrives(store: Store) -> Any:
    return await store.redrive("R", tenant="T1")


async def gives_back_a_letter(store: Store) -> Any:
    letters = await store.dead_signals(tenant="T1")
    return await store.redrive_signal(letters[0].id, new("N8")) if letters else None


async def sweeps(store: Store) -> Any:
    return (await store.sweep(EVERYTHING_IS_OVER)).runs


async def forgets(store: Store) -> Any:
    while await store.forget("T1"):
        pass


@dataclass(frozen=True)
class Writer:
    """One of them. `in_`: the worlds in which it takes effect. `skips`: what it says where it leaves out rows that are locked or have
    just changed, to come back to them at its next round.
    """

    act: Write
    in_: tuple[str, ...]
    skips: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return self.act.__name__


ANYWHERE = ("running", "ready", "suspended", "dead")
WITH_A_CHILD = ("running", "ready", "suspended")
WRITERS = {
    each.name: each
    for each in (
        Writer(claims, ("ready",), skips=([],)),
        Writer(records, ("running",)),
        Writer(finishes, ("running",)),
        Writer(fails, ("running",), skips=({"ended": False, "successor": None, "carried": 0, "parent_queue": None},)),
        Writer(suspends, ("running",)),
        Writer(signals, WITH_A_CHILD),
        Writer(cancels, WITH_A_CHILD),
        Writer(writes, ANYWHERE),
        Writer(writes_again, ANYWHERE),
        Writer(decides, WITH_A_CHILD),
        Writer(starts, ("dead",)),
        Writer(ends_its_child, WITH_A_CHILD),
        Writer(ticks, ANYWHERE),
        Writer(fires_by_hand, ANYWHERE),
        Writer(releases, ("running",)),
        Writer(abandons, ("running",)),
        Writer(reaps, WITH_A_CHILD, skips=({"freed": (), "dead": ()},)),
        Writer(forks, ("dead",)),
        Writer(redrives, ("dead",)),
        Writer(gives_back_a_letter, ("dead",)),
        Writer(sweeps, ("dead",), skips=(0,)),
        Writer(forgets, ANYWHERE),
    )
}
