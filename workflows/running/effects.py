"""What walking a graph does to the world, as a protocol: kept in storage, replayed from records, or carried out by Temporal."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from workflows.definition.graph import Loop, WaitFor, Workflow
from workflows.definition.state import State
from workflows.definition.step import Step


class Effects(Protocol):
    """All that walking a graph does to the world. `path` names what happens; asked again with a path, effects give the same again."""

    @property
    def state(self) -> State:
        """The run's state as of where the walk is."""
        ...

    def state_at(self, path: str) -> State:
        """The run's state as it was when the walk first came to `path`, whatever arms beside it have set since."""
        ...

    async def step(self, step: Step[Any, Any], path: str, value: Any) -> Any:
        """The output of a step, run at most as its effect allows. Raises StepFailedError, Bailed, Suspended."""
        ...

    def begun(self, path: str) -> bool:
        """Whether the step at `path` was begun before, by a walk that ended."""
        ...

    async def sleep(self, path: str, wake_at: Callable[[datetime], datetime]) -> None:
        """Return at `wake_at(now)`, asked once in the life of the run. Raises Suspended."""
        ...

    async def wait_for(self, path: str, wait: WaitFor) -> Any:
        """The payload of the next signal of that name, or `otherwise` after its time-out. Raises Suspended."""
        ...

    def given(self, node: Any, path: str, value: Any) -> Any:
        """The value a node is given: `value`, unless time travel put another in its place."""
        ...

    def nested(self, workflow: Workflow[Any, Any], path: str) -> AbstractContextManager[Any]:
        """Around the walk of a nested workflow."""
        ...

    def arms(self) -> AbstractContextManager[Callable[[], None]]:
        """Around arms that run at once. What it gives is called when one of them ended without an output: no other may wait any more."""
        ...

    async def arm_done(self, *, left: int) -> None:
        """An arm has finished and `left` others have not."""
        ...

    def loop_begun(self, path: str, loop: Loop) -> tuple[int, Any] | None:
        """How many rounds of a loop need not be walked again, and the value after the last of them."""
        ...

    def loop_goes_on(self, path: str, loop: Loop, count: int, value: Any) -> None:
        """Round `count` is over, with this value, and another one follows."""
        ...

    async def progress(self, path: str, *, done: int, total: int) -> None:
        """Tell whoever watches that `done` of `total` items are finished. Must not raise."""
        ...
