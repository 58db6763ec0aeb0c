"""Spans: copied in batches, brought up to date when they end, and closed for the workers that are gone."""

from collections.abc import Sequence

import asyncpg

from workflows.storage.base import SpanRow
from workflows.storage.postgres.rows import Rows
from workflows.storage.tables import SPAN_COLUMNS

# one array per column, in table order
UPSERT = f"""
insert into spans ({SPAN_COLUMNS})
select s.tenant, s.trace_id, s.span_id, s.parent_id, s.run_id, s.name, s.kind, s.status, s.started_at, s.ended_at, s.attributes::json, s.owner
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[],
              $10::timestamptz[], $11::text[], $12::text[])
       s(tenant, trace_id, span_id, parent_id, run_id, name, kind, status, started_at, ended_at, attributes, owner)
on conflict (tenant, trace_id, span_id) do update
   set status = excluded.status, ended_at = excluded.ended_at, attributes = excluded.attributes where excluded.status <> 'open'
"""

OPEN_OWNERS = "select distinct owner from spans where status = 'open' and owner is not null"

# $1 workers
INTERRUPT = f"""
update spans set status = 'interrupted', ended_at = threadline_now() where status = 'open' and owner = any($1) returning {SPAN_COLUMNS}
"""


class SpanOperations(Rows):
    """Keeps spans."""

    async def put_spans(self, new: Sequence[SpanRow], *, again: Sequence[SpanRow] = ()) -> None:
        async with self._connection() as connection:
            if new:
                try:
                    await connection.copy_records_to_table("spans", records=new, columns=SpanRow._fields)
                except asyncpg.UniqueViolationError:  # an earlier COPY of them was committed, and its reply was lost
                    again = (*new, *again)
            if again:
                await connection.execute(UPSERT, *map(list, zip(*again, strict=True)))

    async def open_span_owners(self) -> list[str]:
        return [row[0] for row in await self._fetch(OPEN_OWNERS)]

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        return [SpanRow(*row) for row in await self._fetch(INTERRUPT, list(owners))]
