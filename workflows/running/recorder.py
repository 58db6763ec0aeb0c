"""The write side of one claimed run: what finished together is committed together, under the fence.

A finished step's record waits in a buffer until the next effect is about to start, so that the last step shares its commit with the
run's end and parallel arms that finish in one turn of the event loop share a write. Nothing observable happens in between.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import structlog

from workflows.errors import DivergedError, StaleFence
from workflows.ids import uuid7
from workflows.storage.base import (
    EndOutcome,
    NewRun,
    Record,
    RunRow,
    RunState,
    StepBatch,
    StepOutcome,
    Store,
    StoreUnavailableError,
)
from workflows.storage.schema import Write

RETRY_BASE_S = 0.05
RETRY_CAP_S = 1.0


class Recorder:
    """Buffers records and commits them. `abandoned()` says that the worker has lost its lease: no more waiting for storage.

    `dispatched` is told of runs that a commit inserted.
    """

    def __init__(
        self,
        store: Store,
        run: RunRow,
        *,
        abandoned: Callable[[], bool],
        dispatched: Callable[[Sequence[NewRun]], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._run_id = run.run_id
        self._fence = run.fence
        self._has_parent = run.parent_id is not None
        self._abandoned = abandoned
        self._dispatched = dispatched
        self._pending: list[StepBatch] = []
        self.added = 0
        self._durable = False
        self._unsure: StepBatch | None = None
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._lost: StaleFence | None = None
        self.inbox_seq = run.inbox_seq
        self.cancel_requested = run.cancel_requested

    def add(
        self,
        record: Record,
        *,
        durable: bool = True,
        consumed: Sequence[int] = (),
        writes: Sequence[Write] = (),
        children: Sequence[NewRun] = (),
    ) -> None:
        """Buffer a record. One that is not `durable` (a pure result) rides in the next write and never causes one."""
        batch = StepBatch((record,), tuple(consumed), tuple(children), tuple(writes))
        self._pending.append(batch)
        self.added += 1
        self._durable = self._durable or durable or bool(consumed or writes or children)

    def drop(self) -> None:
        """Forget what is buffered: it can't be committed."""
        self._pending, self._durable, self._unsure = [], False, None

    async def flush(self, *, everything: bool = False) -> None:
        """Commit what is buffered, if any of it has to be, or `everything`, and wait for what is being committed. Raises StaleFence."""
        self._durable = self._durable or (everything and bool(self._pending))
        if not self._durable and self._unsure is None and self._lost is None and self._quiet.is_set():
            return
        async with self._writing():
            await self._make_sure()
            if self._durable:
                await self._commit(self._take())

    async def finish(self, output: bytes, *, inbox_seen: int) -> EndOutcome:
        """Commit what is buffered and end the run as done. Not ended: the inbox moved or a cancel came; what was buffered is kept."""
        async with self._writing():
            await self._make_sure()
            kept, durable = list(self._pending), self._durable
            batch = replace(
                self._take(), done=True, output=output, inbox_seen=inbox_seen, successor_id=str(uuid7()), wakes_parent=self._has_parent
            )  # fmt: skip
            outcome = await self._commit(batch)
            if not outcome.recorded:
                self._pending, self._durable = kept + self._pending, durable or self._durable
            return EndOutcome(outcome.recorded, successor=None, carried=0, parent_queue=outcome.parent_queue)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """One write at a time. Arms that wait for the same one go on in the same turn of the loop, so that their own records share a write.

        Once the fence is known to be stale no arm goes on.
        """
        while not self._quiet.is_set():
            await self._quiet.wait()
        if self._lost is not None:
            raise StaleFence(str(self._lost))
        self._quiet.clear()
        try:
            yield
        except StaleFence as lost:
            self._lost = lost
            raise
        finally:
            self._quiet.set()

    async def suspend(self, *, inbox_seen: int, until: Any) -> bool:
        """Commit what is buffered and let go of the run. False: look at the inbox again."""
        await self.flush()
        return bool(
            await self._insist(
                lambda: self._store.suspend(self._run_id, self._fence, inbox_seen=inbox_seen, until=until)
            )
        )

    async def end(
        self,
        state: RunState,
        *,
        inbox_seen: int,
        output: bytes | None = None,
        error: dict[str, Any] | None = None,
        writes: Sequence[Write] = (),
    ) -> EndOutcome:
        """Commit what is buffered and end the run in `state`, handing unread signals over."""
        await self.flush()
        successor = str(uuid7())
        outcome: EndOutcome = await self._insist(
            lambda: self._store.end(
                self._run_id,
                self._fence,
                state,
                inbox_seen=inbox_seen,
                successor_id=successor,
                output=output,
                error=error,
                writes=writes,
            )
        )
        return outcome

    def _take(self) -> StepBatch:
        taken, self._pending, self._durable = self._pending, [], False
        return StepBatch(
            records=tuple(record for batch in taken for record in batch.records),
            consumed=tuple(seq for batch in taken for seq in batch.consumed),
            children=tuple(child for batch in taken for child in batch.children),
            writes=tuple(write for batch in taken for write in batch.writes),
        )

    async def _commit(self, batch: StepBatch) -> StepOutcome:
        try:
            outcome: StepOutcome = await self._insist(lambda: self._store.step(self._run_id, self._fence, batch))
        except asyncio.CancelledError:
            self._unsure = batch
            raise
        if not outcome.owned and not (batch.done and outcome.recorded):
            raise StaleFence(f"run {self._run_id} is no longer held under fence {self._fence}")
        if not outcome.recorded and not batch.done:
            raise DivergedError(
                f"run {self._run_id} has other records at these paths: {[each.path for each in batch.records]}"
            )
        self.inbox_seq = outcome.inbox_seq
        self.cancel_requested = outcome.cancel_requested
        if batch.children:
            self._dispatched(batch.children)
        return outcome

    async def _make_sure(self) -> None:
        """Send the batch again whose write was cut off, as by the time limit of the step that made it: it may hold what others finished."""
        if self._unsure is not None:
            batch, self._unsure = self._unsure, None
            await self._commit(batch)

    async def _insist(self, operation: Callable[[], Any]) -> Any:
        """Ask again while storage is away: each operation may be sent twice. Gives up when the lease is lost."""
        delay = RETRY_BASE_S
        while True:
            try:
                return await operation()
            except StoreUnavailableError as error:
                if self._abandoned():
                    raise StaleFence(f"run {self._run_id}: the lease ended while storage was away") from error
                structlog.get_logger().warning(
                    "storage_unavailable", run_id=self._run_id, error=str(error), retry_in_s=delay
                )
                await asyncio.sleep(delay)
                delay = min(delay * 2, RETRY_CAP_S)
