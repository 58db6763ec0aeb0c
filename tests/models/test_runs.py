"""Any order of the storage operations on runs, tokens of long ago included, has the outcomes of the model, on every backend.

Workers come, fall silent and come back with fences they lost; batches are sent again after their reply was lost; several tenants and keys.
After each operation all runs and inboxes are compared and the invariants checked.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.invariants import Invariants
from tests.models.runs import ModelRun, ModelStore
from tests.tally import Tally
from tests.weakened import FINER, WEAKNESSES, Weakness
from workflows.storage import MemoryStore, PostgresStore, SqliteStore, Store
from workflows.storage.base import NewRun, Record, RunRow, RunState, Status, StepBatch

T = TypeVar("T")
FULL = os.environ.get("THREADLINE_CHAOS") == "full"
EXAMPLES = {"memory": 100, "sqlite": 15, "postgres": 10}
STEPS = 60
ENOUGH = 300
"""Histories within which a weakened store differs from the model; most do within thirty."""
TENANTS, KEYS = st.sampled_from(["T1", "T2"]), st.sampled_from(["k1", "k2"])
WORKERS = ("w0", "w1", "w2")
HOLDERS = st.sampled_from(WORKERS)
PICKS = st.integers(0, 47)
USES = st.sampled_from(["nothing", "first", "all"])
LATE = st.sampled_from([False, False, True])
ENDS = st.sampled_from([RunState.DONE, RunState.FAILED, RunState.CANCELLED, RunState.DEAD])
LEASE = timedelta(hours=10)


@dataclass(frozen=True, slots=True)
class Token:
    """What a worker knows of a run it claimed, once."""

    run_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch as it was sent, to be sent again."""

    token: Token
    batch: StepBatch
    child: str | None


