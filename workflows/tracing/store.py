"""Spans into storage, in batches, off the step's path."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from operator import attrgetter
from typing import Any

import structlog
from pydantic_core import from_json, to_json

from workflows.storage.base import Store, StoreUnavailableError
from workflows.storage.traces import SpanKey, SpanRow, TracePart, entries, part
from workflows.tracing.base import Span
from workflows.tracing.redaction import redact

BATCH = 500
LIMIT = 20_000
"""Spans kept while storage is away; beyond it new ones are dropped and counted, never the work itself."""
MAX_BYTES = 32 * 1024
"""Of one span's attributes: longer ones are told by their names alone. And of the spans of one row, unless it is but one."""

MAX_CHARS = 500
"""Of a name."""


class StoreSink:
    """Writes spans to storage every `interval_s` seconds: ended ones packed by trace, and those open for longer than that singly.

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
        self._stored: dict[str, bool] = {}  # those that may be in storage as open, and whether they surely are
        self._sent = 0
        self._task: asyncio.Task[None] | None = None
        self._shed = 0  # in the outage that lasts
        self.dropped = 0
        """Spans that were never stored: there was no room for them, or storage refused them."""

    def began(self, span: Span) -> None:
        self._open[span.span_id] = span

    def put(self, span: Span) -> None:
        self._open.pop(span.span_id, None)
        if len(self._ended) >= LIMIT:
            self.dropped += 1
            self._shed += 1
            self._stored.pop(span.span_id, None)
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
            batch = self._ended[: self._sent or BATCH]
            try:
                await self._put(batch)
            except StoreUnavailableError:
                raise
            except Exception as error:  # it would fail for ever, and hold up all that come after it
                self.dropped += len(batch)
                structlog.get_logger().error("spans_dropped", count=len(batch), error=repr(error))
            del self._ended[: len(batch)]
            self._sent = 0
            for span in batch if self._stored else ():
                self._stored.pop(span.span_id, None)
        if self._shed:
            structlog.get_logger().error("spans_dropped", count=self._shed, error=f"{LIMIT} waited for storage already")
            self._shed = 0

    async def _put(self, batch: list[Span]) -> None:
        # Should it be unknown whether they arrive, the same go again: their rows tell that they are the same.
        self._sent = len(batch)
        were_open = [_key(span) for span in batch if span.span_id in self._stored] if self._stored else ()
        await self._store.put_spans(_parts(batch), were_open=were_open)

    async def _flush_open(self) -> None:
        """Store open spans that last: the bulk of them ends within an interval, and is written once."""
        owner = self._owner()
        if owner is None:
            return
        edge = datetime.now(UTC) - timedelta(seconds=self._interval_s)
        lasting = takewhile(lambda span: span.started_at <= edge, list(self._open.values()))  # the oldest are first
        new = [span for span in lasting if not self._stored.get(span.span_id)]
        if not new:
            return
        # Said before it is done: one that ends meanwhile must be removed as one that may be there.
        self._stored.update(dict.fromkeys((span.span_id for span in new), False))
        await self._store.put_open_spans([_row(span, owner) for span in new])
        self._stored.update((span.span_id, True) for span in new if span.span_id in self._stored)

    async def _write_forever(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._round(self.flush)

    async def _round(self, flush: Callable[[], Awaitable[None]]) -> None:
        try:
            await flush()
        except StoreUnavailableError as error:
            structlog.get_logger().warning("spans_not_written", error=str(error), waiting=len(self._ended))


def _parts(spans: list[Span]) -> list[TracePart]:
    """Ended spans as rows, one for each trace, or a few where much is in it."""
    traces: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        traces.setdefault((span.tenant, span.trace_id), []).append(span)
    return [row for (tenant, trace_id), ours in traces.items() for row in _packed(_text(tenant), _text(trace_id), ours)]


def _packed(tenant: str, trace_id: str, spans: list[Span]) -> list[TracePart]:
    """Halved until each row is of a bounded size and what is odd or too long stands alone."""
    youngest = max(map(_STARTED_AT, spans))
    try:
        data = to_json(entries(spans, trace_id, youngest), inf_nan_mode="null", fallback=_told)
    except ValueError:
        data = b""
    if not data or len(data) > MAX_BYTES:
        if half := len(spans) // 2:
            return [*_packed(tenant, trace_id, spans[:half]), *_packed(tenant, trace_id, spans[half:])]
        data = to_json(entries([_tame(spans[0])], trace_id, youngest))
    return [part(tenant, trace_id, youngest, len(spans), data)]


_STARTED_AT = attrgetter("started_at")


def _key(span: Span) -> SpanKey:
    return SpanKey(_text(span.tenant), _text(span.trace_id), span.span_id)


def _row(span: Span, owner: str) -> SpanRow:
    """An open span as a row. What it holds is raw still."""
    tame = _tame(replace(span, attributes=redact(dict(span.attributes))))
    return SpanRow(
        *_key(span), span.parent_id, span.run_id, tame.name, tame.kind, "open", span.started_at, None, tame.attributes, owner
    )  # fmt: skip


def _tame(span: Span) -> Span:
    """A span that every database takes."""
    return replace(span, name=_text(span.name), kind=_text(span.kind), attributes=_bounded(span.attributes))


def _bounded(values: dict[str, Any]) -> dict[str, Any]:
    """Redacted attributes as JSON can hold them, in at most MAX_BYTES."""
    try:
        data = to_json(values, inf_nan_mode="null", fallback=_told)
    except ValueError:
        return {"unstorable": True}
    if len(data) > MAX_BYTES:
        return {"too_long": len(data), "names": [_text(str(name))[:100] for name in values][:100]}
    bounded: dict[str, Any] = from_json(data)
    return bounded


def _told(value: Any) -> Any:
    """What JSON does not know."""
    return redact(str(value))


def _text(value: str) -> str:
    """A text every database takes."""
    if value.isascii() and len(value) <= MAX_CHARS and "\0" not in value:
        return value
    return value.replace("\0", "").encode(errors="replace").decode()[:MAX_CHARS]
