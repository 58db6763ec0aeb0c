"""Ended spans, packed: those of one trace that are written together are one row.

`body` is a zlib stream, with a preset dictionary, of a JSON array with one array per span:

    [span_id, parent_id, run_id, name, kind, status, before_us, duration_us, attributes]

and, of a span that a reaper closed, its worker's id after them. `before_us` is how long before the row's `started_at` it began, `duration_us`
how long it took, both in microseconds; `run_id` is 0 if the trace is called after the run. Arrays, since a place costs less than a name, to
write and to keep. Whoever needs more appends to them.
"""

import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from pydantic_core import from_json, to_json

from workflows.storage.moments import MICROSECOND

_LEVEL, _WINDOW_BITS, _MEMORY = 3, 12, 5
"""zlib as small as a turn's spans: with its defaults, clearing its tables takes four times as long as the work."""
_USUAL = (
    b'"tool","model","error","flow":"Suspended","drain_signals","drain","ok",{"signals":["1:message"]}],["wait","publish",'
    b'"gen_ai.operation.name":"chat","gen_ai.request.model":"gen_ai.usage.input_tokens":"gen_ai.usage.output_tokens":'
    b'"gen_ai.response.finish_reasons":["tool_use"]}],"workflow","ok",{"path":"","interrupted",null,0,"run","ok",'
    b'{"fence":1,"attempt":1,"version":"1","key":"","published":1,"left":"ended"}]]",0,"step","ok",{"path":"",'
    b'"effect":"reconcile","effect":"read","interrupted":false}],["'
)
"""What spans usually say, which a body then need not: a turn's is a quarter shorter. Part of the format, and never edited: zlib checks that it
is the one a body was written with.
"""


class SpanRow(NamedTuple):
    """One stored span. `owner` is the worker whose death would leave it open, or has: one that is `interrupted` and has an owner was lost."""

    tenant: str
    trace_id: str
    span_id: str
    parent_id: str | None
    run_id: str | None
    name: str
    kind: str
    status: str
    started_at: datetime
    ended_at: datetime | None
    attributes: dict[str, Any]
    owner: str | None = None


class SpanKey(NamedTuple):
    """Which span."""

    tenant: str
    trace_id: str
    span_id: str


class TracePart(NamedTuple):
    """One row of `traces`, in table order. `started_at` is that of its youngest span; `part` is derived from `body`, so that it can be
    written again by someone who does not know whether it was.
    """

    tenant: str
    trace_id: str
    part: bytes
    started_at: datetime
    spans: int
    body: bytes


class Ended(Protocol):
    """What is packed of an ended span: a `SpanRow`, or a span as it was traced."""

    @property
    def span_id(self) -> str: ...
    @property
    def parent_id(self) -> str | None: ...
    @property
    def run_id(self) -> str | None: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def ended_at(self) -> datetime | None: ...
    @property
    def attributes(self) -> dict[str, Any]: ...


def entries(spans: Sequence[Ended], trace_id: str, youngest: datetime) -> list[tuple[Any, ...]]:
    """Spans of one trace as they stand in a body. JSON can hold them if it can hold their attributes."""
    return [
        (
            span.span_id, span.parent_id, 0 if span.run_id == trace_id else span.run_id, span.name, span.kind, span.status,
            (youngest - span.started_at) // MICROSECOND,
            None if span.ended_at is None else (span.ended_at - span.started_at) // MICROSECOND,
            span.attributes,
        )
        for span in spans
    ]  # fmt: skip


def part(tenant: str, trace_id: str, youngest: datetime, count: int, data: bytes) -> TracePart:
    """`count` spans of one trace as a row; `data` is the JSON of their entries."""
    deflate = zlib.compressobj(_LEVEL, wbits=_WINDOW_BITS, memLevel=_MEMORY, zdict=_USUAL)
    body = deflate.compress(data) + deflate.flush()
    return TracePart(tenant, trace_id, blake2b(body, digest_size=8).digest(), youngest, count, body)


def packed(rows: Iterable[SpanRow]) -> list[TracePart]:
    """Ended spans, whatever their traces, as rows: one for each trace."""
    traces: dict[tuple[str, str], list[SpanRow]] = {}
    for row in rows:
        traces.setdefault((row.tenant, row.trace_id), []).append(row)
    return [_packed(*trace, spans) for trace, spans in traces.items()]


def _packed(tenant: str, trace_id: str, rows: list[SpanRow]) -> TracePart:
    youngest = max(row.started_at for row in rows)
    owners = [() if row.owner is None else (row.owner,) for row in rows]
    data = to_json([(*entry, *owner) for entry, owner in zip(entries(rows, trace_id, youngest), owners, strict=True)])
    return part(tenant, trace_id, youngest, len(rows), data)


def unpacked(row: TracePart) -> list[SpanRow]:
    """The spans of a row."""
    return [_span(row, entry) for entry in from_json(zlib.decompressobj(zdict=_USUAL).decompress(row.body))]


def _span(row: TracePart, entry: list[Any]) -> SpanRow:
    span_id, parent_id, run_id, name, kind, status, before_us, duration_us, attributes, *owner = entry
    run_id = row.trace_id if run_id == 0 else run_id
    started_at = row.started_at - before_us * MICROSECOND
    ended_at = None if duration_us is None else started_at + duration_us * MICROSECOND
    return SpanRow(
        row.tenant, row.trace_id, span_id, parent_id, run_id, name, kind, status, started_at, ended_at, attributes, *owner[:1]
    )  # fmt: skip


def merged(rows: Iterable[SpanRow], *, run_id: str | None = None, limit: int) -> list[SpanRow]:
    """Each span once, as is known best, by its start: the youngest `limit` of them, of `run_id` if it is given."""
    known: dict[SpanKey, SpanRow] = {}
    for row in rows:
        key = SpanKey(*row[:3])
        if (run_id is None or row.run_id == run_id) and (key not in known or _sure(row) > _sure(known[key])):
            known[key] = row
    return sorted(known.values(), key=lambda row: row.started_at)[-limit:]


def _sure(row: SpanRow) -> int:
    """One may be open still in one row and have ended in another, or be taken for lost and then end after all."""
    if row.status == "open":
        return 0
    return 1 if row.status == "interrupted" and row.owner is not None else 2
