"""Runs as they are inserted, stored, stepped, ended, copied and counted."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from workflows.errors import InputError
from workflows.storage.moments import EPOCH, MICROSECOND
from workflows.storage.records import Record
from workflows.storage.schema import Write


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

    @property
    def cursor(self) -> str:
        """What names its place in a list: where the next page goes on, whatever became of the run."""
        return str(RunCursor(self.created_at, self.run_id))


RUN_CURSOR = re.compile(r"([0-9]{1,17})\.([^\x00\ud800-\udfff]+)")


class RunCursor(NamedTuple):
    """A place in a list of runs, newest first; text outside."""

    created_at: datetime
    run_id: str

    def __str__(self) -> str:
        return f"{(self.created_at - EPOCH) // MICROSECOND}.{self.run_id}"

    @classmethod
    def parse(cls, text: str) -> "RunCursor":
        """Raises InputError if `text` is none."""
        if (found := RUN_CURSOR.fullmatch(text)) is None:
            raise InputError(f"{text[:80]!r} is no cursor of a list of runs: use that of its last row")
        return cls(EPOCH + int(found[1]) * MICROSECOND, found[2])


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
    parent_queue: str | None = None
    """With `done`: the queue of the run that was told of a child's end."""


@dataclass(frozen=True, slots=True)
class EndOutcome:
    """`ended` False: the fence is stale, or the inbox moved. `carried` signals went to `successor`; the others became dead letters.

    `parent_queue`: that of the run that was told of a child's end.
    """

    ended: bool
    successor: str | None
    carried: int
    parent_queue: str | None = None


@dataclass(frozen=True, slots=True)
class StartOutcome:
    """The run that was inserted or is live. `claimed`: it was inserted as its `owner`'s, under fence 1."""

    run_id: str
    claimed: bool


@dataclass(frozen=True, slots=True)
class ReapOutcome:
    """The ids of runs that were `freed`, and rows out of attempts, their fence bumped, to be ended as `dead`."""

    freed: tuple[str, ...]
    dead: tuple[RunRow, ...]


@dataclass(frozen=True, slots=True)
class RedriveOutcome:
    """Whether a dead run is ready again; else `live` may be the run of its key that is in the way."""

    redriven: bool
    live: str | None


@dataclass(frozen=True, slots=True)
class Fork:
    """A copy of an ended run up to a record, to go on from there.

    Records with a `seq` below `cut` are copied with it, but for the paths of `leave_out`. Signals are copied but for what told the source
    to stop or to step, unread where none of the copied records used them; answers only where one did, for they were given to its
    questions. `records` follow from `cut` on; `input` is the new run's.
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


def own_id(run: NewRun, tenant: str) -> str:
    """The id of a run that is there already and belongs to `tenant`. Raises InputError if that is another one than `run`'s."""
    if tenant != run.tenant:
        raise InputError(f"the run id {run.run_id!r} can't be used: choose another one")
    return run.run_id
