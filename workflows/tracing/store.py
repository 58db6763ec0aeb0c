"""Spans into storage, in batches, off the step's path."""

import asyncio
import contextlib

import structlog
from pydantic_core import to_json

from workflows.storage.base import Store
from workflows.storage.schema import Insert
from workflows.storage.tables import SPANS
from workflows.tracing.base import Span

BATCH = 200
LIMIT = 20_000
"""Spans kept while storage is away; beyond it new ones are dropped and counted, never the work itself."""


class StoreSink:
    """Writes finished spans to the `spans` table every `interval_s` seconds."""

    def __init__(self, store: Store, *, interval_s: float = 0.5) -> None:
        self._store = store
        self._interval_s = interval_s
        self._waiting: list[Span] = []
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0

    def put(self, span: Span) -> None:
        try:
            to_json(span.attributes)  # one that can't be stored must not hold up the batch it would be in
        except ValueError:
            span.attributes = {"unstorable": True}
        if len(self._waiting) >= LIMIT:
            self.dropped += 1
            return
        self._waiting.append(span)

    def start(self) -> None:
        """Begin writing in the background."""
        self._task = asyncio.create_task(self._write_forever())

    async def close(self) -> None:
        """Write what is left and stop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        with contextlib.suppress(Exception):
            await self.flush()

    async def flush(self) -> None:
        """Write everything that waits."""
        while self._waiting:
            batch = self._waiting[:BATCH]
            await self._store.write(*map(_row, batch))
            del self._waiting[: len(batch)]

    async def _write_forever(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self.flush()
            except Exception as error:
                structlog.get_logger().warning("spans_not_written", error=str(error), waiting=len(self._waiting))


def _row(span: Span) -> Insert:
    values = {
        "tenant": span.tenant,
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "run_id": span.run_id,
        "name": span.name,
        "kind": span.kind,
        "status": span.status,
        "started_at": span.started_at,
        "ended_at": span.ended_at,
        "attributes": span.attributes,
    }
    return Insert(SPANS, values, on_conflict="nothing")
