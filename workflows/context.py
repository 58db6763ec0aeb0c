"""What a running step may know and do besides returning its value."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, overload
from uuid import UUID, uuid5

import structlog

from workflows.pubsub.base import Event
from workflows.storage.base import NewRun, Signal
from workflows.storage.schema import Write

if TYPE_CHECKING:
    from workflows.execution import Execution
    from workflows.graph import Workflow

T = TypeVar("T")
NAMESPACE = UUID("6f1f6c1e-58e1-5b6f-9d4c-7d1f0a3e9b11")


class Inbox:
    """The run's signals, as one step sees them."""

    def __init__(self, execution: "Execution", claim: "Claimed") -> None:
        self._execution = execution
        self._claim = claim

    async def drain(self, name: str | None = None) -> list[Signal]:
        """Take the pending signals (of one name), in order of arrival. They are consumed in the same commit as the step's record.

        What finished before is committed first, so that a signal that arrived during the step before is seen.
        """
        taken = await self._execution.take_signals(name)
        self._claim.consumed.extend(signal.seq for signal in taken)
        return taken


class Claimed:
    """What a step has attached to its own record: signals used, rows, children."""

    def __init__(self) -> None:
        self.consumed: list[int] = []
        self.writes: list[Write] = []
        self.children: list[NewRun] = []


class StepContext:
    """One try of one step. Ids and randomness in it agree on every try; `now` and `started_at` are of this one."""

    def __init__(
        self,
        execution: "Execution",
        path: str,
        attempt: int,
        *,
        intent_at: datetime | None = None,
        recovered: bool = False,
    ) -> None:
        self._execution = execution
        self.intent_at = intent_at
        """When the first intent of a RECONCILE or IRREVERSIBLE step was committed (that process's wall clock), else None."""
        self.recovered = recovered
        """Whether an earlier claim of the run had started this step and did not finish it."""
        self.started_at = datetime.now(UTC)
        self.path = path
        self.attempt = attempt
        self.run_id = execution.run.run_id
        self.tenant = execution.run.tenant
        self.key = execution.run.key
        self.fence = execution.run.fence
        self.claimed = Claimed()
        self.signals = Inbox(execution, self.claimed)
        self.log = structlog.get_logger()

    @property
    def idempotency_key(self) -> str:
        """The same on every try of this step, of this run only."""
        return str(self.uuid())

    def uuid(self, name: str = "") -> UUID:
        """A UUID derived from run, path and `name`."""
        return uuid5(NAMESPACE, f"{self.run_id}/{self.path}/{name}")

    def random(self, name: str = "") -> random.Random:
        """A generator seeded by run, path and `name`."""
        return random.Random(self.uuid(name).int)  # noqa: S311 — repeatable, not secret

    async def now(self) -> datetime:
        """The store's clock, aware UTC."""
        return await self._execution.store.now()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the run to stop."""
        return self._execution.cancel_requested

    async def emit(self, type_: str, **data: Any) -> None:
        """Publish a live event of this run. Nobody may depend on it: a lost bus loses it."""
        await self._execution.publish(Event(type_, {"run_id": self.run_id, "path": self.path, **data}))

    def write(self, *writes: Write) -> None:
        """Rows of upper floors that ride in the commit of this step's record."""
        self.claimed.writes.extend(writes)

    async def note(self, name: str, value: Any, *, writes: Sequence[Write] = ()) -> None:
        """Commit a fact of this step at once, under the fence; later tries read it with `noted`. `value` is JSON-able.

        The first value under a name stays: noting it again, as a later try does, changes nothing.
        """
        await self._execution.note(self.path, name, value, writes)

    def noted(self, name: str) -> Any:
        """The value of a note an earlier try (or this one) committed, or None."""
        return self._execution.noted(self.path, name)

    def notes(self, prefix: str) -> dict[str, Any]:
        """All notes of this step whose names begin with `prefix`, by name, oldest first."""
        return self._execution.notes(self.path, prefix)

    def dispatch(self, workflow: "Workflow[Any, Any]", value: Any, *, key: str | None = None, name: str = "") -> str:
        """Start a background run in the commit of this step's record. Its end signals this run's key as "task". Returns its id."""
        child = self._execution.child(workflow, value, key=key, run_id=str(self.uuid(f"child:{name}")), path=self.path)
        self.claimed.children.append(child)
        return child.run_id

    @overload
    async def suspend(self, payload: Any, *, resume: type[T]) -> T: ...
    @overload
    async def suspend(self, payload: Any, *, resume: Any) -> Any: ...
    async def suspend(self, payload: Any, *, resume: Any) -> Any:
        """Let go of the worker until `Run.resume(value)`; returns that value, checked against `resume`, when the step is entered again."""
        return await self._execution.await_resume(self, payload, resume)
