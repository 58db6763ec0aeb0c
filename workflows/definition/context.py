"""What a running step may know and do besides returning its value."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, overload
from uuid import UUID, uuid5

import structlog

from workflows.definition.state import State
from workflows.errors import Bailed, InputError
from workflows.ids import NAMESPACE
from workflows.pubsub.base import Event
from workflows.storage.base import NewRun, RunRow, Signal
from workflows.storage.schema import Write
from workflows.tracing.base import Span
from workflows.tracing.tracer import current_span
from workflows.values import check_ids, encode_plain

if TYPE_CHECKING:
    from workflows.definition.graph import Workflow

T = TypeVar("T")
OWN_NOTES = frozenset(("intent", "state", "input", "fork", "reused", "permit", "undo", "suspended", "refused"))


class Host(Protocol):
    """What a step's context asks of whatever carries the step out."""

    @property
    def run(self) -> RunRow: ...
    @property
    def state(self) -> State: ...
    @property
    def cancel_requested(self) -> bool: ...
    async def now(self) -> datetime: ...
    async def publish(self, event: Event) -> None: ...
    async def take_signals(self, name: str | None) -> list[Signal]: ...
    def check_writes(self) -> None: ...
    async def note(self, path: str, name: str, value: Any, writes: Sequence[Write]) -> None: ...
    def noted(self, path: str, name: str) -> Any: ...
    def notes(self, path: str, prefix: str) -> dict[str, Any]: ...
    def child(self, workflow: "Workflow[Any, Any]", value: Any, *, run_id: str, path: str, queue: str) -> NewRun: ...
    async def answer(self, ctx: "StepContext", payload: Any, resume: Any) -> Any: ...


class Signals:
    """The run's signals, as one step sees them."""

    def __init__(self, host: Host, attached: "Attached") -> None:
        self._host = host
        self._attached = attached

    async def drain(self, name: str | None = None) -> list[Signal]:
        """Take the pending signals (of one name), in order of arrival. They are consumed in the same commit as the step's record.

        What finished before is committed first, so that a signal that arrived during the step before is seen.
        """
        self._attached.observed = True
        taken = await self._host.take_signals(name)
        self._attached.consumed.extend(signal.seq for signal in taken)
        return taken


class Attached:
    """What a step has attached to its own record: signals used, rows, children, changes of the run's state.

    `observed`: it has looked at something that another try might find changed, or attached anything. A pure step that has not needs no
    record: the same value gives the same again.
    """

    def __init__(self) -> None:
        self.observed = False
        self.consumed: list[int] = []
        self.writes: list[Write] = []
        self.children: list[NewRun] = []
        self.state: dict[str, Any] = {}
        self.suspensions = 0
        self.asking = False


