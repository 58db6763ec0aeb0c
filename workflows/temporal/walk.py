"""One run as its workflow holds it: what it has recorded and received, whether it is asked to stop, and what it waits for."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pydantic_core import to_json
from temporalio import workflow

from workflows.definition.authored import walked_workflow
from workflows.definition.graph import Workflow
from workflows.definition.spec import read_spec
from workflows.definition.spec.models import Bounds
from workflows.definition.spec.types import write_type
from workflows.definition.state import State
from workflows.errors import Cancelled, Suspended
from workflows.pubsub.base import Event
from workflows.pubsub.hints import run_topic
from workflows.storage.base import Record, RunState, Status
from workflows.temporal.ids import fleet_of, run_id_of
from workflows.temporal.journal import Journal, Mailbox
from workflows.temporal.messages import Begin
from workflows.temporal.outside import outside
from workflows.temporal.payloads import MAX_BYTES
from workflows.values import adapter, decode

T = TypeVar("T")
ANY = Bounds(bytes=MAX_BYTES, entries=10_000, nodes=100_000, nesting=50)


@dataclass(slots=True)
class Arms:
    """Arms that run at once. Once one of them has ended without an output, none of them may wait any more."""

    around: "Arms | None"
    given_up: bool = False

    def give_up(self) -> None:
        """One of them has ended without an output."""
        self.given_up = True

    @property
    def over(self) -> bool:
        """Whether waiting would be in vain."""
        return self.given_up or (self.around is not None and self.around.over)


_arms: ContextVar[Arms | None] = ContextVar("arms", default=None)


@contextmanager
def arms() -> Iterator[Callable[[], None]]:
    """Around arms that run at once; gives what to call when one of them ended without an output."""
    around = _arms.get()
    inner = Arms(around)
    _arms.set(inner)
    try:
        yield inner.give_up
    finally:
        _arms.set(around)  # no token: a walk that a leaving process drops is closed in a context of its own


class Walk:
    """The state of one run. Times are the workflow's own, moved by an offset that only tests set."""

    def __init__(self, begin: Begin) -> None:
        """Raises SpecError in a process that does not know what is named in the graph: its workflow task fails, and another may know."""
        self.begin = begin
        self.run = begin.run
        self.facts = begin.run.model_copy(update={"parent": None})
        """What steps and callbacks are told of the run."""
        self.run_id = run_id_of(begin.run, workflow.info().run_id)
        self.fleet = fleet_of(workflow.info().workflow_id)
        self.created_at = workflow.info().start_time
        self.journal = Journal(self.now)
        self.offset = timedelta(seconds=begin.offset_s)
        self.mailbox = Mailbox(self.now)
        for each in begin.inbox:
            self.mailbox.accept(each)
        self.graph = read_spec(begin.spec, outside().registry, bounds=ANY)
        self.references = self.graph.references or {}
        self.names = self.references.get(f"/{self.graph.entries[0].id}#catalogue")
        self._walked: Workflow[Any, Any] | None = None
        self.state = State(self.graph.state)
        self.dispatched: set[str] = set()
        """The keys of the signals that tell of its background runs' ends."""
        self.cancelled = False
        self.backwards = False
        """Whether the run has failed for good, so that it only undoes what it did."""
        self._busy = 0
        self._waiting = 0
        self._interruptible: dict[str, workflow.ActivityHandle[Any]] = {}

    @property
    def walked(self) -> Workflow[Any, Any]:
        """The workflow whose steps the run has: the graph, or what its value defines. Raises SpecError."""
        if self._walked is None:
            self._walked = walked_workflow(self.graph, to_json(self.begin.value))
        return self._walked

    def state_type(self) -> Any:
        """The type of the run's state as data, or None."""
        walked = self.walked
        if walked.state is None:
            return None
        return write_type(walked.state, lambda: (walked.references or {})["#state"])

    # Time

    def now(self) -> datetime:
        """The run's clock."""
        return workflow.now() + self.offset

    def deadline(self, path: str, at: Callable[[datetime], datetime]) -> datetime:
        """The time recorded at `path@until`; recorded now if there is none."""
        record = self.journal.records.get(f"{path}@until")
        if record is None:
            data = adapter(datetime).dump_json(at(self.now()))
            record = self.journal.add(f"{path}@until", Status.UNTIL, data)
        moment: datetime = decode(record.output, datetime, where=record.path)
        return moment

    # Waiting

    async def wait(self, peek: Callable[[], T | None], *, until: datetime | None = None) -> T | None:
        """What `peek` finds once it finds something; None once it is `until`. `peek` changes nothing.

        Raises Cancelled, and Suspended where an arm that runs at once has ended without an output: the entry is over for all of them.
        """
        self._waiting += 1
        try:
            return await self._until(peek, until, _arms.get())
        finally:
            self._waiting -= 1

    async def hold(self, seconds: float) -> None:
        """Wait a little as a part of what is carried out. Raises Cancelled."""
        with self.busy():
            await self._until(lambda: None, self.now() + timedelta(seconds=seconds), None)

    async def _until(self, peek: Callable[[], T | None], until: datetime | None, scope: Arms | None) -> T | None:
        def due() -> bool:
            return until is not None and self.now() >= until

        def over() -> bool:
            return self._stopping or peek() is not None or due() or (scope is not None and scope.over)

        while True:
            self.boundary()
            if (found := peek()) is not None or due():
                return found
            if scope is not None and scope.over:
                raise Suspended(until)
            left = None if until is None else (until - self.now()).total_seconds()
            try:
                await workflow.wait_condition(over, timeout=left)
            except TimeoutError:
                continue

    @staticmethod
    def in_vain() -> bool:
        """Whether an arm that runs at once has ended without an output: what was lost need not be begun again."""
        scope = _arms.get()
        return scope is not None and scope.over

    @property
    def _stopping(self) -> bool:
        return self.cancelled and not self.backwards

    def boundary(self) -> None:
        """Stop here if the run was asked to. A run that goes backwards is past cancelling. Raises Cancelled."""
        if self._stopping:
            raise Cancelled

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Something is being carried out: the run is not suspended, whatever else waits."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    @property
    def standing(self) -> RunState:
        """Whether anything is carried out now."""
        return RunState.SUSPENDED if self._waiting and not self._busy else RunState.RUNNING

    # Carrying out

    def cancel(self) -> None:
        """Somebody asked the run to stop. What would be run again anyway is stopped in its middle; the activity decides."""
        self.cancelled = True
        if not self.backwards:
            for handle in list(self._interruptible.values()):
                handle.cancel()

    async def carried_out(self, path: str, handle: "workflow.ActivityHandle[T]", *, interruptible: bool) -> T:
        """The result of an activity. An `interruptible` one is asked to stop when the run is; its result may be lost then, even if it had
        one: the SDK gives a cancelled caller nothing. Raises ActivityError, Cancelled.
        """
        if interruptible and not self.backwards:
            self._interruptible[path] = handle
        try:
            with self.busy():
                return await handle
        except asyncio.CancelledError:
            self.boundary()  # it was cancelled before it began
            raise
        finally:
            self._interruptible.pop(path, None)

    # Telling

    def record(self, path: str, status: Status, output: bytes | None = None) -> Record:
        """Record something at `path`."""
        return self.journal.add(path, status, output)

    def hint(self, type_: str, **data: Any) -> None:
        """Publish an event of this run, best effort: a replay says nothing again."""
        if not workflow.unsafe.is_replaying():
            outside().hint(
                self.run_id,
                run_topic(self.run.tenant, self.run_id, self.run.key),
                Event(type_, {"run_id": self.run_id, **data}),
            )
