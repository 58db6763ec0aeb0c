"""Steps of a fork that do something to the world: the source's result on the same input, or else an operator's decision."""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import create_model
from pydantic_core import to_jsonable_python

from workflows.definition.context import StepContext
from workflows.definition.step import Step
from workflows.running.claim import Claim
from workflows.running.fork import ForkDecision, Original
from workflows.storage.base import Record, Status
from workflows.values import encode


class ForkedSteps:
    """Decides for one claimed fork. `original()` replays the source; it is asked for once, and only if a step needs it."""

    def __init__(self, claim: Claim, original: Callable[[], Awaitable[Original]]) -> None:
        self._claim = claim
        self._ask_original = original
        self._original: Original | None = None

    async def record_of(self, step: Step[Any, Any], path: str, value: Any) -> Record | None:
        """The record that stands for running the step, now recorded for this run too; None: it is to run. Raises Suspended."""
        if f"{path}!fork" in self._claim.records:
            return None
        self._original = self._original or await self._ask_original()
        data = encode(value, step.input, where=f"the input of {path}")
        found = self._original.result(path, data)
        if found is not None:
            return self._reuse(Record(path, found.status, found.output), self._original.changes(path))
        decision = await self._decision(step, path, data)
        if decision.action == "run":
            return None
        return self._reuse(Record(path, Status.OK, encode(decision.output, step.output, where=path)))

    async def _decision(self, step: Step[Any, Any], path: str, data: bytes) -> ForkDecision:
        assert self._original is not None
        ctx = StepContext(self._claim, f"{path}!fork", 1)
        question = {
            "step": step.id,
            "question": "This step does something to the world, and the run this one was forked from did not do it on this input.",
            "input": data.decode(),
            "source": self._original.known(path),
        }
        # With the step's own type of output, so that one that does not fit is refused and the question stays.
        fitting = create_model("ForkDecision", __base__=ForkDecision, output=(step.output | None, None))
        decision: ForkDecision = await self._claim.answer(ctx, question, fitting)
        noted = Record(ctx.path, Status.NOTE, encode(to_jsonable_python(decision), Any, where=ctx.path))
        self._claim.record(noted, ctx)
        return decision

    def _reuse(self, record: Record, changes: Record | None = None) -> Record:
        if changes is not None:
            self._claim.record(Record(changes.path, changes.status, changes.output))
        self._claim.record(Record(f"{record.path}!reused", Status.NOTE, b"null"))
        self._claim.record(record)
        return record

    def own(self, record: Record) -> bool:
        """Whether this run did what `record` says, so that it is this run's to undo."""
        copied = 0 < record.seq < (self._claim.run.forked_seq or 0)
        return not copied and f"{record.path}!reused" not in self._claim.records
