"""One claimed run: its records, its inbox, its recorder. The interpreter walks the graph on it; steps see it through StepContext."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from workflows.errors import Cancelled, Draining, Suspended
from workflows.pubsub.base import Event, PubSub, PubSubUnavailableError
from workflows.recorder import Recorder
from workflows.storage.base import NewRun, Record, RunRow, Signal, Status, Store
from workflows.storage.schema import Write
from workflows.values import check, decode, encode

if TYPE_CHECKING:
    from workflows.context import StepContext
    from workflows.graph import Workflow


class Suspension(Suspended):
    """Carries when to wake at the latest (None: only on a signal), and how far into the inbox its arm had looked (None: it waits for
    no signal). Another arm may have learned of later signals since; the run may sleep only if there were none.
    """

    def __init__(self, until: datetime | None = None, *, seen: int | None = None) -> None:
        super().__init__(until)
        self.until = until
        self.seen = seen


class Execution:
    """The state of one claim of one run. `draining()` says that the worker is leaving."""

    def __init__(
        self,
        store: Store,
        pubsub: PubSub,
        run: RunRow,
        records: Iterable[Record],
        *,
        draining: Callable[[], bool],
        abandoned: Callable[[], bool],
    ) -> None:
        self.store = store
        self.run = run
        self.records: dict[str, Record] = {}
        self.recorder = Recorder(store, run, abandoned=abandoned)
        self.interrupt = asyncio.Event()
        """Set when somebody asked the run to stop while a step of it runs."""
        self.backwards = False
        """Whether the run has failed for good, so that it only undoes what it did."""
        self.remember(records)
        self._pubsub = pubsub
        self._draining = draining
        self._inbox: list[Signal] = []
        self._inbox_loaded = 0
        self._taken: set[int] = set()

    def remember(self, records: Iterable[Record]) -> None:
        """Take up what earlier claims recorded."""
        self.records.update((record.path, record) for record in records)
        self.backwards = any(record.status is Status.FAILED for record in self.records.values())

    @property
    def cancel_requested(self) -> bool:
        return self.recorder.cancel_requested or self.interrupt.is_set()

    async def boundary(self) -> None:
        """Between two steps: commit what has to be, and stop here if the run was cancelled or the worker is leaving.

        A run that goes backwards is past cancelling: what it has done is being undone.
        """
        await self.recorder.flush()
        if self.cancel_requested and not self.backwards:
            raise Cancelled
        if self._draining():
            raise Draining

    def record(self, record: Record, ctx: "StepContext | None" = None, *, durable: bool = True) -> None:
        """Buffer a record with what its step attached to it."""
        self.records[record.path] = record
        if ctx is None:
            self.recorder.add(record, durable=durable)
        else:
            claimed = ctx.claimed
            self.recorder.add(
                record, durable=durable, consumed=claimed.consumed, writes=claimed.writes, children=claimed.children
            )

    # Signals

    async def take_signals(self, name: str | None) -> list[Signal]:
        """The pending signals of `name` that no other arm has taken, in order. Commits what is buffered first."""
        await self.recorder.flush()
        await self._look()
        taken = [each for each in self._inbox if each.seq not in self._taken and self._meant(each, name)]
        self._taken.update(each.seq for each in taken)
        return taken

    @staticmethod
    def _meant(signal: Signal, name: str | None) -> bool:
        return signal.name == name if name is not None else not signal.name.startswith("$")

    async def take_first(self, name: str) -> tuple[Signal | None, int]:
        """The first pending signal of `name`, or None; and how far into the inbox this look went."""
        await self._look()
        seen = self._inbox_loaded
        for each in self._inbox:
            if each.seq not in self._taken and each.name == name:
                self._taken.add(each.seq)
                return each, seen
        return None, seen

    def give_back(self, numbers: Iterable[int]) -> None:
        """Signals that a failed try had taken are pending again."""
        self._taken.difference_update(numbers)

    async def _look(self) -> None:
        if self.recorder.inbox_seq > self._inbox_loaded:
            seen = self.recorder.inbox_seq
            self._inbox = await self.store.inbox(self.run.run_id)
            self._inbox_loaded = max(seen, *(each.seq for each in self._inbox), 0)

    async def unread(self) -> bool:
        """Whether signals are left that no step has used; only a look at memory when none ever came."""
        await self._look()
        return any(each.seq not in self._taken and not each.name.startswith("$") for each in self._inbox)

    @property
    def inbox_seen(self) -> int:
        return max(self._inbox_loaded, 0) or self.recorder.inbox_seq

    def rewind(self, row: RunRow) -> None:
        """Before the graph is walked again on the same claim: signals of steps that did not finish are pending again."""
        self.recorder.inbox_seq = row.inbox_seq
        self.recorder.cancel_requested = row.cancel_requested
        self._inbox_loaded = 0
        self._taken.clear()

    async def await_resume(self, ctx: "StepContext", payload: Any, resume: Any) -> Any:
        """The value somebody resumed the step at `ctx.path` with; suspends while there is none."""
        name = f"$resume:{ctx.path}"
        signal, seen = await self.take_first(name)
        if signal is not None:
            ctx.claimed.consumed.append(signal.seq)
            return decode(signal.payload, resume, where=f"the resume value of {ctx.path}")
        if self.noted(ctx.path, "suspended") is None:
            await self.note(ctx.path, "suspended", payload, ())
        raise Suspension(seen=seen)

    # Notes

    async def note(self, path: str, name: str, value: Any, writes: Sequence[Write]) -> None:
        """Commit a note at `path!name` now, unless it is there already."""
        if f"{path}!{name}" in self.records:
            return
        record = Record(f"{path}!{name}", Status.NOTE, to_json(value), started_at=None)
        self.records[record.path] = record
        self.recorder.add(record, writes=writes)
        await self.recorder.flush()

    def noted(self, path: str, name: str) -> Any:
        record = self.records.get(f"{path}!{name}")
        return None if record is None or record.output is None else from_json(record.output)

    def notes(self, path: str, prefix: str) -> dict[str, Any]:
        start = f"{path}!{prefix}"
        found = [
            record for record in self.records.values() if record.path.startswith(start) and record.status is Status.NOTE
        ]
        return {record.path.removeprefix(f"{path}!"): from_json(record.output or b"null") for record in found}

    # Children and events

    def child(self, workflow: "Workflow[Any, Any]", value: Any, *, key: str | None, run_id: str, path: str) -> NewRun:
        """A background run of this run's tenant and trace."""
        data = encode(
            check(value, workflow.input, where=f"the input of {workflow.id}"), workflow.input, where=workflow.id
        )
        return NewRun(
            run_id, self.run.tenant, workflow.id, workflow.version, key, input=data, trace_id=self.run.trace_id,
            parent_id=self.run.run_id, parent_path=path, max_attempts=workflow.max_attempts,
        )  # fmt: skip

    async def publish(self, event: Event) -> None:
        """Publish on the run's topic; a bus that is away loses only liveness."""
        try:
            await self._pubsub.publish(f"{self.run.tenant}:run:{self.run.run_id}", event)
        except PubSubUnavailableError:
            return
