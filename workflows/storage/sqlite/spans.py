"""Spans: written in batches, brought up to date when they end, and closed for the workers that are gone."""

from collections.abc import Sequence
from typing import Any

from workflows.storage import dialect
from workflows.storage.base import SpanRow
from workflows.storage.sqlite.database import SQLITE, Database, marks
from workflows.storage.tables import SPAN_COLUMNS

UPSERT = f"""
insert into spans ({SPAN_COLUMNS}) values ({marks(SpanRow._fields)})
on conflict (tenant, trace_id, span_id) do update
   set status = excluded.status, ended_at = excluded.ended_at, attributes = excluded.attributes where excluded.status <> 'open'
"""


class SpanOperations(Database):
    """Keeps spans."""

    async def put_spans(self, new: Sequence[SpanRow], *, again: Sequence[SpanRow] = ()) -> None:
        rows = [_values(row) for row in (*new, *again)]
        await self._transact(lambda: self._db.executemany(UPSERT, rows))

    async def open_span_owners(self) -> list[str]:
        sql = "select distinct owner from spans where status = 'open' and owner is not null"
        return [row[0] for row in await self._call(lambda: self._rows(sql))]

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        sql = (
            "update spans set status = 'interrupted', ended_at = ? where status = 'open'"
            f" and owner in ({marks(owners)}) returning {SPAN_COLUMNS}"
        )
        return [_row(row) for row in await self._transact(lambda: self._rows(sql, self._now(), *owners))]


def _values(row: SpanRow) -> tuple[Any, ...]:
    ended_at = None if row.ended_at is None else dialect.micros(row.ended_at)
    return (*row[:8], dialect.micros(row.started_at), ended_at, *row[10:])


def _row(values: Sequence[Any]) -> SpanRow:
    times = [SQLITE.decode("time", value) for value in values[8:10]]
    return SpanRow(*values[:8], *times, *values[10:])
