"""Takes one claimed run as far as it goes now: done, failed, cancelled, suspended, or given back."""

import random
from enum import StrEnum
from typing import Any
from uuid import uuid5

import structlog
from pydantic import BaseModel
from pydantic_core import from_json, to_jsonable_python

from workflows.definition.callbacks import Moment
from workflows.definition.graph import Workflow
from workflows.definition.registry import Registry
from workflows.definition.state import State
from workflows.errors import Cancelled, Draining, RunNotFoundError, StaleFence, Suspended, describe
from workflows.ids import NAMESPACE
from workflows.running.claim import Claim
from workflows.running.durable import DurableEffects
from workflows.running.fork import Original
from workflows.running.forked_steps import ForkedSteps
from workflows.running.interpreter import Interpreter
from workflows.running.lifecycle import Lifecycle
from workflows.running.runner import StepRunner
from workflows.storage.base import EndOutcome, Record, RunRow, RunState, Status, StoreUnavailableError
from workflows.storage.schema import Insert, Write
from workflows.storage.tables import RUNS
from workflows.tracing import Tracer
from workflows.values import decode, encode


class Left(StrEnum):
    """How a worker left a run."""

    ENDED = "ended"
    SUSPENDED = "suspended"
    RELEASED = "released"
    LOST = "lost"


class FailedRun(BaseModel):
    """The input of a workflow named in `on_failure`."""

    run_id: str
    workflow: str
    key: str | None
    state: RunState
    failure: dict[str, Any]
    input: Any = None

    @classmethod
    def of(cls, run: RunRow, state: RunState, failure: dict[str, Any] | None) -> "FailedRun":
        """What there is to tell of a run that ended in `state`."""
        return cls(
            run_id=run.run_id, workflow=run.workflow, key=run.key, state=state, failure=to_jsonable_python(failure or {}),
            input=_readable(run.input),
        )  # fmt: skip


def _readable(data: bytes | None) -> Any:
    """A value, or None where it can't be read any more: the end of its run is told all the same."""
    try:
        return from_json(data or b"null")
    except ValueError:
        return None


