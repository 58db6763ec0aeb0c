"""Runs one step: intent, tries, time limit, retries, and the one record of how it ended."""

import asyncio
import random
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic_core import from_json

from workflows.definition.callbacks import SILENT, Callbacks, Moment
from workflows.definition.context import StepContext
from workflows.definition.effects import Effect, Retry
from workflows.definition.step import Step
from workflows.errors import Bailed, Cancelled, StepFailedError, Suspended, describe
from workflows.running.attempt import attempt, interrupted
from workflows.running.claim import Claim
from workflows.running.compensation import Completed, compensate
from workflows.running.forked_steps import ForkedSteps
from workflows.running.suspension import entered
from workflows.storage.base import Record, RunState, Status, StoreUnavailableError
from workflows.tracing import Tracer
from workflows.values import Interrupted, check, decode, encode, loose

SLICE_S = 0.2
HOLD_S = 5.0
"""A wait longer than this suspends the run instead of holding a worker."""


class StepRunner:
    """Runs steps of one claim. `completed` lists what may have to be compensated, in order."""

    def __init__(
        self,
        claim: Claim,
        tracer: Tracer,
        rng: random.Random,
        callbacks: Callbacks = SILENT,
        forked: ForkedSteps | None = None,
    ) -> None:
        self._claim = claim
        self._forked = forked
        self._tracer = tracer
        self._rng = rng
        self._callbacks = callbacks
        self.completed: list[Completed] = []

    async def run(self, step: Step[Any, Any], path: str, value: Any, *, undoes: bool = False) -> Any:
        """The step's output, from its record or by running it. Raises StepFailedError, or control flow."""
        record = self._claim.records.get(path)
        if record is not None:
            return self._replay(step, path, record)
        value = check(value, step.input, where=f"the input of step {path}")
        effect = step.effect_of(value)
        if (
            effect is not Effect.PURE and not undoes
        ):  # what only computes has no record, and steps with one may come after it
            self._claim.only_forwards()
        await self._wait_out(path)
        await self._claim.awaited(path)
        await self._claim.permit(path)
        if self._forked is not None and effect not in (Effect.PURE, Effect.READ):
            record = await self._forked.record_of(step, path, value)
            if record is not None:
                return self._replay(step, path, record)
        output = await self._traced(step, path, value, effect)
        if self._callbacks.on_step is not None:
            await (
                self._claim.recorder.flush()
            )  # a callback may take its time, and what was done must be known meanwhile
            await self._callbacks.tell("on_step", Moment(self._claim.run, RunState.RUNNING, path=path, output=output))
        return output

    async def _traced(self, step: Step[Any, Any], path: str, value: Any, effect: Effect) -> Any:
        """What can look at nothing but its value leaves neither record nor span: it is told by what gave the value and what takes it."""
        if effect is Effect.PURE and not step.takes_context:
            return await self._live(step, path, value, effect)
        with self._tracer.span(step.id, kind="step", path=path, effect=effect.value) as span:
            output = await self._live(step, path, value, effect)
            span.attributes["interrupted"] = isinstance(output, Interrupted)
        return output

    def _replay(self, step: Step[Any, Any], path: str, record: Record) -> Any:
        if record.status is Status.FAILED:
            raise StepFailedError(path, record.error or {})
        if (changes := self._claim.records.get(f"{path}!state")) is not None:
            self._claim.state.apply(from_json(changes.output or b"{}"), seq=changes.seq)
        if record.status is Status.BAILED:
            raise Bailed(record.output or b"null")
        if record.status is Status.INTERRUPTED:
            return interrupted(step, path, decode(record.output, Interrupted, where=path))
        output = decode(record.output, step.output, where=f"the record of {path}")
        if self._forked is None or self._forked.own(record):
            self.completed.append((step, path, output))
        return output

    async def _live(self, step: Step[Any, Any], path: str, value: Any, effect: Effect) -> Any:
        claim = self._claim
        if effect.needs_intent:
            intent = self._intent_path(path)
            cut_off = intent in claim.records
            if cut_off and effect is Effect.IRREVERSIBLE:
                return self._record_interrupted(step, path, Interrupted())
            await (claim.boundary() if cut_off else self._intend(intent))
            return await self._tries(step, path, value, effect, recovered=cut_off)
        if effect is not Effect.PURE:
            await claim.boundary(binding=effect is Effect.IDEMPOTENT)
            await asyncio.sleep(0)  # and pass it before one of them has a record to write
        return await self._tries(step, path, value, effect)

    async def _intend(self, intent: str) -> None:
        """A boundary whose write says what begins after it. From then on the worker does not leave before the step has ended, since the
        next one could not tell a step that was never started from one that was cut off.
        """
        claim = self._claim
        claim.stop_if_told()
        claim.record(Record(intent, Status.INTENT, started_at=datetime.now(UTC)))
        await asyncio.sleep(0)  # arms that begin together share it
        await claim.recorder.flush()
        if claim.cancel_requested and not claim.backwards:
            raise Cancelled

    def _context(self, path: str, attempt: int, *, recovered: bool = False) -> StepContext:
        intent = self._claim.records.get(f"{path}!intent")
        return StepContext(
            self._claim, path, attempt, intent_at=intent.started_at if intent else None, recovered=recovered
        )

    def _intent_path(self, path: str) -> str:
        """Where the next try says that it starts. After a try that waited long, and after one that let go for an answer, it is another."""
        tries, entries = self._tried(path), entered(self._claim.records, path)
        return f"{path}{f'~{tries}' if tries else ''}!intent{f'#{entries}' if entries else ''}"

    @staticmethod
    async def _found(step: Step[Any, Any], ctx: StepContext, value: Any) -> Any:
        """What an earlier try has left in the outside world, or None; looked for within the time limit of a try."""
        assert step.reconcile is not None
        return await attempt(step, ctx, partial(step.reconcile, ctx.idempotency_key, value, ctx))

    def _tried(self, path: str) -> int:
        tries = 0
        while f"{path}~{tries + 1}" in self._claim.records:
            tries += 1
        return tries

    async def _tries(
        self, step: Step[Any, Any], path: str, value: Any, effect: Effect, *, recovered: bool = False
    ) -> Any:
        tries = self._tried(path)
        uncertain = recovered or tries > 0  # an earlier try may have done it: it is looked for before it is done again
        while True:
            tries += 1
            ctx = self._context(path, tries, recovered=recovered)
            try:
                found = await self._found(step, ctx, value) if uncertain and effect is Effect.RECONCILE else None
                output = found if found is not None else await self._call(step, ctx, value, effect)
                return self._finish(step, ctx, output, effect)
            except Bailed as bailed:
                self._record_end(ctx, Status.BAILED, bailed.data, effect)
                raise
            except StoreUnavailableError:
                raise  # no failure of the step: the run is given back and goes on when storage does
            except Exception as error:
                self._claim.inbox.give_back(ctx.attached.consumed)
                if effect is Effect.IRREVERSIBLE and isinstance(error, TimeoutError) and not step.not_started(error):
                    return self._record_interrupted(step, path, Interrupted(reason="it did not answer in time"))
                if step.retry is None or not step.retry.allows(error, tries=tries, effect=effect):
                    raise self._fail(path, error) from error
                uncertain = uncertain or not step.not_started(error)
                await self._back_off(path, step.retry, error, tries, effect)

    async def _call(self, step: Step[Any, Any], ctx: StepContext, value: Any, effect: Effect) -> Any:
        """What can't be undone is awaited to its end when the run is asked to stop; what would be run again anyway is not."""
        with nullcontext() if effect.needs_intent else self._claim.interruption.window():
            return await attempt(step, ctx, partial(step, value, ctx))

    def _finish(self, step: Step[Any, Any], ctx: StepContext, output: Any, effect: Effect) -> Any:
        where = f"step {ctx.path}"
        output = check(output, step.output, where=f"the output of {where}")
        data = encode(output, step.output, where=where)
        if loose(step.output):  # what comes next is given what it would be given after a crash
            output = decode(data, step.output, where=where)
        self._record_end(ctx, Status.OK, data, effect)
        self.completed.append((step, ctx.path, output))
        return output

    def _record_end(self, ctx: StepContext, status: Status, data: bytes, effect: Effect) -> None:
        if effect is Effect.PURE and status is Status.OK and not ctx.attached.observed:
            return
        record = Record(ctx.path, status, data, started_at=ctx.began)
        self._claim.record(record, ctx, durable=effect is not Effect.PURE)

    def _fail(self, path: str, error: Exception) -> StepFailedError:
        failure = describe(error)
        self._claim.record(Record(path, Status.FAILED, error=failure))
        self._claim.failing = True
        return StepFailedError(path, failure)

    def _record_interrupted(self, step: Step[Any, Any], path: str, value: Interrupted) -> Any:
        self._claim.record(Record(path, Status.INTERRUPTED, value.model_dump_json().encode()))
        return interrupted(step, path, value)

    async def _back_off(self, path: str, retry: Retry, error: Exception, tries: int, effect: Effect) -> None:
        delay = retry.delay_s(error, tries=tries, rng=self._rng)
        if delay <= HOLD_S:
            await self._hold(delay, effect)
            return
        due = await self._claim.store.now() + timedelta(seconds=delay)
        record = Record(f"{path}~{tries}", Status.RETRY, f'"{due.isoformat()}"'.encode(), error=describe(error))
        for n in range(self._tried(path) + 1, tries):  # so that `times` counts the tries that waited here, too
            self._claim.record(Record(f"{path}~{n}", Status.RETRY, record.output))
        self._claim.record(record)
        raise Suspended(due)

    async def _hold(self, delay: float, effect: Effect) -> None:
        """Wait between two tries. Somebody may ask the run to stop, or the worker to leave, meanwhile; an irreversible step that has its
        intent goes on to its end all the same.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + delay
        while (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, SLICE_S))
            if effect is not Effect.IRREVERSIBLE:
                await self._claim.boundary()

    async def _wait_out(self, path: str) -> None:
        """Suspend again if the recorded wait before the next try is not over."""
        tries = self._tried(path)
        if not tries:
            return
        due: datetime = decode(self._claim.records[f"{path}~{tries}"].output, datetime, where=path)
        if due > await self._claim.store.now():
            raise Suspended(due)

    async def compensate(self) -> list[dict[str, Any]]:
        """Undo completed steps in reverse order. Returns the failures, empty if all was undone."""
        return await compensate(self.completed, partial(self.run, undoes=True))
