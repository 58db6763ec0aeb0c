"""The storage seam: the engine's operations, never CRUD on its tables, and tenant-scoped rows for the floors above.

Every operation is one transaction (in PostgreSQL, reaping workers and reaping their runs are two) with the outcome that engine rules need; where two processes race, the outcome says who won.
Values cross it as JSON bytes, times as aware datetimes, ids as strings. Any operation may raise `StoreUnavailableError`: it may or
may not have been committed, and each is written so that calling it again is safe.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol

from workflows.errors import InputError
from workflows.storage.retention import Retention, Swept
from workflows.storage.schema import Select, Table, Write
from workflows.storage.traces import SpanKey, SpanRow, TracePart

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunState(StrEnum):
    """The states of a run; the first three are live, and one run per (tenant, workflow, key) is live at a time."""

    READY = "ready"
    RUNNING = "running"
    SUSPENDED = "suspended"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"

    @property
    def live(self) -> bool:
        """Whether it can still go on."""
        return self in (RunState.READY, RunState.RUNNING, RunState.SUSPENDED)


SUSPECT_AFTER = 2
"""Tries without progress after which a run is suspected to kill its process, and claimed alone."""

Suspects = Literal["no", "head", "only"]
CatchUp = Literal["skip", "one", "all"]
Overlap = Literal["skip", "queue", "allow"]
MAX_QUEUED = 100
"""Firings of one schedule that wait for the one before; further ones are skipped."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to insert. `available_at` None means now.

    `owner` is the worker that claims it as it is inserted, which saves the commit of a claim; one that was reaped does not.
    """

    run_id: str
    tenant: str
    workflow: str
    version: str = "1"
    key: str | None = None
    queue: str = "default"
    priority: int = 100
    input: bytes | None = None
    trace_id: str | None = None
    deployment: str | None = None
    parent_id: str | None = None
    parent_path: str | None = None
    max_attempts: int = 5
    available_at: datetime | None = None
    paused: bool = False
    owner: str | None = None

    def claimed(self, *, inbox_seq: int) -> "RunRow":
        """The row as it stands right after it was inserted for its `owner`, with so many signals."""
        now = datetime.now(UTC)  # for whoever reads it here; what is durable is the store's own
        return RunRow(
            self.run_id, self.tenant, self.workflow, self.version, self.key, self.queue, RunState.RUNNING, 1, self.owner, 1,
            self.max_attempts, 0, inbox_seq, False, now, self.parent_id, self.parent_path, self.input, None, None, self.trace_id,
            self.deployment, now, None, paused=self.paused,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunRow:
    """One row of `runs`."""

    run_id: str
    tenant: str
    workflow: str
    version: str
    key: str | None
    queue: str
    state: RunState
    fence: int
    owner: str | None
    attempts: int
    max_attempts: int
    step_seq: int
    inbox_seq: int
    cancel_requested: bool
    available_at: datetime | None
    parent_id: str | None
    parent_path: str | None
    input: bytes | None
    output: bytes | None
    error: dict[str, Any] | None
    trace_id: str | None
    deployment: str | None
    created_at: datetime
    finished_at: datetime | None
    forked_from: str | None = None
    forked_seq: int | None = None
    paused: bool = False
    priority: int = 100


class Status(StrEnum):
    """What a step record says."""

    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    BAILED = "bailed"
    CHECKPOINT = "checkpoint"
    INTENT = "intent"
    RETRY = "retry"
    UNTIL = "until"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a run, at a path such as "charge", "loop#3/model", "each[7]", "charge!intent", "charge~2", "nap@until"."""

    path: str
    status: Status
    output: bytes | None = None
    error: dict[str, Any] | None = None
    started_at: datetime | None = None
    seq: int = 0
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """A message in a run's inbox; `carried` counts the runs that ended without reading it."""

    seq: int
    name: str
    dedup_key: str
    payload: bytes | None = None
    carried: int = 0
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StepBatch:
    """Records that finished together, and all that belongs to the same commit.

    `consumed` are the numbers of the signals they used. With `done`, the batch is also the clean end of the run, which happens only
    if the inbox still stands at `inbox_seen` and nobody asked to cancel; `output` is then the run's. `wakes_parent` False: whoever ends it
    knows that it has no parent.
    """

    records: tuple[Record, ...]
    consumed: tuple[int, ...] = ()
    children: tuple[NewRun, ...] = ()
    writes: tuple[Write, ...] = ()
    done: bool = False
    output: bytes | None = None
    inbox_seen: int = 0
    successor_id: str = ""
    wakes_parent: bool = True


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """`recorded`: this fence wrote the batch, now or earlier (a lost reply). `owned`: the run is still this fence's.

    Neither recorded nor owned: the fence is stale, stop at once. Owned but not recorded (only with `done`): the inbox moved or a
    cancel came; look at it and go on.
    """

    recorded: bool
    owned: bool
    inbox_seq: int
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class SignalOutcome:
    """Where a signal went. `duplicate`: it was accepted before, nothing changed. `run_id` is None for a duplicate.

    `claimed`: the run it started is its `owner`'s, under fence 1.
    """

    run_id: str | None
    seq: int | None
    started: bool
    duplicate: bool
    claimed: bool = False


