"""Spans that a process left open when it died."""

from collections.abc import Sequence

import structlog

from workflows.storage.base import Store
from workflows.storage.traces import SpanRow
from workflows.tracing.base import Span, SpanSink


async def close_lost(store: Store, exporters: Sequence[SpanSink] = ()) -> int:
    """Close as interrupted what the workers that are gone have open, with the time at which it was found, and export it. Returns how many.

    Any number of processes may do it: each span is closed by one of them.
    """
    owners = await store.open_span_owners()
    # Asked in this order: a worker registers before it stores a span, so one that lives is among those asked for afterwards.
    gone = sorted(set(owners) - set(await store.workers())) if owners else []
    if not gone:
        return 0
    closed = await store.interrupt_spans(gone)
    for row in closed:
        for sink in exporters:
            sink.put(_span(row))
    if closed:
        structlog.get_logger().info("spans_interrupted", count=len(closed), workers=gone)
    return len(closed)


def _span(row: SpanRow) -> Span:
    return Span(
        row.name, row.kind, row.tenant, row.trace_id, row.run_id, row.parent_id, row.started_at, row.span_id,
        row.attributes, "interrupted", row.ended_at,
    )  # fmt: skip
