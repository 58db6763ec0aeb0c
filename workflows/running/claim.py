"""One claimed run: its records, its inbox, its recorder. Steps see it through StepContext."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_core import from_json, to_json

from workflows.definition.state import State
from workflows.errors import Cancelled, Draining, InputError, StepFailedError, Suspended
from workflows.pubsub.base import Event, PubSub
from workflows.pubsub.hints import hint, run_topic
from workflows.running.inbox import Inbox
from workflows.running.interruption import Interruption
from workflows.running.recorder import Recorder
from workflows.running.suspension import answer_key, progress, question, question_name, refusal_name
from workflows.storage.base import NewRun, Record, RunRow, Signal, Status, Store
from workflows.storage.schema import Write
from workflows.tracing import Tracer, current_span
from workflows.values import check, decode, encode, encode_plain

if TYPE_CHECKING:
    from workflows.definition.context import StepContext
    from workflows.definition.graph import Workflow


STEP_ONCE = "$step"
GO_ON = "$go-on"


class Claim:
    """The state of one claim of one run. `draining()` says that the worker is leaving."""

    def __init__(
        self,
        store: Store,
        pubsub: PubSub,
        tracer: Tracer,
        run: RunRow,
        records: Iterable[Record],
        *,
        draining: Callable[[], bool],
        abandoned: Callable[[], bool],
        dispatched: Callable[[Sequence[NewRun]], None] = lambda _: None,
        inbox: Iterable[Signal] = (),
    ) -> None:
        self.store = store
        self.run = run
        self.records: dict[str, Record] = {}
        self.recorder = Recorder(store, run, abandoned=abandoned, dispatched=dispatched)
        self.state = State()
        self._store_time: datetime | None = None
        self._asked_at = 0.0
        self.interruption = Interruption()
        self._told_to_cancel = False
        self.failing = False
        """Whether a failure was recorded in this walk: from then on no cancel can end the run in another way."""
        self.backwards = False
        """Whether the run has failed for good, so that it only undoes what it did."""
        self.remember(records)
        self._pubsub = pubsub
        self._tracer = tracer
        self._draining = draining
        self.inbox = Inbox(store, run.run_id, self.recorder, inbox)

    def remember(self, records: Iterable[Record]) -> None:
        """Take up what earlier claims recorded."""
        self.records.update((record.path, record) for record in records)
        self.backwards = any(record.status is Status.FAILED for record in self.records.values())

    def only_forwards(self) -> None:
        """Raise the failure of a run that had failed before this walk: an arm that had not come so far then goes no further."""
        if self.backwards:
            failed = next(record for record in self.records.values() if record.status is Status.FAILED)
            raise StepFailedError(failed.path, failed.error or {})

    @property
    def cancel_requested(self) -> bool:
        return self.recorder.cancel_requested or self._told_to_cancel

    async def now(self) -> datetime:
        """The store's time, asked for once a second at most. Deadlines are set by the store's own."""
        elapsed = asyncio.get_running_loop().time() - self._asked_at
        if self._store_time is None or elapsed >= 1.0:
            self._store_time, self._asked_at, elapsed = await self.store.now(), asyncio.get_running_loop().time(), 0.0
        return self._store_time + timedelta(seconds=elapsed)

    def interrupt(self, flow: type[Cancelled | Draining] = Cancelled) -> None:
        """Somebody asked the run to stop, or the worker is leaving. What undoes a failed run's work is not stopped by a cancel."""
        self._told_to_cancel = self._told_to_cancel or flow is Cancelled
        self.interruption.note(flow)
        if not self.backwards or flow is Draining:
            self.interruption.strike()

    async def boundary(self, *, binding: bool = False) -> None:
        """Between two steps: commit what has to be, and stop here if the run was cancelled or the worker is leaving.

        Before a step that shows its value to the world under a key (`binding`) that is everything: the same key must not come with
        another value later, because a pure result it follows from was never written.

        A run that goes backwards is past cancelling: what it has done is being undone.
        """
        await self.recorder.flush(everything=binding)
        self.stop_if_told()

    def stop_if_told(self) -> None:
        """Raise Cancelled or Draining if the run was asked to stop or the worker is leaving, as far as this process knows."""
        if self.cancel_requested and not self.backwards and not self.failing:
            raise Cancelled
        if self._draining():
            raise Draining

    def record(self, record: Record, ctx: "StepContext | None" = None, *, durable: bool = True) -> None:
        """Buffer a record with what its step attached to it."""
        self.records[record.path] = record
        if ctx is None:
            self.recorder.add(record, durable=durable)
        else:
            attached = ctx.attached
            self.recorder.add(
                record, durable=durable, consumed=attached.consumed, writes=attached.writes, children=attached.children
            )
            if attached.state:
                self._remember_state(record.path, attached.state, durable=durable)

    @property
    def _next_seq(self) -> int:
        """The number the next record will have: they are committed in the order they are buffered."""
        return self.run.step_seq + self.recorder.added + 1

    def _remember_state(self, path: str, changes: dict[str, Any], *, durable: bool) -> None:
        record = Record(f"{path}!state", Status.NOTE, to_json(changes), seq=self._next_seq)
        self.state.apply(changes, seq=record.seq)
        self.records[record.path] = record
        self.recorder.add(record, durable=durable)

    # Checkpoints

    def last_checkpoint(self, path: str) -> Record | None:
        """The last checkpoint of the loop at `path`."""
        found = [each for each in self.records.values() if each.status is Status.CHECKPOINT and _looped(each) == path]
        return max(found, key=lambda each: int(each.path.rpartition("@")[2]), default=None)

    def checkpoint(self, path: str, record: Record) -> None:
        """Buffer a checkpoint of the loop at `path`; the rounds behind it are forgotten."""
        self.records = {each: kept for each, kept in self.records.items() if not each.startswith(f"{path}#")}
        self.record(replace(record, seq=self._next_seq), durable=False)

    # Signals

    async def take_signals(self, name: str | None) -> list[Signal]:
        """The pending signals of `name` that no other arm has taken, in order. Commits what is buffered first."""
        with self._tracer.span("drain_signals", kind="drain") as span:
            await self.recorder.flush()
            taken = await self.inbox.take_all(name)
            span.attributes["signals"] = [f"{each.seq}:{each.name}" for each in taken]
            return taken

    def rewind(self, row: RunRow) -> None:
        """Before the graph is walked again on the same claim."""
        self.recorder.inbox_seq = row.inbox_seq
        self.recorder.cancel_requested = row.cancel_requested
        self.inbox.rewind()

    # Answers

    async def answer(self, ctx: "StepContext", payload: Any, resume: Any) -> Any:
        """The answer to the next suspension of the step at `ctx.path`; suspends while there is none that fits `resume`."""
        number, ctx.attached.suspensions = ctx.attached.suspensions, ctx.attached.suspensions + 1
        refusals = progress(self.records, ctx.path)[1].get(number, 0)
        key = answer_key(ctx.path, number, refusals)
        signal, seen = await self.inbox.take(lambda each: each.dedup_key == key)
        if signal is not None:
            try:
                value = decode(signal.payload, resume, where=f"the answer to {ctx.path}")
            except InputError as error:
                await self.refuse(ctx.path, refusal_name(number, refusals), str(error), signal)
                raise Suspended(seen=seen) from None
            ctx.attached.consumed.append(signal.seq)
            return value
        if ctx.attached.asking:
            raise Suspended(seen=seen)  # of two at once the second is asked when the first is answered
        ctx.attached.asking = True
        await self.note(ctx.path, question_name(number), question(payload, resume), ())
        raise Suspended(seen=seen)

    async def awaited(self, path: str) -> None:
        """Suspend without entering the step at `path` while what it let go for is not there."""
        asked, refused = progress(self.records, path)
        if asked:
            key = answer_key(path, asked - 1, refused.get(asked - 1, 0))
            signal, seen = await self.inbox.take(lambda each: each.dedup_key == key)
            if signal is None:
                raise Suspended(seen=seen)
            self.inbox.give_back([signal.seq])

    async def permit(self, path: str) -> None:
        """A paused run takes one step for each it is told to: suspends at `path` while it may not go on."""
        if not self.run.paused or f"{path}!permit" in self.records or await self.inbox.holds(GO_ON):
            return
        signal, seen = await self.inbox.take(lambda each: each.name == STEP_ONCE)
        if signal is None:
            raise Suspended(seen=seen)
        self.use(Record(f"{path}!permit", Status.NOTE, b"null"), signal)

    async def refuse(self, path: str, name: str, why: str, signal: Signal) -> None:
        """Consume a signal whose payload does not fit, and note why."""
        structlog.get_logger().warning("signal_refused", path=path, name=signal.name, reason=why)
        self.use(Record(f"{path}!{name}", Status.NOTE, to_json(why)), signal)
        await self.recorder.flush()

    def use(self, record: Record, signal: Signal) -> None:
        """Buffer a record that a signal made."""
        self.records[record.path] = record
        self.recorder.add(record, consumed=[signal.seq])

    # Notes

    def check_writes(self) -> None:
        """Rows may ride in every commit of a store."""

    async def note(self, path: str, name: str, value: Any, writes: Sequence[Write]) -> None:
        """Commit a note at `path!name` now, unless it is there already."""
        if f"{path}!{name}" in self.records:
            return
        data = encode_plain(value, where=f"the note {name!r} of {path}")
        record = Record(f"{path}!{name}", Status.NOTE, data, started_at=None)
        self.records[record.path] = record
        self.recorder.add(record, writes=writes)
        await self.recorder.flush()

    def noted(self, path: str, name: str) -> Any:
        record = self.records.get(f"{path}!{name}")
        return None if record is None or record.output is None else from_json(record.output)

    def notes(self, path: str, prefix: str) -> dict[str, Any]:
        start = f"{path}!{prefix}"
        found = [
            record for record in self.records.values() if record.path.startswith(start) and record.status is Status.NOTE
        ]
        return {record.path.removeprefix(f"{path}!"): from_json(record.output or b"null") for record in found}

    # Children and events

    def child(self, workflow: "Workflow[Any, Any]", value: Any, *, run_id: str, path: str, queue: str) -> NewRun:
        """A background run of this run's tenant and trace."""
        data = encode(
            check(value, workflow.input, where=f"the input of {workflow.id}"), workflow.input, where=workflow.id
        )
        return NewRun(
            run_id, self.run.tenant, workflow.id, workflow.version, None, queue, input=data, trace_id=self.run.trace_id,
            parent_id=self.run.run_id, parent_path=path, max_attempts=workflow.max_attempts, deployment=self.run.deployment,
        )  # fmt: skip

    async def publish(self, event: Event) -> None:
        """Publish on the run's topic; a bus that is away loses only liveness. Streams publish by the hundred: the span counts them."""
        if (span := current_span()) is not None:
            span.attributes["published"] = span.attributes.get("published", 0) + 1
        await hint(self._pubsub, run_topic(self.run.tenant, self.run.run_id, self.run.key), event)


def _looped(checkpoint: Record) -> str:
    return checkpoint.path.rpartition("@")[0]
