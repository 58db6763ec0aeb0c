"""The effects of a walk on a claimed run: finished work is read back from its records, new work is recorded."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from workflows.definition.graph import Loop, WaitFor, Workflow, undoable
from workflows.definition.state import State
from workflows.definition.step import Step
from workflows.errors import InputError, Suspended
from workflows.pubsub.base import Event
from workflows.running.claim import Claim
from workflows.running.runner import StepRunner
from workflows.storage.base import Record, Status
from workflows.tracing import Span, Tracer
from workflows.values import adapter, check, decode

ROUNDS_KEPT = 1000
"""Records of one loop after which it leaves a checkpoint."""


class Checkpoint(BaseModel):
    """Where a loop stood: the rounds behind it, the value after them, and the run's state."""

    count: int
    value: Any
    state: dict[str, Any]


class DurableEffects:
    """Implements `effects.Effects` on storage."""

    def __init__(self, claim: Claim, tracer: Tracer, runner: StepRunner) -> None:
        self._claim = claim
        self._tracer = tracer
        self._runner = runner

    @property
    def state(self) -> State:
        return self._claim.state

    def state_at(self, path: str) -> State:
        record = self._claim.records.get(f"{path}@state")
        if record is None:
            record = Record(f"{path}@state", Status.NOTE, to_json(dict(self.state.values)))
            self._claim.record(record)
        return self.state.like(from_json(record.output or b"{}"))

    async def step(self, step: Step[Any, Any], path: str, value: Any) -> Any:
        return await self._runner.run(step, path, value)

    def begun(self, path: str) -> bool:
        records = self._claim.records
        return path in records or f"{path}!intent" in records

    def given(self, node: Any, path: str, value: Any) -> Any:
        if self._claim.run.forked_from is None:
            return value
        override = self._claim.records.get(f"{path}!input")
        return value if override is None else decode(override.output, node.input, where=f"the input of {path}")

    def nested(self, workflow: Workflow[Any, Any], path: str) -> AbstractContextManager[Span]:
        return self._tracer.span(workflow.id, kind="workflow", path=path)

    def arms(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(_nothing)  # an arm that waits lets go, and the others go on without it

    async def arm_done(self, *, left: int) -> None:
        if left:  # the others may take long; the last one's record waits for whatever comes next
            await self._claim.recorder.flush()

    async def progress(self, path: str, *, done: int, total: int) -> None:
        await self._claim.publish(
            Event("progress", {"run_id": self._claim.run.run_id, "path": path, "done": done, "total": total})
        )

    def loop_begun(self, path: str, loop: Loop) -> tuple[int, Any] | None:
        record = self._claim.last_checkpoint(path)
        if record is None:
            return None
        kept = Checkpoint.model_validate_json(record.output or b"{}")
        self.state.apply(kept.state, seq=record.seq)
        return kept.count, check(kept.value, loop.node.output, where=f"the checkpoint {record.path}")

    def loop_goes_on(self, path: str, loop: Loop, count: int, value: Any) -> None:
        """A long loop leaves a checkpoint now and then, so that taking the run up again does not read all its rounds.

        Steps that have to be undone when the run fails are needed to the end: a loop with such steps keeps them all.
        """
        records = self._claim.records
        if len(records) < ROUNDS_KEPT or undoable(loop.node):
            return
        if sum(each.startswith(f"{path}#") for each in records) < ROUNDS_KEPT:
            return
        if any(each.startswith(f"{path}#{count + 1}") for each in records):
            return  # what is recorded of the rounds that follow is being read back
        plain = adapter(loop.node.output).dump_python(value, mode="json")
        kept = Checkpoint(count=count, value=plain, state=dict(self.state.values))
        self._claim.checkpoint(path, Record(f"{path}@{count}", Status.CHECKPOINT, kept.model_dump_json().encode()))

    async def sleep(self, path: str, wake_at: Callable[[datetime], datetime]) -> None:
        if path in self._claim.records:
            return
        self._claim.only_forwards()
        due = await self._deadline(path, wake_at)
        if due > await self._claim.store.now():
            raise Suspended(due)
        self._claim.record(Record(path, Status.OK))

    async def _deadline(self, path: str, at: Callable[[datetime], datetime]) -> datetime:
        """The time recorded at `path@until`; recorded now if there is none. Woken early, a run reads it again: it never moves."""
        record = self._claim.records.get(f"{path}@until")
        if record is None:
            due = at(await self._claim.store.now())
            record = Record(f"{path}@until", Status.UNTIL, adapter(datetime).dump_json(due))
            self._claim.record(record)
            await self._claim.recorder.flush()
        moment: datetime = decode(record.output, datetime, where=record.path)
        return moment

    async def wait_for(self, path: str, wait: WaitFor) -> Any:
        if (record := self._claim.records.get(path)) is not None:
            return wait.otherwise if record.status is Status.SKIPPED else decode(record.output, wait.schema, where=path)
        self._claim.only_forwards()
        with self._tracer.span(wait.name, kind="wait", path=path):
            await self._claim.boundary()
            while True:
                signal, seen = await self._claim.inbox.take(lambda each: each.name == wait.name)
                if signal is None:
                    return await self._timed_out(path, wait, seen)
                try:
                    output = decode(signal.payload, wait.schema, where=f"the signal {wait.name!r} at {path}")
                except InputError as error:  # a stranger's mistake must not fail the run
                    await self._claim.refuse(path, f"refused#{signal.seq}", str(error), signal)
                    continue
                self._claim.use(Record(path, Status.OK, signal.payload), signal)
                return output

    async def _timed_out(self, path: str, wait: WaitFor, seen: int) -> Any:
        if wait.timeout_s is None:
            raise Suspended(seen=seen)
        due = await self._deadline(path, lambda now: now + timedelta(seconds=wait.timeout_s or 0))
        if due > await self._claim.store.now():
            raise Suspended(due, seen=seen)
        self._claim.record(Record(path, Status.SKIPPED))
        return wait.otherwise


def _nothing() -> None:
    return None
