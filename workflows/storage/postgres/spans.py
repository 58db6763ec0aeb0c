"""Spans: ended ones copied in batches, open ones known by their worker, and closed when it is gone."""

from collections.abc import Sequence
from typing import Any

import asyncpg
from pydantic_core import to_json

from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import Rows
from workflows.storage.spans import OPEN_OWNERS, lookup, span_row
from workflows.storage.tables import SPAN_COLUMNS, SPANS, TRACE_COLUMNS
from workflows.storage.traces import SpanKey, SpanRow, TracePart, merged, packed, unpacked

# one array per column of a part, then of a key
PUT = f"""
with ended as (
  delete from spans s using unnest($7::text[], $8::text[], $9::text[]) e(tenant, trace_id, span_id)
   where s.tenant = e.tenant and s.trace_id = e.trace_id and s.span_id = e.span_id)
insert into traces ({TRACE_COLUMNS})
select * from unnest($1::text[], $2::text[], $3::bytea[], $4::timestamptz[], $5::bigint[], $6::bytea[])
on conflict (tenant, trace_id, part) do nothing
"""

# one array per column, in table order
PUT_OPEN = f"""
insert into spans ({SPAN_COLUMNS})
select s.tenant, s.trace_id, s.span_id, s.parent_id, s.run_id, s.name, s.kind, s.status, s.started_at, s.ended_at, s.attributes::json, s.owner
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[],
              $10::timestamptz[], $11::text[], $12::text[])
       s(tenant, trace_id, span_id, parent_id, run_id, name, kind, status, started_at, ended_at, attributes, owner)
on conflict (tenant, trace_id, span_id) do nothing
"""

# $1 workers
TAKE_LOST = f"""
with lost as materialized (
  select tenant, trace_id, span_id from spans where status = 'open' and owner = any($1) for update skip locked)
delete from spans s using lost l where s.tenant = l.tenant and s.trace_id = l.trace_id and s.span_id = l.span_id
returning {", ".join(f"s.{column.name}" for column in SPANS.columns)}
"""
"""One that is locked is being closed by somebody else."""


class SpanOperations(Rows):
    """Keeps spans."""

    async def put_spans(self, parts: Sequence[TracePart], *, were_open: Sequence[SpanKey] = ()) -> None:
        if not parts:
            return
        async with self._connection() as connection:
            if not were_open:
                try:
                    await connection.copy_records_to_table("traces", records=parts, columns=TracePart._fields)
                except asyncpg.UniqueViolationError:  # an earlier COPY of them was committed, and its reply was lost
                    pass
                else:
                    return
            await _put(connection, parts, were_open)

    async def put_open_spans(self, spans: Sequence[SpanRow]) -> None:
        rows = [span._replace(attributes=to_json(span.attributes).decode()) for span in spans]  # type: ignore[arg-type]
        await self._fetch(PUT_OPEN, *_columns(rows, SpanRow))

    async def open_span_owners(self) -> list[str]:
        return [row[0] for row in await self._fetch(OPEN_OWNERS)]

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        async with self._connection() as connection, connection.transaction():
            rows = await connection.fetch(TAKE_LOST, list(owners))
            now = await connection.fetchval("select threadline_now()") if rows else None
            lost = [span_row(POSTGRES, row)._replace(status="interrupted", ended_at=now) for row in rows]
            if lost:
                await _put(connection, packed(lost), ())
            return lost

    async def spans(
        self, *, tenant: str, trace_id: str | None = None, run_id: str | None = None, limit: int = 10_000
    ) -> list[SpanRow]:
        open_ones, ended, given = lookup(tenant, trace_id, run_id, limit)
        # In this order: one that ends in between is found twice, not missed.
        rows = [span_row(POSTGRES, row) for row in await self._fetch(open_ones, *given)]
        parts = [TracePart(*row) for row in await self._fetch(ended, *given)]
        return merged((*(span for each in parts for span in unpacked(each)), *rows), run_id=run_id, limit=limit)


async def _put(connection: Any, parts: Sequence[TracePart], were_open: Sequence[SpanKey]) -> None:
    await connection.execute(PUT, *_columns(parts, TracePart), *_columns(were_open, SpanKey))


def _columns(rows: Sequence[tuple[Any, ...]], kind: Any) -> list[list[Any]]:
    """One list per column, however few the rows."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in kind._fields]
