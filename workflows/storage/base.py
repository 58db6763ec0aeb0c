"""The storage seam: the engine's operations, never CRUD on its tables, and tenant-scoped rows for the floors above.

Every operation is one transaction (in PostgreSQL, reaping workers and reaping their runs are two) with the outcome that engine rules need;
where two processes race, the outcome says who won. Values cross it as JSON bytes, times as aware datetimes, ids as strings. Any operation
may raise `StoreUnavailableError`: it may or may not have been committed, and each is written so that calling it again is safe.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from workflows.storage.records import Record, Status
from workflows.storage.retention import Retention, Swept
from workflows.storage.runs import (
    SUSPECT_AFTER,
    Census,
    EndOutcome,
    Fork,
    NewRun,
    ReapOutcome,
    RedriveOutcome,
    RunRow,
    RunState,
    StartOutcome,
    StepBatch,
    StepOutcome,
    Suspects,
    own_id,
)
from workflows.storage.schedules import MAX_QUEUED, CatchUp, Firing, FiringStatus, Overlap, Schedule
from workflows.storage.schema import Select, Table, Write
from workflows.storage.signals import DeadSignal, DecideOutcome, LetterId, Signal, SignalOutcome
from workflows.storage.traces import SpanKey, SpanRow, TracePart

__all__ = [
    "MAX_QUEUED",
    "SUSPECT_AFTER",
    "CatchUp",
    "Census",
    "DeadSignal",
    "DecideOutcome",
    "EndOutcome",
    "Firing",
    "FiringStatus",
    "Fork",
    "LetterId",
    "NewRun",
    "Overlap",
    "ReapOutcome",
    "Record",
    "RedriveOutcome",
    "RunRow",
    "RunState",
    "Schedule",
    "Signal",
    "SignalOutcome",
    "SpanKey",
    "SpanRow",
    "StartOutcome",
    "Status",
    "StepBatch",
    "StepOutcome",
    "Store",
    "StoreUnavailableError",
    "Suspects",
    "TracePart",
    "own_id",
]


class StoreUnavailableError(Exception):
    """Storage can't be reached now; try again later. What was asked may or may not have happened."""


