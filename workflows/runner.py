"""Runs one step: intent, tries, time limit, retries, and the one record of how it ended."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from workflows.context import StepContext
from workflows.effects import Effect, Retry
from workflows.errors import Cancelled, InputError, StepCancelledError, StepFailedError, describe
from workflows.execution import Execution, Suspension
from workflows.step import Step
from workflows.storage.base import Record, Status, StoreUnavailableError
from workflows.tracing import Tracer
from workflows.values import Interrupted, check, decode, encode, fits

SLICE_S = 0.2
HOLD_S = 5.0
"""A wait longer than this suspends the run instead of holding a worker."""


class StepRunner:
    """Runs steps of one execution. `completed` lists what may have to be compensated, in order."""

    def __init__(self, execution: Execution, tracer: Tracer, rng: random.Random) -> None:
        self._execution = execution
        self._tracer = tracer
        self._rng = rng
        self.completed: list[tuple[Step[Any, Any], str, Any]] = []

    async def run(self, step: Step[Any, Any], path: str, value: Any) -> Any:
        """The step's output, from its record or by running it. Raises StepFailedError, or control flow."""
        record = self._execution.records.get(path)
        if record is not None:
            return self._replay(step, path, record)
        await self._wait_out(path)
        value = check(value, step.input, where=f"the input of step {path}")
        effect = step.effect_of(value)
        with self._tracer.span(step.id, kind="step", path=path, effect=effect.value) as span:
            output = await self._live(step, path, value, effect)
            span.attributes["interrupted"] = isinstance(output, Interrupted)
            return output

    def _replay(self, step: Step[Any, Any], path: str, record: Record) -> Any:
        if record.status is Status.FAILED:
            raise StepFailedError(path, record.error or {})
        if record.status is Status.INTERRUPTED:
            return self._interrupted(step, path, decode(record.output, Interrupted, where=path))
        output = decode(record.output, step.output, where=f"the record of {path}")
        self.completed.append((step, path, output))
        return output

    async def _live(self, step: Step[Any, Any], path: str, value: Any, effect: Effect) -> Any:
        execution = self._execution
        if effect.needs_intent:
            intent = self._intent_path(path)
            cut_off = intent in execution.records
            if cut_off and effect is Effect.IRREVERSIBLE:
                return self._record_interrupted(step, path, Interrupted())
            await execution.boundary()
            if not cut_off:
                execution.record(Record(intent, Status.INTENT, started_at=datetime.now(UTC)))
                await execution.recorder.flush()
            return await self._tries(step, path, value, effect, recovered=cut_off)
        if effect is not Effect.PURE:
            await execution.boundary()
        return await self._tries(step, path, value, effect)

    def _context(self, path: str, attempt: int, *, recovered: bool = False) -> StepContext:
        intent = self._execution.records.get(f"{path}!intent")
        return StepContext(
            self._execution, path, attempt, intent_at=intent.started_at if intent else None, recovered=recovered
        )

    def _intent_path(self, path: str) -> str:
        """Where the next try says that it starts. A try that waited long has a record, and the one after it an intent of its own."""
        tries = self._tried(path)
        return f"{path}~{tries}!intent" if tries else f"{path}!intent"

    @staticmethod
    async def _reconcile(step: Step[Any, Any], ctx: StepContext, value: Any) -> Any:
        assert step.reconcile is not None
        return await step.reconcile(ctx.idempotency_key, value, ctx)

    def _tried(self, path: str) -> int:
        tries = 0
        while f"{path}~{tries + 1}" in self._execution.records:
            tries += 1
        return tries

    async def _tries(
        self, step: Step[Any, Any], path: str, value: Any, effect: Effect, *, recovered: bool = False
    ) -> Any:
        tries = self._tried(path)
        while True:
            tries += 1
            ctx = self._context(path, tries, recovered=recovered)
            try:
                found = await self._reconcile(step, ctx, value) if recovered and effect is Effect.RECONCILE else None
                output = found if found is not None else await self._call(step, ctx, value, effect)
                return self._finish(step, ctx, output, effect)
            except StoreUnavailableError:
                raise  # no failure of the step: the run is given back and goes on when storage does
            except Exception as error:
                self._execution.give_back(ctx.claimed.consumed)
                if effect is Effect.IRREVERSIBLE and isinstance(error, TimeoutError):
                    return self._record_interrupted(step, path, Interrupted(reason="it did not answer in time"))
                if step.retry is None or not step.retry.allows(error, tries=tries, effect=effect):
                    raise self._fail(path, error) from error
                await self._back_off(path, step.retry, error, tries, effect)

    async def _call(self, step: Step[Any, Any], ctx: StepContext, value: Any, effect: Effect) -> Any:
        call = asyncio.ensure_future(step(value, ctx))
        stop = asyncio.ensure_future(self._stopped())
        try:
            await asyncio.wait({call, stop}, timeout=step.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return self._result_of(call, ctx)
            if stop.done() and not effect.needs_intent:
                raise Cancelled  # it would be run again anyway; what can't be undone is awaited to its end
            if stop.done():
                await asyncio.wait({call}, timeout=step.timeout_s)
                if call.done():
                    return self._result_of(call, ctx)
            raise TimeoutError(f"step {ctx.path} took longer than {step.timeout_s} s")
        finally:
            stop.cancel()
            if not call.done():
                call.cancel()
                await asyncio.wait({call})

    async def _stopped(self) -> None:
        """Somebody asked the run to stop. What undoes a failed run's work is not stopped."""
        await self._execution.interrupt.wait()
        if self._execution.backwards:
            await asyncio.Event().wait()

    @staticmethod
    def _result_of(call: "asyncio.Future[Any]", ctx: StepContext) -> Any:
        if call.cancelled():  # by something inside the step; left alone it would look as if this worker were leaving
            raise StepCancelledError(f"step {ctx.path} cancelled itself")
        return call.result()

    def _finish(self, step: Step[Any, Any], ctx: StepContext, output: Any, effect: Effect) -> Any:
        where = f"step {ctx.path}"
        output = check(output, step.output, where=f"the output of {where}")
        record = Record(ctx.path, Status.OK, encode(output, step.output, where=where), started_at=ctx.started_at)
        self._execution.record(record, ctx, durable=effect is not Effect.PURE)
        self.completed.append((step, ctx.path, output))
        return output

    def _fail(self, path: str, error: Exception) -> StepFailedError:
        failure = describe(error)
        self._execution.record(Record(path, Status.FAILED, error=failure))
        return StepFailedError(path, failure)

    def _record_interrupted(self, step: Step[Any, Any], path: str, value: Interrupted) -> Any:
        self._execution.record(Record(path, Status.INTERRUPTED, value.model_dump_json().encode()))
        return self._interrupted(step, path, value)

    @staticmethod
    def _interrupted(step: Step[Any, Any], path: str, value: Interrupted) -> Any:
        if fits(Interrupted, step.output):
            return value
        raise StepFailedError(
            path, {"type": "Interrupted", "message": f"outcome unknown: {value.reason}", "causes": []}
        )

    async def _back_off(self, path: str, retry: Retry, error: Exception, tries: int, effect: Effect) -> None:
        delay = retry.delay_s(error, tries=tries, rng=self._rng)
        if delay <= HOLD_S:
            await self._hold(delay, effect)
            return
        due = await self._execution.store.now() + timedelta(seconds=delay)
        record = Record(f"{path}~{tries}", Status.RETRY, f'"{due.isoformat()}"'.encode(), error=describe(error))
        for n in range(self._tried(path) + 1, tries):  # so that `times` counts the tries that waited here, too
            self._execution.record(Record(f"{path}~{n}", Status.RETRY, record.output))
        self._execution.record(record)
        raise Suspension(due)

    async def _hold(self, delay: float, effect: Effect) -> None:
        """Wait between two tries. Somebody may ask the run to stop, or the worker to leave, meanwhile; an irreversible step that has its
        intent goes on to its end all the same.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + delay
        while (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, SLICE_S))
            if effect is not Effect.IRREVERSIBLE:
                await self._execution.boundary()

    async def _wait_out(self, path: str) -> None:
        """Suspend again if the recorded wait before the next try is not over."""
        tries = self._tried(path)
        if not tries:
            return
        due: datetime = decode(self._execution.records[f"{path}~{tries}"].output, datetime, where=path)
        if due > await self._execution.store.now():
            raise Suspension(due)

    async def compensate(self) -> list[dict[str, Any]]:
        """Undo completed steps in reverse order, each a durable step of its own. Returns the failures, empty if all was undone."""
        failures = []
        for step, path, output in reversed(self.completed):
            if step.compensate is None:
                continue
            undo: Step[Any, Any] = Step(
                f"{step.id}-undo",
                step.compensate,
                step.output,
                Any,
                effect=Effect.IDEMPOTENT,
                retry=Retry(times=5, base=0.2, cap=HOLD_S),
            )
            try:
                await self.run(undo, f"{path}!undo", output)
            except (StepFailedError, InputError) as error:
                failures.append(describe(error))
        return failures
