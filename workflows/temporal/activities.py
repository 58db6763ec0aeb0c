"""Activities: one try of one step each, with the step's context, its time limit and its heartbeat."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import structlog
from pydantic_core import from_json, to_json
from temporalio import activity
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from workflows.definition.callbacks import SILENT, Callbacks, Moment
from workflows.definition.context import StepContext
from workflows.definition.effects import Effect
from workflows.definition.registry import Registry
from workflows.definition.spec import Names
from workflows.definition.spec.types import read_type
from workflows.definition.step import Step
from workflows.errors import Bailed, ControlFlow, InputError, NoExecutorError, StepFailedError, describe
from workflows.pubsub.base import PubSub
from workflows.running.attempt import attempt
from workflows.storage.base import RunState
from workflows.temporal.ending import TELL, WAKE
from workflows.temporal.host import ActivityHost, Asked, Refused
from workflows.temporal.located import Located
from workflows.temporal.messages import Json, MomentMessage, StepCall, StepEnd, StepFailure, Wake
from workflows.temporal.payloads import MAX_BYTES, too_large
from workflows.temporal.starting import Starter
from workflows.temporal.steps import FAILED, LEFT, UNKNOWN
from workflows.tracing import Tracer
from workflows.values import Interrupted, check, decode, encode

SAID = ApplicationErrorCategory.BENIGN
"""Of what was said of a failure in the engine's own words: the SDK would log a traceback, and tracebacks hold data."""


