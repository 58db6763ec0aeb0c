"""Spans: ended ones written in batches, open ones known by their worker, and closed when it is gone."""

import json
from collections.abc import Sequence

from pydantic_core import to_json

from workflows.storage import dialect
from workflows.storage.spans import OPEN_OWNERS, lookup, span_row
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.rows import Rows
from workflows.storage.tables import SPAN_COLUMNS, TRACE_COLUMNS
from workflows.storage.traces import SpanKey, SpanRow, TracePart, merged, packed, unpacked

# one parameter per column, in table order
PUT = f"""
insert into traces ({TRACE_COLUMNS}) values ({", ".join("?" for _ in TracePart._fields)})
on conflict (tenant, trace_id, part) do nothing
"""

# ?1 tenant ?2 trace ?3 span
DELETE = "delete from spans where tenant = ?1 and trace_id = ?2 and span_id = ?3"

# one parameter per column, in table order
PUT_OPEN = f"""
insert into spans ({SPAN_COLUMNS}) values ({", ".join("?" for _ in SpanRow._fields)})
on conflict (tenant, trace_id, span_id) do nothing
"""

# ?1 workers, as JSON
TAKE_LOST = f"""
delete from spans where status = 'open' and owner in (select value from json_each(?1)) returning {SPAN_COLUMNS}
"""


class SpanOperations(Rows):
    """Keeps spans."""

    async def put_spans(self, parts: Sequence[TracePart], *, were_open: Sequence[SpanKey] = ()) -> None:
        await self._transact(lambda: self._put(parts, were_open))

    def _put(self, parts: Sequence[TracePart], were_open: Sequence[SpanKey]) -> None:
        # Not as other statements are sent: a large body stays in its row.
        self._db.executemany(PUT, [each._replace(started_at=dialect.micros(each.started_at)) for each in parts])  # type: ignore[arg-type]
        self._db.executemany(DELETE, were_open)

    async def put_open_spans(self, spans: Sequence[SpanRow]) -> None:
        rows = [
            (*each[:8], dialect.micros(each.started_at), None, to_json(each.attributes).decode(), each.owner)
            for each in spans
        ]
        await self._transact(lambda: self._db.executemany(PUT_OPEN, rows))

    async def open_span_owners(self) -> list[str]:
        return [row[0] for row in await self._call(lambda: self._rows(OPEN_OWNERS))]

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        return await self._transact(lambda: self._interrupt(json.dumps(list(owners))))

    def _interrupt(self, owners: str) -> list[SpanRow]:
        now = SQLITE.decode("time", self._now())
        rows = [span_row(SQLITE, row) for row in self._rows(TAKE_LOST, owners)]
        lost = [row._replace(status="interrupted", ended_at=now) for row in rows]
        self._put(packed(lost), ())
        return lost

    async def spans(
        self, *, tenant: str, trace_id: str | None = None, run_id: str | None = None, limit: int = 10_000
    ) -> list[SpanRow]:
        return await self._call(lambda: self._spans(tenant, trace_id, run_id, limit))

    def _spans(self, tenant: str, trace_id: str | None, run_id: str | None, limit: int) -> list[SpanRow]:
        *statements, given = lookup(tenant, trace_id, run_id, limit)
        open_ones, ended = (statement.replace("$", "?") for statement in statements)
        # In this order: one that ends in between is found twice, not missed.
        rows = [span_row(SQLITE, row) for row in self._rows(open_ones, *given)]
        found = self._rows(ended, *given)
        parts = [TracePart(*row)._replace(started_at=SQLITE.decode("time", row[3])) for row in found]
        return merged((*(span for each in parts for span in unpacked(each)), *rows), run_id=run_id, limit=limit)