@dataclass(frozen=True, slots=True)
class EndOutcome:
    """`ended` False: the fence is stale, or the inbox moved. `carried` signals went to `successor`; the others became dead letters."""

    ended: bool
    successor: str | None
    carried: int


@dataclass(frozen=True, slots=True)
class Fork:
    """A copy of an ended run up to a record, to go on from there.

    Records with a `seq` below `cut` are copied with it, but for the paths of `leave_out`. Signals are copied but for what told the source
    to stop or to step, unread where none of the copied records used them; answers only where one did, for they were given to its questions. `records` follow from `cut` on; `input` is the new run's.
    """

    run_id: str
    source: str
    tenant: str
    cut: int
    input: bytes | None
    leave_out: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Census:
    """How many live or dead runs there are of one workflow and version, in one state; `due_since` is the oldest time one was due."""

    workflow: str
    version: str
    state: RunState
    count: int
    due_since: datetime | None


LETTER_ID = re.compile(r"(\d{1,17})\.(\d{1,9})\.([^\x00]+)")


class LetterId(NamedTuple):
    """What an id of a dead letter says; text outside."""

    died_at: datetime
    run_id: str
    seq: int

    def __str__(self) -> str:
        return f"{(self.died_at - EPOCH) // timedelta(microseconds=1)}.{self.seq}.{self.run_id}"

    @classmethod
    def parse(cls, text: str) -> "LetterId":
        """Raises ValueError if `text` is none."""
        found = LETTER_ID.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no id of a dead letter")
        micros, seq, run_id = found.groups()
        return cls(EPOCH + timedelta(microseconds=int(micros)), run_id, int(seq))


