"""What travels between clients, the workflow that walks a graph, and the activities that carry out its steps. All of it is JSON."""

from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json, to_json

from workflows.storage.base import NewRun, Record, RunRow, RunState, Signal, Status

Json = Any


class Message(BaseModel):
    """Base of what travels. A field that an older process does not know is left out by it."""

    model_config = ConfigDict(frozen=True)


class SignalMessage(Message):
    """A signal on its way into an inbox; `carried` counts the runs that ended without reading it."""

    name: str
    dedup_key: str
    payload: Json = None
    carried: int = 0

    @classmethod
    def of(cls, name: str, dedup_key: str, payload: bytes | None) -> "SignalMessage":
        """A signal whose payload is JSON bytes."""
        return cls(name=name, dedup_key=dedup_key, payload=plain(payload))


class Taken(Message):
    """A signal as it lies in an inbox."""

    seq: int
    name: str
    dedup_key: str
    payload: Json = None
    carried: int = 0
    created_at: datetime

    def signal(self) -> Signal:
        """As the engine knows it."""
        return Signal(self.seq, self.name, self.dedup_key, to_json(self.payload), self.carried, self.created_at)


class Delivered(Message):
    """What became of a signal. `seq` is None for a duplicate."""

    seq: int | None


class RunFacts(Message):
    """What is known of a run when it starts, and does not change."""

    tenant: str
    workflow: str
    version: str
    key: str | None = None
    run_id: str
    """Of a run without a key; one with a key is called by its place in Temporal."""
    queue: str = "default"
    priority: int = 100
    trace_id: str | None = None
    deployment: str | None = None
    parent_id: str | None = None
    parent_path: str | None = None
    parent: "ParentFacts | None" = None
    max_attempts: int = 5

    def row(
        self,
        run_id: str,
        state: RunState,
        *,
        created_at: datetime,
        input: bytes | None = None,  # noqa: A002 — the row's own name for it
        output: bytes | None = None,
        error: dict[str, Any] | None = None,
        finished_at: datetime | None = None,
        cancel_requested: bool = False,
    ) -> RunRow:
        """The row of a run of these facts. What only a store has (fence, owner, counters) is 0 or None."""
        return RunRow(
            run_id=run_id, tenant=self.tenant, workflow=self.workflow, version=self.version, key=self.key, queue=self.queue,
            state=state, fence=0, owner=None, attempts=0, max_attempts=self.max_attempts, step_seq=0, inbox_seq=0,
            cancel_requested=cancel_requested, available_at=None, parent_id=self.parent_id, parent_path=self.parent_path, input=input,
            output=output, error=error, trace_id=self.trace_id or run_id, deployment=self.deployment, created_at=created_at,
            finished_at=finished_at, priority=self.priority,
        )  # fmt: skip


class ParentFacts(Message):
    """Whom to tell of the end of a background run: the run that began it, the live one of its key, or the next one, which begins with `begin`.
    Only a run with a key that signals began has a next one that could begin so; None for any other.
    """

    key: str | None
    begin: "Begin | None"


class Handler(Message):
    """The workflow that is told of a run's failure, as it was when the run began."""

    workflow: str
    version: str
    spec: dict[str, Any]
    max_attempts: int = 5


class Begin(Message):
    """The input of the workflow: the run, the graph as data, the value, and signals that were handed over.

    `callbacks` names those that the graph had, `handler` is the workflow of its `on_failure`: what a process knows may change while a run
    lives, and what the run does may not. `offset_s` moves the run's clock; only tests set it.
    """

    run: RunFacts
    spec: dict[str, Any]
    value: Json = None
    callbacks: tuple[str, ...] = ()
    handler: Handler | None = None
    inbox: tuple[SignalMessage, ...] = ()
    offset_s: float = 0.0

    @classmethod
    def of(cls, run: NewRun, spec: dict[str, Any], *, offset: timedelta, **more: Any) -> "Begin":
        """The beginning of a new run of the workflow that `spec` describes."""
        facts = RunFacts(
            tenant=run.tenant, workflow=run.workflow, version=run.version, key=run.key, run_id=run.run_id, queue=run.queue,
            priority=run.priority, trace_id=run.trace_id, deployment=run.deployment, parent_id=run.parent_id,
            parent_path=run.parent_path, max_attempts=run.max_attempts,
        )  # fmt: skip
        return cls(run=facts, spec=spec, value=plain(run.input), offset_s=offset.total_seconds(), **more)


class Outcome(Message):
    """How a run ended. `dead_letters` are signals that nobody will read."""

    state: RunState
    output: Json = None
    failure: dict[str, Any] | None = None
    dead_letters: tuple[Taken, ...] = ()


class StepCall(Message):
    """One try of one step. `workflow` and `name` say where the registry has the step; `answers` are those to its suspensions so far."""

    run: RunFacts
    run_id: str
    created_at: datetime
    path: str
    step_id: str
    names: str | None
    workflow: str | None
    name: str
    value: Json
    attempt: int
    recovered: bool = False
    uncertain: bool = False
    """Whether an earlier try may have done it."""
    intent_at: datetime | None = None
    state: dict[str, Any]
    state_type: Json = None
    notes: dict[str, Any]
    answers: tuple[Json, ...] = ()
    callbacks: str | None = None
    offset_s: float = 0.0
    cancel_requested: bool = False
    begun_by_signals: bool = False


class StepEnd(Message):
    """How a try ended that did not fail. A suspended one asks `question`; a refused one says `why` an answer does not fit."""

    kind: Literal["ok", "bailed", "suspended", "refused"]
    output: Json = None
    started_at: datetime
    consumed: tuple[int, ...] = ()
    state: dict[str, Any] = {}
    children: tuple[Begin, ...] = ()
    number: int = 0
    question: dict[str, Any] = {}
    why: str = ""


class StepFailure(Message):
    """Why a try failed, as a value; whether the step's retry allows `again`, and how long it says to wait: a random time up to `bound_s`, and
    `retry_after_s` at least. It is in the run's history, so that a later change of the retry does not change what was decided.
    """

    failure: dict[str, Any]
    again: bool = False
    bound_s: float = 0.0
    retry_after_s: float = 0.0
    timed_out: bool = False
    started: bool = True
    """False: what it raised proves that nothing was begun."""


class Wake(Message):
    """Tell the parent's key of the end of a background run."""

    run: RunFacts
    payload: dict[str, Any]


class MomentMessage(Message):
    """A moment to tell a callback of."""

    callbacks: str
    name: str
    run: RunFacts
    run_id: str
    created_at: datetime
    state: RunState
    output: Json = None
    failure: dict[str, Any] | None = None


class RecordMessage(Message):
    """A record; `output` is JSON text, so that its bytes are kept."""

    path: str
    status: Status
    output: str | None = None
    error: dict[str, Any] | None = None
    started_at: datetime | None = None
    seq: int
    finished_at: datetime | None = None

    @classmethod
    def of(cls, record: Record) -> "RecordMessage":
        """A record to be sent."""
        return cls(
            path=record.path, status=record.status, output=None if record.output is None else record.output.decode(),
            error=record.error, started_at=record.started_at, seq=record.seq, finished_at=record.finished_at,
        )  # fmt: skip

    def record(self) -> Record:
        """As the engine knows it."""
        output = None if self.output is None else self.output.encode()
        return Record(self.path, self.status, output, self.error, self.started_at, self.seq, self.finished_at)


def plain(data: bytes | None) -> Json:
    """JSON bytes as what they say."""
    return None if data is None else from_json(data)
