"""What a server has written so far."""

from dataclasses import astuple, dataclass
from typing import Any, Self

SIZES = """
select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
"""
TABLES = "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname"


@dataclass(frozen=True, slots=True)
class Reading:
    """Totals. `commits` are transactions that wrote; `wal`, `stored` (heap, TOAST and indexes) and `rows` (live row versions) are bytes."""

    commits: int
    wal: int
    stored: int
    rows: int

    def __sub__(self, earlier: Self) -> "Reading":
        return Reading(*(now - then for now, then in zip(astuple(self), astuple(earlier), strict=True)))


class Meter:
    """Reads through a connection of its own to the measured database; what it reads leaves no trace in the totals."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def read(self) -> Reading:
        """The totals now."""
        value = self._connection.fetchval
        commits = int(await value("select pg_snapshot_xmax(pg_current_snapshot())::text"))
        wal = int(await value("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))
        stored = int(await value(SIZES))
        return Reading(commits, wal, stored, await self._rows())

    async def _rows(self) -> int:
        total = 0
        for (table,) in await self._connection.fetch(TABLES):
            total += int(
                await self._connection.fetchval(f'select coalesce(sum(pg_column_size(t.*)), 0) from "{table}" t')
            )
        return total
