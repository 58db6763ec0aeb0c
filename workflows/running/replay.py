"""Replay: a recorded run walked again over its records alone. Nothing runs, nothing is written; what the walk saw is the answer."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic_core import from_json

from workflows.definition.context import StepContext
from workflows.definition.effects import Effect
from workflows.definition.graph import Loop, WaitFor, Workflow
from workflows.definition.state import State
from workflows.definition.step import Step
from workflows.errors import Bailed, ControlFlow, DivergedError, StepFailedError, Suspended
from workflows.pubsub.base import Event
from workflows.running.interpreter import Interpreter
from workflows.storage.base import Record, RunRow, RunState, Status
from workflows.values import Interrupted, decode, encode, fits

RAISE = "Its shape changed: give the changed graph another version"
MARKS = "!~@"
"""What begins the part of a path that tells of its step, and is no step of its own."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay saw: the input that reached each step, as JSON; how far it came; the run's state there.

    `output` is the run's if it came to its end, `stopped` why it did not; `missing` are the places it came to that have no record.
    """

    inputs: dict[str, bytes]
    state: State
    output: Any = None
    stopped: BaseException | None = None
    missing: tuple[str, ...] = ()


async def replay(workflow: Workflow[Any, Any], run: RunRow, records: Iterable[Record]) -> Replayed:
    """Walk `workflow` over what was recorded of `run`, as far as that goes. Raises DivergedError if records do not fit the graph."""
    effects = ReplayEffects(run, {record.path: record for record in records}, workflow.state)
    output, stopped = None, None
    try:
        value = decode(run.input, workflow.input, where=f"the input of {workflow.id}")
        output = await Interpreter(effects).walk(workflow, value)
    except (Exception, ControlFlow) as end:
        stopped = end
    effects.check_fit(workflow, stopped)
    return Replayed(effects.inputs, effects.state, output, stopped, tuple(effects.missing))


async def verify(workflow: Workflow[Any, Any], run: RunRow, records: Iterable[Record]) -> Replayed:
    """Replay a run that has ended, with all its records, to the end it came to. Raises DivergedError if `workflow` comes to another one."""
    seen = await replay(workflow, run, records)
    if (how := _differs(seen, workflow, run)) is not None:
        raise DivergedError(f"workflow {workflow.id!r} version {workflow.version!r} {how}. {RAISE}") from seen.stopped
    return seen


def _differs(seen: Replayed, workflow: Workflow[Any, Any], run: RunRow) -> str | None:
    """How the end of a replay is another one than that of the run, if it is."""
    if run.state is RunState.FAILED and (seen.stopped is None or isinstance(seen.stopped, ControlFlow)):
        return f"comes to {sorted(seen.missing) or 'its end'}, where a run of that version failed with {run.error}"
    if run.state is not RunState.DONE:
        return None
    if seen.missing:
        return f"comes to {sorted(seen.missing)}, where a run of that version that is done has no record"
    if seen.stopped is not None:
        return f"does not come to the end of a run that is done: {seen.stopped}"
    output = encode(seen.output, workflow.output, where=f"the output of {workflow.id}")
    if from_json(output) != from_json(run.output or b"null"):
        return f"gives {output.decode()}, where a run of that version gave {(run.output or b'null').decode()}"
    return None


class Nobody:
    """Carries out a pure step that must not ask for anything: one that does was not finished, so the walk stops there."""

    cancel_requested = False

    def __init__(self, run: RunRow) -> None:
        self.run = run

    async def publish(self, event: Event) -> None:
        """Whoever watched has been told."""

    def __getattr__(self, name: str) -> Any:
        raise Suspended


@dataclass(slots=True)
class ReplayEffects:
    """Implements `effects.Effects` on records. Where there is none the walk stops, as a run that waits does.

    A pure step that looked at nothing has no record, and is computed again.
    """

    run: RunRow
    records: dict[str, Record]
    schema: Any = None
    inputs: dict[str, bytes] = field(default_factory=dict)
    state: State = field(init=False)
    missing: list[str] = field(default_factory=list)
    """Places the walk came to that have no record."""
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.state = State(self.schema)

    def state_at(self, path: str) -> State:
        record = self.records.get(f"{path}@state")
        return self.state if record is None else self.state.like(from_json(record.output or b"{}"))

    async def step(self, step: Step[Any, Any], path: str, value: Any) -> Any:
        self.inputs[path] = encode(value, step.input, where=f"the input of {path}")
        if path not in self.records and step.effect_of(value) is Effect.PURE:
            return await step(value, StepContext(Nobody(self.run), path, 1))
        record = self._record(path)
        if (changes := self.records.get(f"{path}!state")) is not None:
            self.state.apply(from_json(changes.output or b"{}"), seq=changes.seq)
        if record.status is Status.FAILED:
            raise StepFailedError(path, record.error or {})
        if record.status is Status.BAILED:
            raise Bailed(record.output or b"null")
        if record.status is Status.INTERRUPTED and not fits(Interrupted, step.output):
            raise StepFailedError(path, {"type": "Interrupted", "message": "outcome unknown", "causes": []})
        output_type = Interrupted if record.status is Status.INTERRUPTED else step.output
        return decode(record.output, output_type, where=f"the record of {path}")

    def _record(self, path: str) -> Record:
        self._seen.add(path)
        if path not in self.records:
            self.missing.append(path)
            raise Suspended
        return self.records[path]

    async def sleep(self, path: str, wake_at: Callable[[datetime], datetime]) -> None:
        self._record(path)

    async def wait_for(self, path: str, wait: WaitFor) -> Any:
        record = self._record(path)
        return wait.otherwise if record.status is Status.SKIPPED else decode(record.output, wait.schema, where=path)

    def begun(self, path: str) -> bool:
        return path in self.records

    def given(self, node: Any, path: str, value: Any) -> Any:
        override = self.records.get(f"{path}!input")
        return value if override is None else decode(override.output, node.input, where=f"the input of {path}")

    def nested(self, workflow: Workflow[Any, Any], path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def arms(self) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(_nothing)  # an arm that waits lets go, and the others go on without it

    async def arm_done(self, *, left: int) -> None:
        return None

    def loop_begun(self, path: str, loop: Loop) -> tuple[int, Any] | None:
        return None

    def loop_goes_on(self, path: str, loop: Loop, count: int, value: Any) -> None:
        return None

    async def progress(self, path: str, *, done: int, total: int) -> None:
        return None

    def check_fit(self, workflow: Workflow[Any, Any], stopped: BaseException | None) -> None:
        """Raise DivergedError if a step was recorded at a path that the graph did not come to."""
        strangers = sorted(
            path
            for path in self.records
            if not path.startswith("$") and not set(path) & set(MARKS) and path not in self._seen
        )
        if strangers:
            why = "" if stopped is None or isinstance(stopped, ControlFlow) else f" (it stops there: {stopped})"
            raise DivergedError(
                f"workflow {workflow.id!r} version {workflow.version!r} does not come to {strangers}{why}, which a run of that version"
                f" recorded. {RAISE}"
            ) from stopped


def _nothing() -> None:
    return None