class Driver:
    """Drives executions. `workflows` are those this process knows, by (id, version)."""

    def __init__(self, workflows: Registry, tracer: Tracer, rng: random.Random, lifecycle: Lifecycle) -> None:
        self._workflows = workflows
        self.tracer = tracer
        self.lifecycle = lifecycle
        self._rng = rng

    async def drive(self, claim: Claim) -> Left:
        """Go on with the run until it ends or lets go. Raises StoreUnavailableError when storage is away outside a write."""
        run = claim.run
        workflow = self._workflows[run.workflow, run.version]
        with self.tracer.root(
            workflow.id, tenant=run.tenant, trace_id=run.trace_id or run.run_id, run_id=run.run_id, first=run.fence == 1, parent_run=run.parent_id
        ) as span:  # fmt: skip
            span.attributes.update(fence=run.fence, attempt=run.attempts, version=run.version, key=run.key)
            try:
                left = await self._until_left(claim, workflow)
            except StaleFence as stale:
                structlog.get_logger().info("run_lost", run_id=run.run_id, fence=run.fence, reason=str(stale))
                left = Left.LOST
            span.attributes["left"] = left.value
            return left

    async def _until_left(self, claim: Claim, workflow: Workflow[Any, Any]) -> Left:
        while True:
            left = await self._once(claim, workflow)
            if left is not None:
                return left
            claim.rewind(await self._still_ours(claim))

    async def _once(self, claim: Claim, workflow: Workflow[Any, Any]) -> Left | None:
        """Walk the graph once, forwards, or backwards after a failure. None: something came in between, look again."""
        forked = ForkedSteps(claim, lambda: self._source(claim, workflow)) if claim.run.forked_from else None
        runner = StepRunner(claim, self.tracer, self._rng, workflow.callbacks, forked)
        try:
            try:
                return await self._forwards(claim, workflow, runner)
            except StoreUnavailableError:
                raise
            except Exception as error:
                failed = error
            return await self._failed(claim, workflow, runner, failed)
        except Suspended as suspended:
            left = await self._suspended(claim, suspended)
            if left is Left.SUSPENDED:
                await workflow.callbacks.tell("on_suspend", Moment(claim.run, RunState.SUSPENDED))
            return left
        except Draining:
            await claim.recorder.flush()
            return Left.RELEASED
        except Cancelled:
            return await self._end(claim, workflow, RunState.CANCELLED, None)

    async def _forwards(self, claim: Claim, workflow: Workflow[Any, Any], runner: StepRunner) -> Left | None:
        if claim.cancel_requested and not claim.backwards:
            raise Cancelled
        value = decode(claim.run.input, workflow.input, where=f"the input of {workflow.id}")
        claim.state = State(workflow.state)
        if not claim.records:
            await workflow.callbacks.tell("on_start", Moment(claim.run, RunState.RUNNING))
        output = await Interpreter(DurableEffects(claim, self.tracer, runner)).walk(workflow, value)
        claim.only_forwards()  # its failure may have come from what is now mended; it is being undone all the same
        return await self._done(claim, workflow, output)

    @staticmethod
    async def _source(claim: Claim, workflow: Workflow[Any, Any]) -> Original:
        source = await claim.store.run(claim.run.forked_from or "", tenant=claim.run.tenant)
        if source is None:
            raise RunNotFoundError(f"the run {claim.run.forked_from} that {claim.run.run_id} was forked from is gone")
        return await Original.of(workflow, source, await claim.store.load(source.run_id))

    @staticmethod
    async def _suspended(claim: Claim, suspended: Suspended) -> Left | None:
        """Let go, unless a signal came after the look of an arm that waits for one."""
        await claim.recorder.flush()
        seen = claim.recorder.inbox_seq if suspended.seen is None else suspended.seen
        left = await claim.recorder.suspend(inbox_seen=seen, until=suspended.until)
        return Left.SUSPENDED if left else None

    async def give_up(self, claim: Claim, error: BaseException) -> Left:
        """End a run that the engine itself can't go on with. Raises StoreUnavailableError."""
        claim.rewind(await self._still_ours(claim))
        claim.recorder.drop()
        workflow = self._workflows[claim.run.workflow, claim.run.version]
        return await self._end(claim, workflow, RunState.FAILED, describe(error)) or Left.RELEASED

    async def _done(self, claim: Claim, workflow: Workflow[Any, Any], output: Any) -> Left | None:
        data = encode(output, workflow.output, where=f"workflow {workflow.id}")
        if await claim.inbox.unread():
            outcome = await claim.recorder.end(RunState.DONE, inbox_seen=claim.inbox.seen, output=data)
        else:
            outcome = await claim.recorder.finish(data, inbox_seen=claim.inbox.seen)
        if not outcome.ended:
            return None
        await self._tell_end(claim, workflow, Moment(claim.run, RunState.DONE, output=output), outcome)
        return Left.ENDED

    async def _tell_end(self, claim: Claim, workflow: Workflow[Any, Any], moment: Moment, outcome: EndOutcome) -> None:
        self.lifecycle.ended(claim.run, moment.state, parent_queue=outcome.parent_queue)
        if moment.state is RunState.FAILED:
            await workflow.callbacks.tell("on_error", moment)
        await workflow.callbacks.tell("on_finish", moment)

    async def _failed(
        self, claim: Claim, workflow: Workflow[Any, Any], runner: StepRunner, error: Exception
    ) -> Left | None:
        failure = describe(error)
        claim.backwards = True
        structlog.get_logger().warning("run_failed", run_id=claim.run.run_id, workflow=workflow.id, **failure)
        if not any(record.status is Status.FAILED for record in claim.records.values()):
            claim.record(
                Record("$failed", Status.FAILED, error=failure)
            )  # what failed was no step: backwards for good all the same
        await claim.recorder.flush()
        if undone := await runner.compensate():
            failure = {**failure, "not_undone": undone}
        return await self._end(claim, workflow, RunState.FAILED, failure)

    async def _end(
        self, claim: Claim, workflow: Workflow[Any, Any], state: RunState, failure: dict[str, Any] | None
    ) -> Left | None:
        writes = self.aftermath(claim.run, workflow, state, failure)
        seen = max(claim.inbox.seen, claim.recorder.inbox_seq)
        outcome = await claim.recorder.end(state, inbox_seen=seen, error=failure, writes=writes)
        if not outcome.ended:
            return None
        await self._tell_end(claim, workflow, Moment(claim.run, state, failure=failure), outcome)
        return Left.ENDED

    def aftermath(
        self, run: RunRow, workflow: Workflow[Any, Any] | None, state: RunState, failure: dict[str, Any] | None
    ) -> tuple[Write, ...]:
        """The run of the `on_failure` workflow, to ride in the commit that ends `run`."""
        known = workflow or self._workflows.newest(
            run.workflow
        )  # its own version may be gone in a deploy; its author is told all the same
        handler = self._workflows.newest(known.on_failure) if known and known.on_failure else None
        if handler is None:
            return ()
        values = {
            "run_id": str(uuid5(NAMESPACE, f"{run.run_id}/on-failure/{run.fence}")),
            "tenant": run.tenant,
            "workflow": handler.id,
            "version": handler.version,
            "input": FailedRun.of(run, state, failure).model_dump_json().encode(),
            "trace_id": run.trace_id,
            "max_attempts": handler.max_attempts,
            "deployment": run.deployment,
        }
        return (Insert(RUNS, values),)

    async def _still_ours(self, claim: Claim) -> RunRow:
        row = await claim.store.run(claim.run.run_id)
        if row is None or row.fence != claim.run.fence or row.state is not RunState.RUNNING:
            raise StaleFence(f"run {claim.run.run_id} is no longer held under fence {claim.run.fence}")
        return row