class Store(Protocol):
    """Runs, steps, signals, schedules and rows, durably."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables it keeps, the engine's among them."""
        ...

    async def open(self) -> None:
        """Connect and bring the schema up to date. Raises SchemaError if the data is newer or of another kind."""
        ...

    async def close(self) -> None:
        """Free the connections."""
        ...

    async def ping(self) -> None:
        """Raise StoreUnavailableError unless a round trip works."""
        ...

    async def now(self) -> datetime:
        """The one clock durable times are read from."""
        ...

    async def set_clock_offset(self, offset: timedelta) -> None:
        """Move that clock, for every process on this data. For tests and the emulator."""
        ...

    # Workers
    async def register(self, worker_id: str, *, host: str, deployment: str, lease: timedelta) -> None:
        """Insert a worker's row, under an id fresh at each boot."""
        ...

    async def beat(self, worker_id: str, *, lease: timedelta) -> bool:
        """Renew the lease. False: the worker was reaped; it must stop every run it holds and register under a new id."""
        ...

    async def workers(self) -> list[str]:
        """The ids of the workers that are registered."""
        ...

    async def unregister(self, worker_id: str) -> None:
        """Forget a worker that leaves in good order."""
        ...

    async def claim(
        self,
        worker_id: str,
        *,
        queues: Sequence[str],
        workflows: Sequence[tuple[str, str]],
        limit: int,
        leave_out: Sequence[str] = (),
        suspects: Suspects = "no",
    ) -> list[RunRow]:
        """Take up to `limit` due runs of the (workflow, version) pairs given: fence + 1, attempts + 1. No tenant in `leave_out`.

        A suspect is a run whose last `SUSPECT_AFTER` tries made no progress, so that it may be what killed its worker. "no": it is left
        for others; "head": taken if it is first in line, and then alone; "only": nothing else is taken, and one of them.
        """
        ...

    async def waiting_suspect(
        self, *, queues: Sequence[str], workflows: Sequence[tuple[str, str]]
    ) -> tuple[str, timedelta] | None:
        """The suspect that has been due for longest, of those near the head of the line, and for how long; None if there is none."""
        ...

    async def load(self, run_id: str, *, whole: bool = True) -> list[Record]:
        """The records of a run in order of `seq`. Always a statement after the CLAIM, whose snapshot may be older than its lock.

        Not `whole`: without the rounds of loops that a later checkpoint `<loop>@<count>` stands for, which is all that going on needs.
        """
        ...

    async def release(self, worker_id: str, *, held: Sequence[str]) -> list[str]:
        """Give back every run the database says is this worker's and this process does not hold; counts as no attempt."""
        ...

    async def abandon(self, worker_id: str, run_id: str, *, delay: timedelta) -> None:
        """Give back a run that breaks its worker, not before `delay`: the attempt counts, and the last one leaves it to the reaper."""
        ...

    async def cancelled(self, worker_id: str) -> list[str]:
        """The runs this worker holds that were asked to stop."""
        ...

    async def reap(self) -> ReapOutcome:
        """Delete workers past their lease and free their runs, but for those out of attempts."""
        ...

    # Runs
    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        """Insert a run, ready. If a live run has its key already, nothing is inserted and that run's id is returned.

        Raises InputError if another tenant has a run of this id.
        """
        ...

    async def start_owned(self, run: NewRun, *, writes: Sequence[Write] = ()) -> StartOutcome:
        """`start`, and whether the run was inserted as its `owner`'s, under fence 1: nothing else tells a worker that it may begin."""
        ...

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        """Record `batch` under `fence`. Sending the identical batch again is safe."""
        ...

    async def end(
        self,
        run_id: str,
        fence: int,
        state: RunState,
        *,
        inbox_seen: int,
        successor_id: str,
        output: bytes | None = None,
        error: dict[str, Any] | None = None,
        writes: Sequence[Write] = (),
    ) -> EndOutcome:
        """End a run other than cleanly. Unread signals go, in order, to a successor of the same key; those carried before die."""
        ...

    async def suspend(self, run_id: str, fence: int, *, inbox_seen: int, until: datetime | None) -> bool:
        """Let go of a run until a signal or `until` (None: only a signal). False: the fence is stale, the inbox moved, or a cancel came
        before the run had failed.
        """
        ...

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None:
        """One run; with `tenant`, only if it is that tenant's."""
        ...

    async def runs(
        self,
        *,
        tenant: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        """Runs, newest first; `before` is the cursor of the last row of the page before. Empty values and None leave out no run.

        Raises InputError if `before` is no cursor.
        """
        ...

    # What an operator does
    async def fork(self, fork: Fork) -> bool:
        """Copy an ended run in one statement that locks the source. False: it is live, or not this tenant's. Sending it again is safe."""
        ...

    async def redrive(self, run_id: str, *, tenant: str) -> RedriveOutcome:
        """Make a dead run ready again, unless its key has a live run."""
        ...

    async def census(self) -> list[Census]:
        """The live and dead runs of all tenants, counted."""
        ...

    # Signals
    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        """Put a signal in the inbox of the live run with `run.key`, or start `run` with it. `dedup_key` is the outside event's, by tenant."""
        ...

    async def signal(
        self, run_id: str, *, tenant: str, name: str, dedup_key: str, payload: bytes | None
    ) -> SignalOutcome:
        """Put a signal in a known live run's inbox. The name "$cancel" also asks it to stop. `run_id` None in the outcome: not live."""
        ...

    async def signal_payload(self, run_id: str, dedup_key: str) -> bytes | None:
        """What a signal that was accepted said, used or not; None if there is none."""
        ...

    async def inbox(self, run_id: str) -> list[Signal]:
        """The signals of a run that no step has used, in order of `seq`."""
        ...

    # Dead letters
    async def dead_signals(self, *, tenant: str, limit: int = 100, before: str | None = None) -> list[DeadSignal]:
        """The dead letters of a tenant's inboxes, newest first; `before` is the last id of the page before. Raises InputError if it is none."""
        ...

    async def dead_signal(self, letter_id: str, *, tenant: str) -> DeadSignal | None:
        """One dead letter; None if the tenant has no such one (any more). Raises InputError if the id is none."""
        ...

    async def redrive_signal(self, letter_id: str, run: NewRun) -> SignalOutcome | None:
        """Give a letter of `run`'s tenant, workflow and key to their live run, or start `run` with it; only the first who asks does.

        None: there is no such letter (any more). One without a key can't be redriven: nobody would take it up. Raises InputError if the
        id is none.
        """
        ...

    async def drop_signal(self, letter_id: str, *, tenant: str) -> bool:
        """Remove a letter for good. False: it was not there. Raises InputError if the id is none."""
        ...

    # Approvals
    async def decide(
        self, approval_id: str, run: NewRun, *, decision: str, by: str, reason: str | None
    ) -> DecideOutcome:
        """Decide a pending approval of `run`'s tenant and wake its thread, in one. Not decided: it was not pending any more.

        `run` begins if the approval's key has no live run, as one of the approval's own workflow and key.
        """
        ...

    async def expired_approvals(self, limit: int = 100) -> list[tuple[str, str, str]]:
        """Pending approvals past their time, of all tenants, as (tenant, id, workflow)."""
        ...

    # Schedules
    async def put_schedule(self, schedule: Schedule, *, keep_paused: bool = False) -> Schedule:
        """Insert or replace a schedule by (tenant, name); returns it as it is now.

        If its times are what they were (spec, zone, jitter, end and limit), it goes on where it is: a firing that is due is not lost.
        """
        ...

    async def schedule(self, *, tenant: str, name: str) -> Schedule | None:
        """One schedule."""
        ...

    async def schedules(self, *, tenant: str | None = None, due: bool = False, limit: int = 100) -> list[Schedule]:
        """Schedules in order of `next_at`; with `due`, those that should have fired by now."""
        ...

    async def pause_schedule(self, *, tenant: str, name: str, reason: str) -> bool:
        """Fire it no more for the time being. False: there is none."""
        ...

    async def resume_schedule(self, *, tenant: str, name: str, due_at: datetime, next_at: datetime) -> bool:
        """Fire a paused schedule again, from `due_at` on. False: it was not paused."""
        ...

    async def delete_schedule(self, *, tenant: str, name: str) -> bool:
        """Remove a schedule; what waits for a run before it is skipped. False: there was none."""
        ...

    async def tick(
        self, schedule: Schedule, *, moved: Schedule, firing: Firing, run: NewRun | None
    ) -> FiringStatus | None:
        """Fire `schedule` once, start `run`, and move it on to `moved`. None: another clock was first, or it was changed meanwhile.

        If `run`'s key is that of a live run, or there is no `run`, nothing is started and the firing has the status it was given.
        """
        ...

    async def fire_now(self, firing: Firing, run: NewRun) -> FiringStatus | None:
        """Fire a schedule out of its turn, once per run id. None: there is no such schedule."""
        ...

    async def queued_firings(self, limit: int = 100) -> list[Firing]:
        """The oldest waiting firing of each schedule that is not paused and has no live run."""
        ...

    async def start_firing(self, firing: Firing, run: NewRun) -> bool:
        """Start the run of a firing that waits. False: somebody was first, or a run is live again."""
        ...

    async def firings(
        self, *, tenant: str, schedule: str, limit: int = 100, before: datetime | None = None
    ) -> list[Firing]:
        """The firings of a schedule, the newest first; `before` is the `due_at` at which the page before ended."""
        ...

    # Spans
    async def put_spans(self, parts: Sequence[TracePart], *, were_open: Sequence[SpanKey] = ()) -> None:
        """Store ended spans, packed. Those of them that may be stored as open are named in `were_open`, and no longer are, in the same
        commit. The same parts may be stored again.
        """
        ...

    async def put_open_spans(self, spans: Sequence[SpanRow]) -> None:
        """Store spans that are open. One that is there already stays as it is."""
        ...

    async def open_span_owners(self) -> list[str]:
        """The workers that have open spans in storage."""
        ...

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        """Close the open spans of these workers as "interrupted", now; returns them."""
        ...

    async def spans(
        self, *, tenant: str, trace_id: str | None = None, run_id: str | None = None, limit: int = 10_000
    ) -> list[SpanRow]:
        """The spans of a tenant, of one trace or of one run, by their start; the youngest `limit` if there are more. Each comes once:
        one that has ended is not also open, and one that was taken for lost and ended after all is told as it ended.
        """
        ...

    # What is over
    async def sweep(self, retention: Retention, *, limit: int = 200) -> Swept:
        """Remove up to `limit` of each kind of what is over for longer than it is kept. Safe on several processes at once."""
        ...

    async def forget_runs(self, tenant: str, *, under: str, limit: int = 200) -> int:
        """Remove up to `limit` ended runs whose keys begin with `under`, and ended runs that came of them, with records and signals.

        What something alive needs stays. Returns how many; ask until it is 0. Raises ValueError for an empty tenant or prefix.
        """
        ...

    async def forget(self, tenant: str, *, limit: int = 200) -> int:
        """Remove up to `limit` rows of a tenant, living runs and every registered table included. Returns how many; ask until it is 0."""
        ...

    # Rows of the floors above
    async def read(self, query: Select) -> list[dict[str, Any]]:
        """Rows as dicts of Python values, all columns."""
        ...

    async def totals(self, query: Select, *columns: str) -> tuple[int, ...]:
        """How many rows there are, and the sum of each of `columns`, which hold whole numbers. Raises ValueError for a query with order or limit."""
        ...

    async def write(self, *writes: Write) -> int:
        """Apply writes in one transaction, in order. Returns the rows changed."""
        ...