class StepContext:
    """One try of one step. Ids and randomness in it agree on every try; `now` and `started_at` are of this one."""

    def __init__(
        self,
        host: Host,
        path: str,
        attempt: int,
        *,
        intent_at: datetime | None = None,
        recovered: bool = False,
    ) -> None:
        self._host = host
        self._intent_at = intent_at
        self._recovered = recovered
        self._started_at = datetime.now(UTC)
        self._attempt = attempt
        self.path = path
        run = host.run
        self.run_id = run.run_id
        self.tenant = run.tenant
        self.key = run.key
        self.attached = Attached()
        self.signals = Signals(host, self.attached)

    # What another try may find changed: a pure step that looks at it is recorded

    @property
    def fence(self) -> int:
        """The fence of this claim of the run."""
        self.attached.observed = True
        return self._host.run.fence

    @property
    def attempt(self) -> int:
        """The number of this try, from 1."""
        self.attached.observed = True
        return self._attempt

    @property
    def started_at(self) -> datetime:
        """When this try began, by this process's wall clock, aware UTC."""
        self.attached.observed = True
        return self._started_at

    @property
    def intent_at(self) -> datetime | None:
        """When the first intent of a RECONCILE or IRREVERSIBLE step was committed (that process's wall clock), else None."""
        self.attached.observed = True
        return self._intent_at

    @property
    def recovered(self) -> bool:
        """Whether an earlier claim of the run had started this step and did not finish it."""
        self.attached.observed = True
        return self._recovered

    @property
    def began(self) -> datetime:
        """`started_at`, for the record."""
        return self._started_at

    @property
    def log(self) -> Any:
        """The log, with the run's ids bound."""
        return structlog.get_logger()

    @property
    def span(self) -> Span:
        """The open span around this code: the step's, or one that was opened below it. `attributes` takes JSON-able values, which are redacted
        before they go anywhere. A step that is called alone, as in a test, has one that goes nowhere.
        """
        nowhere = Span(self.path, "step", self.tenant, self.run_id, self.run_id, None, self._started_at, "")
        return current_span() or nowhere

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
        """The store's clock, aware UTC: asked once a second at most, and carried on by this process's own between."""
        self.attached.observed = True
        return await self._host.now()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the run to stop."""
        self.attached.observed = True
        return self._host.cancel_requested

    @property
    def state(self) -> Any:
        """The run's state: an instance of the workflow's `state` type, or a dict where it declares none. A copy; `set_state` changes it."""
        self.attached.observed = True
        return self._host.state.model()

    def set_state(self, **changes: Any) -> None:
        """Set values of the run's state, in the commit of this step's record. Raises InputError if they do not fit the `state` type.

        Steps that come after see them; so do those that run at once, from when this one has ended.
        """
        self.attached.observed = True
        self.attached.state.update(self._host.state.checked({**self.attached.state, **changes}))

    async def emit(self, type_: str, **data: Any) -> None:
        """Publish a live event of this run. Nobody may depend on it: a lost bus loses it."""
        await self._host.publish(Event(type_, {"run_id": self.run_id, "path": self.path, **data}))

    def write(self, *writes: Write) -> None:
        """Rows of upper floors that ride in the commit of this step's record. Raises UnsupportedError where runs are in no store."""
        self._host.check_writes()
        self.attached.observed = True
        self.attached.writes.extend(writes)

    async def note(self, name: str, value: Any, *, writes: Sequence[Write] = ()) -> None:
        """Commit a fact of this step at once, under the fence; later tries read it with `noted`. `value` is JSON-able.

        The first value under a name stays: noting it again, as a later try does, changes nothing. Raises InputError for a name under
        which the engine keeps facts of its own, or that can be no key in storage.
        """
        if name.partition("#")[0] in OWN_NOTES:
            raise InputError(f"step {self.path} can't note {name!r}: the engine keeps facts of its own under that name")
        check_ids(name)
        self.attached.observed = True
        await self._host.note(self.path, name, value, writes)

    def noted(self, name: str) -> Any:
        """The value of a note an earlier try (or this one) committed, or None."""
        self.attached.observed = True
        return self._host.noted(self.path, name)

    def notes(self, prefix: str) -> dict[str, Any]:
        """All notes of this step whose names begin with `prefix`, by name, in the order of those names' first records."""
        self.attached.observed = True
        return self._host.notes(self.path, prefix)

    def dispatch(
        self,
        workflow: "Workflow[Any, Any]",
        value: Any,
        *,
        name: str = "",
        queue: str = "tasks",
    ) -> str:
        """Start a background run on `queue` in the commit of this step's record. Its end, by any route, signals this run as "task" while it
        lives, and after that its key, if it has one.

        Returns its id, by which `Engine.run` gives its result, events and state. Several of one step need a `name` each.
        """
        self.attached.observed = True
        run_id = str(self.uuid(f"child:{name}"))
        self.attached.children.append(self._host.child(workflow, value, run_id=run_id, path=self.path, queue=queue))
        return run_id

    def bail(self, value: Any) -> NoReturn:
        """Finish the workflow this step belongs to, with `value` as its output: a nested one gives it to the workflow around it.

        It is recorded as the step's end; what the step attached is committed, and it is not compensated later.
        """
        raise Bailed(encode_plain(value, where=f"what {self.path} bails out with"))

    @overload
    async def suspend(self, payload: Any, *, resume: type[T]) -> T: ...
    @overload
    async def suspend(self, payload: Any, *, resume: Any) -> Any: ...
    async def suspend(self, payload: Any, *, resume: Any) -> Any:
        """Let go of the worker until `Run.resume(value)`; returns that value, checked against `resume`, when the step is entered again.

        The step runs again from its start, and each suspension in it gives its answer again: do what must happen once before the first
        or after the last. An answer that does not fit `resume` is refused and the question stays open.
        """
        self.attached.observed = True
        return await self._host.answer(self, payload, resume)
