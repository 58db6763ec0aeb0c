"""The effects of a walk in Temporal: steps are activities, sleeps are timers, what a run waits for comes by signals."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import to_json

from workflows.definition.graph import Loop, WaitFor, Workflow
from workflows.definition.state import State
from workflows.definition.step import Step
from workflows.errors import InputError
from workflows.storage.base import Status
from workflows.temporal.messages import Taken
from workflows.temporal.steps import Steps
from workflows.temporal.walk import Walk, arms
from workflows.values import decode


class TemporalEffects:
    """Implements `effects.Effects` in a Temporal workflow. The walk is one coroutine: it suspends by waiting, not by letting go."""

    def __init__(self, walk: Walk, steps: Steps) -> None:
        self._walk = walk
        self._steps = steps

    @property
    def state(self) -> State:
        return self._walk.state

    def state_at(self, path: str) -> State:
        return self._walk.state  # a history is replayed in the order in which it happened, so this is what it was

    async def step(self, step: Step[Any, Any], path: str, value: Any) -> Any:
        return await self._steps.run(step, path, value)

    async def sleep(self, path: str, wake_at: Callable[[datetime], datetime]) -> None:
        await self._walk.wait(_nothing, until=self._walk.deadline(path, wake_at))
        self._walk.record(path, Status.OK)

    async def wait_for(self, path: str, wait: WaitFor) -> Any:
        until = None
        while True:
            self._walk.boundary()
            signal = self._walk.mailbox.first(lambda each: each.name == wait.name)
            if signal is None:
                if wait.timeout_s is not None:
                    until = self._walk.deadline(path, lambda now: now + timedelta(seconds=wait.timeout_s or 0))
                signal = await self._walk.wait(
                    lambda: self._walk.mailbox.first(lambda each: each.name == wait.name), until=until
                )
            if signal is None:
                self._walk.record(path, Status.SKIPPED)
                return wait.otherwise
            self._walk.mailbox.hold(signal)
            try:
                output = decode(to_json(signal.payload), wait.schema, where=f"the signal {wait.name!r} at {path}")
            except InputError as error:  # a stranger's mistake must not fail the run
                self._refuse(path, signal, str(error))
                continue
            self._walk.mailbox.use([signal.seq])
            self._walk.record(path, Status.OK, to_json(signal.payload))
            return output

    def _refuse(self, path: str, signal: Taken, why: str) -> None:
        self._walk.journal.note(path, f"refused#{signal.seq}", why)
        self._walk.mailbox.use([signal.seq])

    def begun(self, path: str) -> bool:
        return False  # there is one walk, which its history repeats

    def given(self, node: Any, path: str, value: Any) -> Any:
        return value

    def nested(self, workflow: Workflow[Any, Any], path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def arms(self) -> AbstractContextManager[Callable[[], None]]:
        return arms()

    async def arm_done(self, *, left: int) -> None:
        return None

    def loop_begun(self, path: str, loop: Loop) -> tuple[int, Any] | None:
        return None

    def loop_goes_on(self, path: str, loop: Loop, count: int, value: Any) -> None:
        return None

    async def progress(self, path: str, *, done: int, total: int) -> None:
        self._walk.hint("progress", path=path, done=done, total=total)


def _nothing() -> None:
    return None
