"""What a step's context asks of the activity that carries it out. What has to be known at once is an update of the run's workflow."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from pydantic_core import from_json, to_json
from temporalio.service import RPCError, RPCStatusCode

from workflows.definition.context import StepContext
from workflows.definition.graph import Workflow
from workflows.definition.state import State
from workflows.errors import ControlFlow, InputError, StaleFence, Suspended
from workflows.pubsub.base import Event, PubSub
from workflows.pubsub.hints import hint, run_topic
from workflows.running.suspension import question
from workflows.storage.base import NewRun, RunRow, RunState, Signal
from workflows.storage.schema import Write
from workflows.temporal.asking import AnyHandle, update
from workflows.temporal.limits import unsupported
from workflows.temporal.messages import Begin, ParentFacts, StepCall, Taken
from workflows.temporal.starting import Starter
from workflows.values import check, decode, encode

QUEUES = ("default", "tasks")


class Refused(ControlFlow):
    """The answer to suspension `number` does not fit."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(number, why)
        self.number = number
        self.why = why


class Asked(Suspended):
    """The step waits for the answer to suspension `number`."""

    def __init__(self, number: int, asked: dict[str, Any]) -> None:
        super().__init__()
        self.number = number
        self.question = asked


class ActivityHost:
    """Implements `context.Host` in an activity."""

    def __init__(self, call: StepCall, handle: AnyHandle, pubsub: PubSub, starter: Starter, *, state_type: Any) -> None:
        self._call = call
        self._handle = handle
        self._pubsub = pubsub
        self._starter = starter
        self.children: dict[str, Begin] = {}
        """How the background runs begin that the step has asked for, by their ids."""
        self._notes = dict(call.notes)
        self.cancel_requested = call.cancel_requested
        self.run: RunRow = call.run.row(call.run_id, RunState.RUNNING, created_at=call.created_at)
        self.state = State(state_type)
        self.state.apply(call.state)

    async def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self._call.offset_s)

    async def publish(self, event: Event) -> None:
        await hint(self._pubsub, run_topic(self.run.tenant, self.run.run_id, self.run.key), event)

    # Signals and answers

    async def take_signals(self, name: str | None) -> list[Signal]:
        found: list[Taken] = await self._update("take", [self._call.path, name], list[Taken])
        return [each.signal() for each in found]

    async def answer(self, ctx: StepContext, payload: Any, resume: Any) -> Any:
        """The answer to the next suspension; lets go while there is none that fits `resume`."""
        number, ctx.attached.suspensions = ctx.attached.suspensions, ctx.attached.suspensions + 1
        if number >= len(self._call.answers):
            raise Asked(number, question(payload, resume))
        try:
            return decode(to_json(self._call.answers[number]), resume, where=f"the answer to {ctx.path}")
        except InputError as error:
            raise Refused(number, str(error)) from None

    # Notes

    async def note(self, path: str, name: str, value: Any, writes: Sequence[Write]) -> None:
        if writes:
            self.check_writes()
        if name not in self._notes:
            text = to_json(value).decode()
            await self._update("note", [path, name, from_json(text)], type(None))
            self._notes[name] = text

    def noted(self, path: str, name: str) -> Any:
        return from_json(self._notes[name]) if name in self._notes else None

    def notes(self, path: str, prefix: str) -> dict[str, Any]:
        return {name: from_json(text) for name, text in self._notes.items() if name.startswith(prefix)}

    # What rides in a step's commit

    def check_writes(self) -> NoReturn:
        """Rows can't ride in a commit of Temporal's."""
        raise unsupported("writes")

    def child(self, workflow: Workflow[Any, Any], value: Any, *, run_id: str, path: str, queue: str) -> NewRun:
        """A background run of this run's tenant and trace. Raises NoExecutorError if this process does not know the workflow, InputError."""
        if queue not in QUEUES:
            raise unsupported("queues")
        where = f"the input of {workflow.id}"
        data = encode(check(value, workflow.input, where=where), workflow.input, where=workflow.id)
        new = NewRun(
            run_id, self.run.tenant, workflow.id, workflow.version, None, queue, input=data, trace_id=self.run.trace_id,
            parent_id=self.run.run_id, parent_path=path, max_attempts=workflow.max_attempts,
        )  # fmt: skip
        self.children[run_id] = self._told_of(self._starter.begin(new))
        return new

    def _told_of(self, child: Begin) -> Begin:
        """A background run that tells this run of its end, or the next one of its key."""
        run = self._call.run
        followed = run.key is not None and self._call.begun_by_signals
        parent = ParentFacts(key=run.key, begin=self._starter.again(run) if followed else None)
        return child.model_copy(update={"run": child.run.model_copy(update={"parent": parent})})

    async def _update(self, name: str, arguments: list[Any], result: Any) -> Any:
        """Ask the run's workflow. Raises StaleFence if it is not there any more: nobody waits for this step."""
        try:
            return await update(self._handle, name, arguments, result=result)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise StaleFence(f"run {self.run.run_id} has ended while its step {self._call.path} ran") from error
            raise
