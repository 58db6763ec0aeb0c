"""Spans: written in batches, brought up to date when they end, and closed for the workers that are gone."""

import json
from collections.abc import Sequence
from typing import Any

from workflows.storage import dialect
from workflows.storage.base import SpanRow
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.rows import Rows
from workflows.storage.tables import SPAN_COLUMNS

# one parameter per column, in table order
UPSERT = f"""
insert into spans ({SPAN_COLUMNS}) values ({", ".join("?" for _ in SpanRow._fields)})
on conflict (tenant, trace_id, span_id) do update
   set status = excluded.status, ended_at = excluded.ended_at, attributes = excluded.attributes where excluded.status <> 'open'
"""

OPEN_OWNERS = "select distinct owner from spans where status = 'open' and owner is not null"

# ?1 workers, as JSON ?2 now
INTERRUPT = f"""
update spans set status = 'interrupted', ended_at = ?2
 where status = 'open' and owner in (select value from json_each(?1)) returning {SPAN_COLUMNS}
"""


class SpanOperations(Rows):
    """Keeps spans."""

    async def put_spans(self, new: Sequence[SpanRow], *, again: Sequence[SpanRow] = ()) -> None:
        rows = [_values(row) for row in (*new, *again)]
        await self._transact(lambda: self._db.executemany(UPSERT, rows))

    async def open_span_owners(self) -> list[str]:
        return [row[0] for row in await self._call(lambda: self._rows(OPEN_OWNERS))]

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        gone = json.dumps(list(owners))
        return [_row(row) for row in await self._transact(lambda: self._rows(INTERRUPT, gone, self._now()))]


def _values(row: SpanRow) -> tuple[Any, ...]:
    ended_at = None if row.ended_at is None else dialect.micros(row.ended_at)
    return (*row[:8], dialect.micros(row.started_at), ended_at, *row[10:])


def _row(values: Sequence[Any]) -> SpanRow:
    times = [SQLITE.decode("time", value) for value in values[8:10]]
    return SpanRow(*values[:8], *times, *values[10:])
