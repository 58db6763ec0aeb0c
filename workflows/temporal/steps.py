"""Carries out steps as activities: their tries, answers, losses, and the one record of how each ended.

An activity is never retried by Temporal: whether a step may run again depends on its effect, and is decided here. What history says was
scheduled is the intent of a step; where it was lost with its worker, an irreversible one is not run again.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import from_json, to_json
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from workflows.definition.effects import Effect
from workflows.definition.step import Step
from workflows.errors import Bailed, Cancelled, StepFailedError, Suspended, WorkflowError
from workflows.running.attempt import interrupted
from workflows.running.compensation import Completed
from workflows.running.runner import HOLD_S
from workflows.running.suspension import answer_key, question_name, refusal_name
from workflows.storage.base import Status
from workflows.temporal.children import start_child
from workflows.temporal.located import locate
from workflows.temporal.messages import StepCall, StepEnd, StepFailure
from workflows.temporal.outside import outside
from workflows.temporal.payloads import fitting
from workflows.temporal.walk import Walk
from workflows.values import Interrupted, check, decode, encode

ONCE = RetryPolicy(maximum_attempts=1)
FOR_EVER = timedelta(days=3650)
MARGIN_S = 60.0
"""How much longer than the step's own time limit Temporal waits: it only matters if the process that keeps the limit hangs."""
AWAY_S = 5.0
"""How long to wait after a process said that it does not know a step: another may."""

FAILED = "StepFailure"
LEFT = "WorkerLeft"
UNKNOWN = "NoExecutor"

MAX_EVENTS = 40_000
"""Of a run's history; what is left of the 51,200 that Temporal keeps is for undoing what was done."""


class DeadError(Exception):
    """A step killed its worker as often as the run may try."""


class TooLongError(WorkflowError):
    """A run has become too long for Temporal."""


@dataclass(slots=True)
class Tries:
    """How far a step has come: tries since the last recorded wait, recorded waits, losses in a row, answers, refusals by question."""

    tries: int = 0
    waits: int = 0
    losses: int = 0
    recovered: bool = False
    uncertain: bool = False
    answers: list[Any] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    refusals: dict[int, int] = field(default_factory=dict)
    asked: int = 0

    @property
    def entries(self) -> int:
        """How often the step has let go to wait for an answer."""
        return self.asked + sum(self.refusals.values())

    def again(self) -> None:
        """The step is entered anew: only recorded waits count."""
        self.tries = self.waits


