"""What is measured: something that can do whole turns on a PostgreSQL database of its own."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from workflows.storage import PostgresStore, Schema, Table
from workflows.storage.base import EndOutcome, RunState, StepBatch, StepOutcome


async def nothing() -> None:
    """Nothing is left to write."""


@dataclass(frozen=True, slots=True)
class Session:
    """An open subject. `turn` does one turn and returns when its last commit is through; `settle` writes what is still underway beside it."""

    turn: Callable[[], Awaitable[None]]
    settle: Callable[[], Awaitable[None]] = nothing


@dataclass(frozen=True, slots=True)
class Shape:
    """A turn: `rounds` times a model's answer that asks for `calls` tools at once, and then the last answer."""

    rounds: int
    calls: int

    @property
    def steps(self) -> int:
        """The commits of the minimum beside it."""
        return self.rounds * (1 + self.calls) + 1

    @property
    def short(self) -> bool:
        """Whether it is an ordinary turn and not a long one."""
        return self.rounds == 1

    def __str__(self) -> str:
        return f"turn with {self.calls} calls" if self.short else f"{self.rounds} iterations"


class Subject(Protocol):
    """`kind` says what does the turn of this shape."""

    kind: str
    shape: Shape

    @property
    def name(self) -> str:
        """Kind and shape, for people; one of its kind in a bench."""
        return f"{self.kind}, {self.shape}"

    def open(self, dsn: str, *, clients: int) -> AbstractAsyncContextManager[Session]:
        """Connect to a database that is this subject's alone, for so many turns at once."""
        ...


class WatchedStore(PostgresStore):
    """Tells when a run's last commit is through. Asking storage for it would cost what is measured."""

    def __init__(self, dsn: str, *, tables: Iterable[Schema | Table], pool_size: int) -> None:
        super().__init__(dsn, tables=tables, pool_size=pool_size)
        self._ends: defaultdict[str, asyncio.Future[RunState]] = defaultdict(asyncio.get_running_loop().create_future)

    async def ended(self, run_id: str) -> None:
        """Return when the run is done. Raises RuntimeError for any other end."""
        state = await self._ends[run_id]
        del self._ends[run_id]
        if state is not RunState.DONE:
            raise RuntimeError(f"the run {run_id} of a benchmark is {state}")

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        outcome = await super().step(run_id, fence, batch)
        if batch.done and outcome.recorded:
            self._ends[run_id].set_result(RunState.DONE)
        return outcome

    async def end(self, run_id: str, fence: int, state: RunState, **options: Any) -> EndOutcome:
        outcome = await super().end(run_id, fence, state, **options)
        if outcome.ended:
            self._ends[run_id].set_result(state)
        return outcome