@dataclass(frozen=True, slots=True)
class DeadSignal:
    """A signal that two runs in a row ended without reading, or whose run had no key: who it was for, and when it died."""

    tenant: str
    workflow: str
    key: str | None
    run_id: str
    signal: Signal
    died_at: datetime

    @property
    def id(self) -> str:
        """What names it: to redrive or drop it, and as the last of a page."""
        return str(LetterId(self.died_at, self.run_id, self.signal.seq))


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to run what; `workflows.schedules` reads `spec` and `tz` and applies the rules.

    `due_at` is the time the next firing is for, `next_at` that time with its jitter: when it fires, and the token that clocks compare.
    `last_at` is what the last one was for. `grace_s`: how late a firing may be before `catch_up` counts it as missed. `fired` counts
    firings towards `max_firings`. `ended`: it never fires again.
    """

    tenant: str
    name: str
    workflow: str
    version: str
    spec: str
    tz: str
    next_at: datetime
    last_at: datetime | None = None
    paused: bool = False
    input: bytes | None = None
    due_at: datetime | None = None
    catch_up: CatchUp = "one"
    catch_up_limit: int = 100
    grace_s: float = 60.0
    overlap: Overlap = "skip"
    jitter_s: float = 0.0
    ends_at: datetime | None = None
    max_firings: int | None = None
    fired: int = 0
    ended: bool = False
    paused_reason: str | None = None
    queue: str = "default"

    @property
    def due(self) -> datetime:
        """What the next firing is for. A clock of an older version moves `next_at` alone."""
        late = None if self.due_at is None else (self.next_at - self.due_at).total_seconds()
        return (
            self.due_at if self.due_at is not None and late is not None and 0 <= late <= self.jitter_s else self.next_at
        )


class FiringStatus(StrEnum):
    """What became of a firing: its run was started, waits for the one before it, was left out because that one was still going, or
    was left out because it came too late.
    """

    STARTED = "started"
    QUEUED = "queued"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Firing:
    """One firing of a schedule, for `due_at`, by its time or by hand. `run_id` is known also where no run was started.

    `missed` earlier times it stands for, or that were left out with it. `run_state` is that of its run now, None if there is none (any
    more); what came of delivering its outcome is told apart, by whoever delivers: `delivery`, None until then.
    """

    tenant: str
    schedule: str
    run_id: str
    due_at: datetime
    cause: Literal["time", "manual"] = "time"
    status: FiringStatus = FiringStatus.STARTED
    reason: str | None = None
    missed: int = 0
    fired_at: datetime | None = None
    delivery: str | None = None
    delivery_detail: str | None = None
    delivered_at: datetime | None = None
    run_state: RunState | None = None


def own_id(run: NewRun, tenant: str) -> str:
    """The id of a run that is there already and belongs to `tenant`. Raises InputError if that is another one than `run`'s."""
    if tenant != run.tenant:
        raise InputError(f"the run id {run.run_id!r} can't be used: choose another one")
    return run.run_id


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

    async def reap(self) -> tuple[list[str], list[RunRow]]:
        """Delete workers past their lease and free their runs. Returns (freed run ids, rows out of attempts, fence bumped, to end as dead)."""
        ...

    # Runs
    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        """Insert a run, ready. If a live run has its key already, nothing is inserted and that run's id is returned.

        Raises InputError if another tenant has a run of this id.
        """
        ...

    async def start_owned(self, run: NewRun, *, writes: Sequence[Write] = ()) -> tuple[str, bool]:
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
        """Let go of a run until a signal or `until` (None: only a signal). False: the fence is stale, the inbox moved, or a cancel came."""
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
        """Runs, newest id first; `before` is the last id of the page before."""
        ...

    # What an operator does
    async def fork(self, fork: Fork) -> bool:
        """Copy an ended run in one statement that locks the source. False: it is live, or not this tenant's. Sending it again is safe."""
        ...

    async def redrive(self, run_id: str, *, tenant: str) -> tuple[bool, str | None]:
        """Make a dead run ready again. Returns (done, the live run of its key that is in the way)."""
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
        """The dead letters of a tenant's inboxes, newest first; `before` is the last id of the page before. Raises ValueError if it is none."""
        ...

    async def redrive_signal(self, letter_id: str, run: NewRun) -> SignalOutcome | None:
        """Give a letter of `run`'s tenant, workflow and key to their live run, or start `run` with it; only the first who asks does.

        None: there is no such letter (any more). One without a key can't be redriven: nobody would take it up. Raises ValueError if the
        id is none.
        """
        ...

    async def drop_signal(self, letter_id: str, *, tenant: str) -> bool:
        """Remove a letter for good. False: it was not there. Raises ValueError if the id is none."""
        ...

    # Approvals
    async def decide(
        self,
        *,
        tenant: str,
        approval_id: str,
        decision: str,
        by: str,
        reason: str | None,
        successor_id: str,
        version: str,
    ) -> tuple[bool, str | None]:
        """Decide a pending approval and wake its thread, in one. Returns (decided, run id); decided False: it was not pending any more."""
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

    async def forget(self, tenant: str, *, limit: int = 200) -> int:
        """Remove up to `limit` rows of a tenant, living runs and every registered table included. Returns how many; ask until it is 0."""
        ...

    # Rows of the floors above
    async def read(self, query: Select) -> list[dict[str, Any]]:
        """Rows as dicts of Python values, all columns."""
        ...

    async def write(self, *writes: Write) -> int:
        """Apply writes in one transaction, in order. Returns the rows changed."""
        ...