class Steps:
    """Runs the steps of one run. `completed` lists what may have to be compensated, in order."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._taken: dict[str, list[int]] = {}
        self.completed: list[Completed] = []

    def taken(self, path: str, numbers: list[int]) -> None:
        """The try at `path` has taken signals; they are given back if it fails."""
        self._taken.setdefault(path, []).extend(numbers)

    async def run(self, step: Step[Any, Any], path: str, value: Any) -> Any:
        """The step's output. Raises StepFailedError, Bailed, Cancelled, DeadError."""
        value = check(value, step.input, where=f"the input of step {path}")
        effect = step.effect_of(value)
        data = from_json(encode(value, step.input, where=f"the input of step {path}"))
        so_far = Tries()
        while True:
            self._check_history()
            if not (effect is Effect.IRREVERSIBLE and so_far.tries > so_far.waits):
                self._walk.boundary()
            intent_at = self._intend(path, effect, so_far)
            so_far.tries += 1
            try:
                end = await self._try(step, path, effect, data, so_far, intent_at=intent_at)
            except ActivityError as error:
                self._give_back(path)
                if is_cancelled_exception(error):
                    raise Cancelled from None
                if (cut_off := await self._failed(step, path, effect, so_far, error)) is not None:
                    return cut_off
                continue
            if end.kind in ("ok", "bailed"):
                return await self._finish(step, path, end, so_far)
            self._give_back(path)
            await self._answered(path, end, so_far)

    def _check_history(self) -> None:
        """Temporal ends a workflow whose history grows too long without a word; this run says so before."""
        length = workflow.info().get_current_history_length()
        if length > MAX_EVENTS and not self._walk.backwards:
            raise TooLongError(
                f"the run has {length} events in Temporal, which takes 51,200; let it start another run to go on"
            )

    def _intend(self, path: str, effect: Effect, so_far: Tries) -> datetime | None:
        if not effect.needs_intent:
            return None
        waits, entries = so_far.waits, so_far.entries
        intent = f"{path}{f'~{waits}' if waits else ''}!intent{f'#{entries}' if entries else ''}"
        record = self._walk.journal.add(intent, Status.INTENT, started_at=self._walk.now())
        first = self._walk.journal.records.get(f"{path}!intent", record)
        return first.started_at

    async def _try(
        self, step: Step[Any, Any], path: str, effect: Effect, data: Any, so_far: Tries, *, intent_at: datetime | None
    ) -> StepEnd:
        walk, where = self._walk, locate(self._walk.walked, path)
        call = StepCall(
            run=walk.facts, run_id=walk.run_id, created_at=walk.created_at, path=path, step_id=step.id, names=walk.names,
            workflow=where.workflow, name=where.name, value=data, attempt=so_far.tries, recovered=so_far.recovered,
            uncertain=so_far.uncertain or so_far.recovered,
            intent_at=intent_at, state=dict(walk.state.values), state_type=walk.state_type(), notes=walk.journal.notes(path),
            answers=tuple(so_far.answers), callbacks=walk.references.get("#callbacks"), offset_s=walk.offset.total_seconds(),
            cancel_requested=walk.cancelled, begun_by_signals=walk.begin.value is None,
        )  # fmt: skip
        fitting(f"the input of step {path}, with the run's state", call)
        limit = FOR_EVER if step.timeout_s is None else timedelta(seconds=step.timeout_s + MARGIN_S)
        handle = workflow.start_activity(
            step.id, call, activity_id=path, result_type=StepEnd, start_to_close_timeout=limit, retry_policy=ONCE,
            heartbeat_timeout=timedelta(seconds=outside().heartbeat_s),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )  # fmt: skip
        return await walk.carried_out(path, handle, interruptible=not effect.needs_intent)

    # Ends

    async def _finish(self, step: Step[Any, Any], path: str, end: StepEnd, so_far: Tries) -> Any:
        walk = self._walk
        data = to_json(end.output)
        status = Status.OK if end.kind == "ok" else Status.BAILED
        record = walk.journal.add(path, status, data, started_at=end.started_at)
        walk.mailbox.use([*end.consumed, *so_far.used])
        self._taken.pop(path, None)
        if end.state:
            walk.state.apply(end.state, seq=record.seq)
            walk.journal.note(path, "state", end.state)
        for child in end.children:
            await start_child(self._walk.fleet, child)
            self._walk.dispatched.add(f"task:{child.run.run_id}")
        if status is Status.BAILED:
            raise Bailed(data)
        output = decode(data, step.output, where=f"the record of {path}")
        self.completed.append((step, path, output))
        return output

    async def _failed(
        self, step: Step[Any, Any], path: str, effect: Effect, so_far: Tries, error: ActivityError
    ) -> Any | None:
        """What stands for the step's output if it was cut off and may not run again; None: try again. Raises StepFailedError, DeadError."""
        cause = error.cause
        kind = cause.type if isinstance(cause, ApplicationError) else None
        if kind == UNKNOWN:
            so_far.tries -= 1
            await self._hold(AWAY_S, effect=None)
            return None
        if kind == FAILED:
            assert isinstance(cause, ApplicationError)
            failure = StepFailure.model_validate(cause.details[0])
            return await self._tried(step, path, effect, so_far, failure)
        if effect is Effect.IRREVERSIBLE:
            return self._cut_off(step, path, Interrupted())
        if self._walk.in_vain():
            raise Suspended
        so_far.losses += kind != LEFT
        if so_far.losses >= self._walk.run.max_attempts:
            raise DeadError(f"{so_far.losses} attempts made no progress: the worker of step {path} was lost")
        so_far.recovered = True
        so_far.again()
        return None

    async def _tried(
        self, step: Step[Any, Any], path: str, effect: Effect, so_far: Tries, failed: StepFailure
    ) -> Any | None:
        so_far.losses = 0
        if effect is Effect.IRREVERSIBLE and failed.timed_out:
            return self._cut_off(step, path, Interrupted(reason="it did not answer in time"))
        if not failed.again:
            self._walk.journal.add(path, Status.FAILED, error=failed.failure)
            raise StepFailedError(path, failed.failure)
        so_far.uncertain = so_far.uncertain or failed.started
        await self._back_off(path, effect, so_far, failed)
        return None

    def _cut_off(self, step: Step[Any, Any], path: str, value: Interrupted) -> Interrupted:
        self._walk.record(path, Status.INTERRUPTED, value.model_dump_json().encode())
        return interrupted(step, path, value)

    # Waits

    async def _back_off(self, path: str, effect: Effect, so_far: Tries, failed: StepFailure) -> None:
        delay = max(workflow.random().uniform(0, failed.bound_s), failed.retry_after_s)
        if delay <= HOLD_S:
            await self._hold(delay, effect=effect)
            return
        due = self._walk.now() + timedelta(seconds=delay)
        for n in range(so_far.waits + 1, so_far.tries + 1):
            error = failed.failure if n == so_far.tries else None
            self._walk.journal.add(f"{path}~{n}", Status.RETRY, f'"{due.isoformat()}"'.encode(), error=error)
        so_far.waits = so_far.tries
        await self._walk.wait(_nothing, until=due)

    async def _hold(self, seconds: float, *, effect: Effect | None) -> None:
        """Wait between two tries. An irreversible step that has its intent goes on to its end, also when the run is asked to stop."""
        if effect is not Effect.IRREVERSIBLE:
            await self._walk.hold(seconds)
            return
        with self._walk.busy():
            await workflow.sleep(seconds)

    async def _answered(self, path: str, end: StepEnd, so_far: Tries) -> None:
        """Wait for the answer to what the step has asked, the next one if the last did not fit."""
        walk, number = self._walk, end.number
        if end.kind == "refused":
            refused = so_far.refusals.get(number, 0)
            walk.journal.note(path, refusal_name(number, refused), end.why)
            so_far.refusals[number] = refused + 1
            walk.mailbox.use(so_far.used[number:])
            del so_far.answers[number:], so_far.used[number:]
        else:
            walk.journal.note(path, question_name(number), end.question)
            so_far.asked = number + 1
        key = answer_key(path, number, so_far.refusals.get(number, 0))
        signal = await walk.wait(lambda: walk.mailbox.first(lambda each: each.dedup_key == key))
        assert signal is not None
        walk.mailbox.hold(signal)
        so_far.answers.append(signal.payload)
        so_far.used.append(signal.seq)
        so_far.losses = 0
        so_far.recovered = False
        so_far.again()

    def _give_back(self, path: str) -> None:
        self._walk.mailbox.give_back(self._taken.pop(path, []))


def _nothing() -> None:
    return None
