"""Stands beside a store and looks at each write: what changed a run was done by its owner, and each owner has a fence of its own."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.invariants import InvariantViolation
from workflows.storage import Store
from workflows.storage.base import EndOutcome, RunRow, StepOutcome

T = TypeVar("T")


class Witness:
    """A store that is another one, watched. Its operations must be atomic by themselves, as those of memory are."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._fences: dict[str, int] = {}
        self._seen: list[str] = []
        self.claimed: Callable[[str], None] = lambda _: None
        """Called with the id of each run that somebody has just claimed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def testify(self) -> None:
        """Raise InvariantViolation if anything was seen."""
        if self._seen:
            raise InvariantViolation(self._seen)

    async def claim(self, worker_id: str, **options: Any) -> list[RunRow]:
        rows = await self._store.claim(worker_id, **options)
        for row in rows:
            if row.fence <= self._fences.get(row.run_id, 0):
                self._seen.append(
                    f"run {row.run_id} was claimed under fence {row.fence} after {self._fences[row.run_id]}"
                )
            self._fences[row.run_id] = row.fence
            self.claimed(row.run_id)
        return rows

    async def step(self, run_id: str, fence: int, *arguments: Any, **options: Any) -> StepOutcome:
        return await self._under(self._store.step, run_id, fence, *arguments, **options)

    async def suspend(self, run_id: str, fence: int, *arguments: Any, **options: Any) -> bool:
        return await self._under(self._store.suspend, run_id, fence, *arguments, **options)

    async def end(self, run_id: str, fence: int, *arguments: Any, **options: Any) -> EndOutcome:
        return await self._under(self._store.end, run_id, fence, *arguments, **options)

    async def _under(
        self, operation: Callable[..., Awaitable[T]], run_id: str, fence: int, *arguments: Any, **options: Any
    ) -> T:
        before = await self._store.run(run_id)
        outcome = await operation(run_id, fence, *arguments, **options)
        after = await self._store.run(run_id)
        if before is not None and after is not None and before.fence != fence and _standing(before) != _standing(after):
            what = getattr(operation, "__name__", "write")
            self._seen.append(f"{what} under fence {fence} changed run {run_id}, which is at fence {before.fence}")
        return outcome


def _standing(run: RunRow) -> tuple[object, ...]:
    return run.state, run.step_seq, run.owner, run.available_at