class Activities:
    """Carries out the steps of the runs of one fleet."""

    def __init__(
        self,
        registry: Registry,
        starter: Starter,
        pubsub: PubSub,
        tracer: Tracer,
        client: Client,
        *,
        heartbeat_s: float,
    ) -> None:
        self._registry = registry
        self._starter = starter
        self._pubsub = pubsub
        self._tracer = tracer
        self._client = client
        self._heartbeat_s = heartbeat_s
        self._working: set[asyncio.Task[Any]] = set()
        self._cutting: set[asyncio.Task[Any]] = set()
        self._leaving = False
        self._dead = False

    @property
    def all(self) -> list[Any]:
        """To register with a worker."""
        return [self.step, self.tell, self.wake_parent]

    @property
    def busy(self) -> bool:
        """Whether anything is carried out."""
        return bool(self._working)

    def cut_off(self) -> None:
        """Stop steps that would be run again anyway, and begin none: the process is leaving. The others go on to their end."""
        self._leaving = True
        for task in list(self._cutting):
            task.cancel()

    def die(self) -> None:
        """Play dead, as tests do: what is carried out stops, and the server hears no more of it."""
        self._dead = True
        for task in list(self._working):
            task.cancel()

    # A step

    @activity.defn(dynamic=True)
    async def step(self, args: Sequence[RawValue]) -> StepEnd:
        """One try of a step."""
        call = activity.payload_converter().from_payload(args[0].payload, StepCall)
        try:
            names = self._names(call)
            step = Located(call.name, call.workflow).find(names, call.step_id, call.path)
            value = decode(to_json(call.value), step.input, where=f"the input of step {call.path}")
            effect = step.effect_of(value)
            host = ActivityHost(
                call, self._handle(), self._pubsub, self._starter, state_type=self._state_type(call, names)
            )
        except (NoExecutorError, InputError) as error:
            raise ApplicationError(str(error), type=UNKNOWN, non_retryable=True) from None
        work = asyncio.create_task(self._carry_out(step, call, host, value, effect))
        beating = asyncio.create_task(self._beat())
        self._working.add(work)
        if not effect.needs_intent:
            self._cutting.add(work)
            if self._leaving:
                work.cancel()
        try:
            return await self._watched(work, host)
        finally:
            beating.cancel()
            self._working.discard(work)
            self._cutting.discard(work)

    async def _watched(self, work: "asyncio.Task[StepEnd]", host: ActivityHost) -> StepEnd:
        """What the work comes to. Raises CancelledError if the run was asked to stop, ApplicationError if this process has to go."""
        stopped = False
        while True:
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                reasons = activity.cancellation_details()
                stopped = reasons is not None and reasons.cancel_requested
                host.cancel_requested = host.cancel_requested or stopped
                work.cancel()  # somebody does not want it, nobody waits for it any more, or this process has to go
                continue
            break
        if self._dead:
            activity.raise_complete_async()  # no word to the server, which waits for the next heartbeat in vain
        if work.cancelled():
            if stopped:
                raise asyncio.CancelledError
            raise ApplicationError(
                "the worker left in the middle of the step", type=LEFT, non_retryable=True, category=SAID
            )
        return work.result()

    async def _beat(self) -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(self._heartbeat_s / 4)

    async def _carry_out(
        self, step: Step[Any, Any], call: StepCall, host: ActivityHost, value: Any, effect: Effect
    ) -> StepEnd:
        ctx = StepContext(host, call.path, call.attempt, intent_at=call.intent_at, recovered=call.recovered)
        run = call.run
        with (
            structlog.contextvars.bound_contextvars(
                run_id=call.run_id, workflow=run.workflow, path=call.path, attempt=call.attempt, tenant=run.tenant, trace_id=host.run.trace_id
            ),
            self._tracer.root(
                step.id, tenant=run.tenant, trace_id=host.run.trace_id or call.run_id, run_id=call.run_id, first=False, path=call.path,
                effect=effect.value, attempt=call.attempt,
            ) as span,
        ):  # fmt: skip
            try:
                output, data = await self._output(step, ctx, value, effect, call)
                end = self._end(ctx, host, "ok", output=from_json(data))
            except Bailed as bailed:
                return self._end(ctx, host, "bailed", output=from_json(bailed.data))
            except Asked as asked:
                return StepEnd(
                    kind="suspended", started_at=ctx.started_at, number=asked.number, question=asked.question
                )
            except Refused as refused:
                return StepEnd(kind="refused", started_at=ctx.started_at, number=refused.number, why=refused.why)
            except ControlFlow as flow:
                raise ApplicationError(str(flow), type=LEFT, non_retryable=True, category=SAID) from None
            except Exception as error:
                raise self._failure(step, error, effect, tries=call.attempt) from None
            span.attributes["interrupted"] = isinstance(output, Interrupted)
            await self._callbacks(call.callbacks).tell(
                "on_step", Moment(host.run, RunState.RUNNING, path=call.path, output=output)
            )
            return end

    @staticmethod
    async def _output(
        step: Step[Any, Any], ctx: StepContext, value: Any, effect: Effect, call: StepCall
    ) -> tuple[Any, bytes]:
        found = None
        if call.uncertain and effect is Effect.RECONCILE:
            assert step.reconcile is not None
            found = await attempt(step, ctx, partial(step.reconcile, ctx.idempotency_key, value, ctx))
        output = found if found is not None else await attempt(step, ctx, partial(step, value, ctx))
        output = check(output, step.output, where=f"the output of step {call.path}")
        return output, encode(output, step.output, where=f"step {call.path}")

    def _end(self, ctx: StepContext, host: ActivityHost, kind: Literal["ok", "bailed"], *, output: Json) -> StepEnd:
        attached = ctx.attached
        end = StepEnd(
            kind=kind, output=output, started_at=ctx.started_at, consumed=tuple(attached.consumed), state=attached.state,
            children=tuple(host.children[each.run_id] for each in attached.children),
        )  # fmt: skip
        if (size := len(end.model_dump_json())) > MAX_BYTES:
            raise self._said(describe(too_large(f"what step {ctx.path} gives", size)))
        return end

    # Failures

    def _failure(self, step: Step[Any, Any], error: Exception, effect: Effect, *, tries: int) -> ApplicationError:
        if isinstance(error, ApplicationError):
            return error
        retry_after: float = getattr(error, "retry_after_s", None) or 0.0
        again = step.retry is not None and step.retry.allows(error, tries=tries, effect=effect)
        failure = error.failure if isinstance(error, StepFailedError) else describe(error)
        bound = step.retry.bound_s(tries) if step.retry is not None else 0.0
        started = not step.not_started(error)
        unknown = isinstance(error, TimeoutError) and started
        return self._said(
            failure, again=again, bound_s=bound, retry_after_s=retry_after, timed_out=unknown, started=started
        )

    @staticmethod
    def _said(failure: dict[str, Any], **more: Any) -> ApplicationError:
        said = StepFailure(failure=failure, **more)
        return ApplicationError(
            f"{failure['type']}: {failure['message']}"[:500], said, type=FAILED, non_retryable=True, category=SAID
        )

    # What a call refers to

    def _names(self, call: StepCall) -> Names:
        if call.names is None:
            return self._registry
        found = self._registry.find("value", call.names)
        if found is None:
            raise NoExecutorError(f"this process has no catalogue {call.names!r}")
        names: Names = found
        return names

    @staticmethod
    def _state_type(call: StepCall, names: Names) -> Any:
        if call.state_type is None:
            return None
        problems: list[str] = []
        found = read_type(call.state_type, names, report=lambda place, message: problems.append(message), place="state")
        if problems:
            raise NoExecutorError(f"this process does not know the type of the run's state: {problems[0]}")
        return found

    def _callbacks(self, name: str | None) -> Callbacks:
        found = None if name is None else self._registry.find("value", name)
        return found if isinstance(found, Callbacks) else SILENT

    def _handle(self) -> Any:
        info = activity.info()
        assert info.workflow_id is not None
        return self._client.get_workflow_handle(info.workflow_id, run_id=info.workflow_run_id)

    # Telling

    @activity.defn(name=TELL)
    async def tell(self, moment: MomentMessage) -> None:
        """Tell a callback, in this process."""
        row = moment.run.row(moment.run_id, moment.state, created_at=moment.created_at)
        output = moment.output
        workflow = self._registry.get((moment.run.workflow, moment.run.version))
        if output is not None and workflow is not None:
            with contextlib.suppress(InputError):
                output = decode(to_json(output), workflow.output, where=moment.run_id)
        told = Moment(row, moment.state, output=output, failure=moment.failure)
        await self._callbacks(moment.callbacks).tell(moment.name, told)

    @activity.defn(name=WAKE)
    async def wake_parent(self, wake: Wake) -> None:
        """Signal the parent's key, or start its next run with that."""
        await self._starter.wake_parent(wake)