class Backend:
    """A store that can be emptied, and a loop to ask it on."""

    def __init__(self, name: str, make: Callable[[], Any], loop: asyncio.Runner) -> None:
        self.name = name
        self._make = make
        self._loop = loop
        self._store: Any = None

    def run(self, operation: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
        async def awaited() -> T:
            return await operation

        return self._loop.run(awaited())

    def fresh(self) -> Store:
        """A store without a row."""
        if self._store is None or not isinstance(self._store, PostgresStore):
            self.close()
            self._store = self._make()
            self.run(self._store.open())
        else:
            self.run(_empty(self._store))
        store: Store = self._store
        return store

    def close(self) -> None:
        if self._store is not None:
            self.run(self._store.close())
            self._store = None


async def _empty(store: PostgresStore) -> None:
    tables = await store._fetch(
        "select tablename from pg_tables where schemaname = 'public' and tablename not like 'threadline%'"
    )
    await store._fetch(f"truncate {', '.join(row[0] for row in tables)}")
    await store.set_clock_offset(timedelta(0))


class Operations(RuleBasedStateMachine):
    """Sends operations to a store and to its model. What an operation is about is picked by number: now among what is current, now among
    all there ever was.
    """

    backend: Backend
    performed: list[int]

    def __init__(self) -> None:
        super().__init__()
        self.store: Any = self.backend.fresh()
        self.model = ModelStore()
        self.checked = Invariants(self.store)
        self.tokens: list[Token] = []
        self.sent: list[Sent] = []
        self._numbers = iter(range(10**9))

    def _do(self, operation: Awaitable[T]) -> T:
        self.performed[0] += 1
        return self.backend.run(operation)

    def _new(self, kind: str) -> str:
        return f"{kind}{next(self._numbers):04}"

    def _token(self, pick: int) -> Token:
        """Of an owner, of one that was overtaken, or any."""
        held = [run for run in self.model.runs.values() if run.state is RunState.RUNNING and not run.doomed]
        running = {run.run_id: run.fence for run in held}
        current = [Token(run_id, fence) for run_id, fence in running.items()]
        stale = [token for token in self.tokens if running.get(token.run_id, token.fence) != token.fence]
        pool = (
            (stale, self.tokens, current, current)[pick % 4] or self.tokens or [Token(next(iter(self.model.runs)), 0)]
        )
        return pool[pick // 4 % len(pool)]

    def _run(self, pick: int) -> ModelRun:
        """One that sleeps, one that runs, or any."""
        runs = list(self.model.runs.values())
        asleep = [run for run in runs if run.state is RunState.SUSPENDED]
        running = [run for run in runs if run.state is RunState.RUNNING]
        pool = (asleep, running, running, runs)[pick % 4] or runs
        return pool[pick // 4 % len(pool)]

    # Time and workers

    @initialize()
    def begin(self) -> None:
        """All workers are there, and some runs."""
        for worker in WORKERS:
            self.worker(worker, "registers")
        for key in ("k1", "k2", None):
            self.start("T1", key, None)

    @rule(hours=st.sampled_from([1, 6, 11]))
    def time_passes(self, hours: int) -> None:
        self.model.hour += hours
        self._do(self.store.set_clock_offset(timedelta(hours=self.model.hour)))

    @rule(worker=HOLDERS, what=st.sampled_from(["registers", "beats", "leaves"]))
    def worker(self, worker: str, what: str) -> None:
        if what == "registers":
            self._do(self.store.register(worker, host="h", deployment="", lease=LEASE))
            self.model.register(worker)
        elif what == "beats":
            assert self._do(self.store.beat(worker, lease=LEASE)) == self.model.beat(worker)
        else:
            self._do(self.store.unregister(worker))
            self.model.unregister(worker)

    @rule(worker=HOLDERS, limit=st.sampled_from([1, 2, 10]), suspects=st.sampled_from(["no", "head", "only"]))
    def claim(self, worker: str, limit: int, suspects: Any) -> None:
        due = [(row.available_at, row.run_id) for row in self._do(self.store.runs(limit=10_000)) if row.available_at]
        line = {"queues": ["default"], "workflows": [("w", "1")]}
        rows = self._do(self.store.claim(worker, **line, limit=limit, suspects=suspects))
        taken = self.model.claim(worker, limit, suspects, [run_id for _, run_id in sorted(due)])
        assert sorted((row.run_id, row.fence) for row in rows) == sorted((run.run_id, run.fence) for run in taken)
        self.tokens += [Token(row.run_id, row.fence) for row in rows]

    @rule(pick=PICKS, worker=HOLDERS)
    def overtake(self, pick: int, worker: str) -> None:
        """The owner of a run falls silent, and another worker goes on: the owner's token is stale from now on."""
        owner = self.model.runs[self._token(pick).run_id].owner
        if owner not in (None, worker):
            self.worker(str(owner), "leaves")
            self.reap()
            self.claim(worker, 10, "head")

    @rule(pick=PICKS, worker=st.none() | HOLDERS, hours=st.none() | st.sampled_from([0, 3]))
    def give_back(self, pick: int, worker: str | None, hours: int | None) -> None:
        """One run that breaks its worker, or all but one that the worker does not hold."""
        run = self.model.runs[self._token(pick).run_id]
        by = worker or run.owner or WORKERS[0]
        if hours is None:
            released = self._do(self.store.release(by, held=[run.run_id]))
            assert sorted(released) == sorted(self.model.release(by, [run.run_id]))
        else:
            self._do(self.store.abandon(by, run.run_id, delay=timedelta(hours=hours)))
            self.model.abandon(by, run.run_id, hours)

    @rule()
    def reap(self) -> None:
        reaped = self._do(self.store.reap())
        expected = self.model.reap()
        assert (sorted(reaped.freed), sorted(row.run_id for row in reaped.dead)) == (
            sorted(expected[0]),
            sorted(expected[1]),
        )
        for row in reaped.dead:
            self._bury(Token(row.run_id, row.fence))

    def _bury(self, token: Token) -> None:
        """What the reaper does with a run out of attempts; now and then it dies before that, and the next one does."""
        if next(self._numbers) % 3:
            self._end(token, RunState.DEAD, self.model.runs[token.run_id].inbox_seq)

    # Runs

    @rule(tenant=TENANTS, key=st.none() | KEYS, owner=st.none() | HOLDERS, attempts=st.sampled_from([1, 2, 4]))
    def start(self, tenant: str, key: str | None, owner: str | None, attempts: int = 2) -> None:
        run_id = self._new("r")
        self._start(run_id, tenant, key, owner, attempts)
        again = next(iter(self.model.runs.values()))  # its reply was lost, and it may have ended since
        self._start(again.run_id, again.tenant, again.key, None, again.max_attempts)

    def _start(self, run_id: str, tenant: str, key: str | None, owner: str | None, attempts: int) -> None:
        new = NewRun(run_id, tenant, "w", key=key, max_attempts=attempts, owner=owner)
        assert self._do(self.store.start(new)) == self.model.start(run_id, tenant, key, owner=owner, attempts=attempts)

    @rule(pick=PICKS, fresh=st.integers(0, 2), old=st.sampled_from(["", "a", "b"]), uses=USES, child=st.booleans())
    def step(self, pick: int, fresh: int, old: str, uses: str, child: bool) -> None:
        token = self._token(pick)
        paths = [*(self._new("p") for _ in range(fresh)), *([old] if old else [])]
        batch = StepBatch(_records(paths), consumed=self._used(token, uses))
        self._send(Sent(token, batch, self._new("c") if child and paths else None))

    @rule(pick=PICKS, late=LATE, uses=USES)
    def finish(self, pick: int, late: bool, uses: str) -> None:
        """The clean end, which a caller asks for only if, to its knowledge, nothing is unread."""
        token = self._token(pick)
        run, consumed = self.model.runs[token.run_id], self._used(token, uses)
        seen = max(run.inbox_seq - late, 0)
        if seen == run.inbox_seq and any(signal.seq not in consumed and not signal.own for signal in run.unread):
            return
        batch = StepBatch(
            _records([self._new("p")]), consumed, done=True, output=b"1", inbox_seen=seen, successor_id=self._new("s")
        )
        self._send(Sent(token, batch, None))

    @rule(pick=PICKS, by=PICKS)
    def send_again(self, pick: int, by: int) -> None:
        """The reply was lost, or the sender was away for long; or another owner of the run sends the same."""
        if self.sent:
            sent = self.sent[-1 - pick % len(self.sent)]
            others = [token for token in self.tokens if token.run_id == sent.token.run_id and token != sent.token]
            owners = (by % 2 and others) or [sent.token]
            self._send(Sent(owners[by // 2 % len(owners)], sent.batch, sent.child))

    def _used(self, token: Token, uses: str) -> tuple[int, ...]:
        unread = [signal.seq for signal in self.model.runs[token.run_id].unread]
        return tuple({"nothing": [], "first": unread[:1], "all": unread}[uses])

    def _send(self, sent: Sent) -> None:
        token, batch = sent.token, sent.batch
        self.sent.append(sent)
        if sent.child is not None:
            tenant, path = self.model.runs[token.run_id].tenant, batch.records[0].path
            child = NewRun(sent.child, tenant, "w", max_attempts=3, parent_id=token.run_id, parent_path=path)
            batch = StepBatch(batch.records, batch.consumed, children=(child,))
        outcome = self._do(self.store.step(token.run_id, token.fence, batch))
        expected = self.model.step(
            token.run_id, token.fence, [record.path for record in batch.records], consumed=batch.consumed, done=batch.done,
            seen=batch.inbox_seen, child=sent.child, successor=batch.successor_id,
        )  # fmt: skip
        assert outcome == expected

    @rule(pick=PICKS, late=LATE, hours=st.none() | st.sampled_from([0, 4]))
    def suspend(self, pick: int, late: bool, hours: int | None) -> None:
        token = self._token(pick)
        seen = max(self.model.runs[token.run_id].inbox_seq - late, 0)
        until = None if hours is None else self._do(self.store.now()) + timedelta(hours=hours)
        outcome = self._do(self.store.suspend(token.run_id, token.fence, inbox_seen=seen, until=until))
        assert outcome == self.model.suspend(token.run_id, token.fence, seen=seen, hours=hours)

    @rule(pick=PICKS, state=ENDS, late=LATE)
    def end(self, pick: int, state: RunState, late: bool) -> None:
        token = self._token(pick)
        self._end(token, state, max(self.model.runs[token.run_id].inbox_seq - late, 0))

    def _end(self, token: Token, state: RunState, seen: int) -> None:
        successor = self._new("s")
        for _ in range(2):  # and once more, since the reply was lost
            outcome = self._do(
                self.store.end(token.run_id, token.fence, state, inbox_seen=seen, successor_id=successor)
            )
            assert outcome == self.model.end(token.run_id, token.fence, state, seen=seen, successor=successor)

    @precondition(lambda self: any(run.state is RunState.DEAD for run in self.model.runs.values()))
    @rule(stranger=st.booleans())
    def redrive(self, stranger: bool) -> None:
        dead = next(run for run in self.model.runs.values() if run.state is RunState.DEAD)
        tenant = "T9" if stranger else dead.tenant
        assert self._do(self.store.redrive(dead.run_id, tenant=tenant)) == self.model.redrive(dead.run_id, tenant)

    # Signals

    @rule(pick=PICKS, name=st.sampled_from(["m", "m", "$cancel"]), number=st.integers(0, 3))
    def signal(self, pick: int, name: str, number: int) -> None:
        run, key = self._run(pick), f"{name}-{number}"
        tenant = "T9" if pick % 5 == 0 else run.tenant
        outcome = self._do(self.store.signal(run.run_id, tenant=tenant, name=name, dedup_key=key, payload=b"1"))
        assert outcome == self.model.signal(run.run_id, tenant, name, key)

    @rule(tenant=TENANTS, key=KEYS, number=st.integers(0, 20))
    def signal_with_start(self, tenant: str, key: str, number: int) -> None:
        run_id, dedup_key = self._new("r"), f"outside-{number}"
        new = NewRun(run_id, tenant, "w", key=key, max_attempts=3)
        outcome = self._do(self.store.signal_with_start(new, name="m", dedup_key=dedup_key, payload=b"1"))
        assert outcome == self.model.signal_with_start(run_id, tenant, key, "m", dedup_key)

    # What holds after each

    @invariant()
    def all_runs_are_those_of_the_model(self) -> None:
        rows: list[RunRow] = self._do(self.store.runs(limit=10_000))
        assert {row.run_id: _row(row) for row in rows} == {
            run_id: _standing(run) for run_id, run in self.model.runs.items()
        }

    @invariant()
    def those_asked_to_stop_are_known_to_their_workers(self) -> None:
        held = [run for run in self.model.runs.values() if run.state is RunState.RUNNING and run.cancel]
        for worker in WORKERS if held else ():
            asked = [run.run_id for run in held if run.owner == worker]
            assert sorted(self._do(self.store.cancelled(worker))) == sorted(asked)

    @invariant()
    def all_inboxes_are_those_of_the_model(self) -> None:
        for run in self.model.runs.values():
            if run.signals:
                inbox = self._do(self.store.inbox(run.run_id))
                assert [(each.seq, each.name, each.dedup_key, each.carried) for each in inbox] == [
                    (each.seq, each.name, each.dedup_key, each.carried) for each in run.unread
                ]

    @invariant()
    def all_invariants_hold(self) -> None:
        self._do(self.checked.check())


def _records(paths: list[str]) -> tuple[Record, ...]:
    return tuple(Record(path, Status.OK, b"1") for path in paths)


def _row(row: RunRow) -> tuple[object, ...]:
    return (
        row.tenant,
        row.key,
        row.state,
        row.fence,
        row.owner,
        row.attempts,
        row.step_seq,
        row.inbox_seq,
        row.cancel_requested,
    )


def _standing(run: ModelRun) -> tuple[object, ...]:
    return (
        run.tenant,
        run.key,
        run.state,
        run.fence,
        run.owner,
        run.attempts,
        len(run.records),
        run.inbox_seq,
        run.cancel,
    )


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@pytest.fixture(params=tuple(EXAMPLES))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    files = iter(range(10**6))
    makers: dict[str, Callable[[], Any]] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / f"{next(files)}.db"),
        "postgres": lambda: PostgresStore(request.getfixturevalue("engine_database"), pool_size=1),
    }
    with asyncio.Runner() as loop:
        backend = Backend(request.param, makers[request.param], loop)
        yield backend
        backend.close()


@pytest.mark.timeout(3600 if FULL else 300)
def test_every_order_of_operations_has_the_outcomes_of_the_model(backend: Backend, tally: Tally) -> None:
    examples = EXAMPLES[backend.name] * (20 if FULL else 1)
    performed = _explore(backend, examples=examples, derandomize=not FULL)
    tally.count("storage model", backend.name, histories=examples, operations=performed)


@pytest.mark.parametrize(
    "weakness",
    [each for each in (*FINER, *(WEAKNESSES if FULL else ())) if FULL or not each.rare],
    ids=lambda weakness: weakness.name,
)
def test_a_weakened_store_differs_from_the_model(weakness: Weakness) -> None:
    stores = list[Any]()

    def make() -> Any:
        stores.append(weakness.make())
        return stores[-1]

    with asyncio.Runner() as loop:
        backend = Backend("memory", make, loop)
        with pytest.raises(AssertionError):
            _explore(backend, examples=ENOUGH, derandomize=True, phases=(Phase.generate,))
        backend.close()
    assert any(store.weakened for store in stores)


def _explore(
    backend: Backend, *, examples: int, derandomize: bool, phases: tuple[Phase, ...] = (Phase.generate, Phase.shrink)
) -> int:
    """Try so many histories. Returns how many operations were performed."""
    performed = [0]
    machine = type("Machine", (Operations,), {"backend": backend, "performed": performed})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            derandomize=derandomize,
            database=None,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return performed[0]
