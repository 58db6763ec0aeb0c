"""Spans into storage, in batches, off the step's path."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import structlog
from pydantic_core import to_json

from workflows.storage.base import SpanRow, Store, StoreUnavailableError
from workflows.tracing.base import Span
from workflows.tracing.redaction import redact

BATCH = 500
LIMIT = 20_000
"""Spans kept while storage is away; beyond it new ones are dropped and counted, never the work itself."""
MAX_BYTES = 32 * 1024
"""Of one span's attributes. Longer ones are told by their names alone."""


class StoreSink:
    """Writes spans to the `spans` table every `interval_s` seconds: finished ones, and those open for longer than that.

    `owner` is this process's worker id, if it is a worker: after its death the open spans under that name are known to be lost. Spans
    of other processes are written when they end.
    """

    def __init__(
        self, store: Store, *, owner: Callable[[], str | None] = lambda: None, interval_s: float = 0.5
    ) -> None:
        self._store = store
        self._owner = owner
        self._interval_s = interval_s
        self._open: dict[str, Span] = {}
        self._ended: list[Span] = []
        self._stored: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0

    def began(self, span: Span) -> None:
        self._open[span.span_id] = span

    def put(self, span: Span) -> None:
        self._open.pop(span.span_id, None)
        if len(self._ended) >= LIMIT:
            self.dropped += 1
            self._stored.discard(span.span_id)
        else:
            self._ended.append(span)

    def start(self) -> None:
        """Begin writing in the background."""
        self._task = asyncio.create_task(self._write_forever(), name="spans")

    async def close(self) -> None:
        """Write what is left, for five seconds at most, and stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await self._round(self._flush_ended)

    async def flush(self) -> None:
        """Write everything that waits. Raises StoreUnavailableError."""
        await self._flush_ended()
        await self._flush_open()

    async def _flush_ended(self) -> None:
        while self._ended:
            batch = self._ended[:BATCH]
            try:
                await self._put(batch)
            except StoreUnavailableError:
                raise
            except Exception as error:  # it would fail for ever, and hold up all that come after it
                self.dropped += len(batch)
                structlog.get_logger().error("spans_dropped", count=len(batch), error=repr(error))
            del self._ended[: len(batch)]
            self._stored.difference_update(span.span_id for span in batch)

    async def _flush_open(self) -> None:
        """Store open spans that last: the bulk of them ends within an interval, and is written once."""
        if self._owner() is None:
            return
        edge = datetime.now(UTC) - timedelta(seconds=self._interval_s)
        lasting = takewhile(lambda span: span.started_at <= edge, list(self._open.values()))  # the oldest are first
        new = [span for span in lasting if span.span_id not in self._stored]
        if not new:
            return
        # Said before it is done: one that ends meanwhile must be written as one that may be there.
        self._stored.update(span.span_id for span in new)
        try:
            await self._store.put_spans([self._row(span) for span in new])
        except StoreUnavailableError:
            self._stored.difference_update(span.span_id for span in new if span.span_id in self._open)
            raise

    async def _put(self, spans: list[Span]) -> None:
        rows = [self._row(span) for span in spans]
        new = [row for row in rows if row.span_id not in self._stored]
        again = [row for row in rows if row.span_id in self._stored]
        await self._store.put_spans(new, again=again)

    async def _write_forever(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._round(self.flush)

    async def _round(self, flush: Callable[[], Awaitable[None]]) -> None:
        try:
            await flush()
        except StoreUnavailableError as error:
            structlog.get_logger().warning("spans_not_written", error=str(error), waiting=len(self._ended))

    def _row(self, span: Span) -> SpanRow:
        return SpanRow(
            _text(span.tenant), _text(span.trace_id), span.span_id, span.parent_id, span.run_id, _text(span.name), _text(span.kind),
            span.status, span.started_at, span.ended_at, _attributes(span), self._owner() if span.status == "open" else None,
        )  # fmt: skip


def _attributes(span: Span) -> str:
    """JSON text of at most MAX_BYTES. Those of an open span are raw still."""
    values = redact(dict(span.attributes)) if span.status == "open" else span.attributes
    try:
        data = to_json(values, inf_nan_mode="null", fallback=lambda each: redact(str(each)))
    except ValueError:
        return '{"unstorable":true}'
    if len(data) > MAX_BYTES:
        return to_json({"too_long": len(data), "names": [str(name)[:100] for name in values][:100]}).decode()
    return data.decode()


def _text(value: str) -> str:
    """A text every database takes."""
    return value.replace("\0", "").encode(errors="replace").decode()[:500]
