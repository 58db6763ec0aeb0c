"""What travels with a statement: rows of the floors above, and values too large for their own row."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from workflows.storage import dialect
from workflows.storage.base import Record, Status
from workflows.storage.blobs import MARK, Apart, Found, filled, wanted
from workflows.storage.postgres.database import POSTGRES, Database
from workflows.storage.riders import split
from workflows.storage.schema import Select, Table, Write

RUNNING = "state || '' = 'running'"
"""How a statement that names its run says so. A plain comparison lets the planner take the partial index of running runs, which looks no
dearer than the key while statistics are young, and reads all that run (measured: 0.9 ms of 1.2, with 2,000 of them).
"""

# $1 tenants $2 digests $3 bodies
KEEP = """
insert into blobs (tenant, sha256, body) select * from unnest($1::text[], $2::bytea[], $3::bytea[])
on conflict (tenant, sha256) do update set at = threadline_now()
"""
"""The update locks a blob that is there already, so that it can't be collected while this commit comes to refer to it."""

KEEP_RIDER = """,
apart as (insert into blobs (tenant, sha256, body)
          select distinct on (1, 2) coalesce(t.tenant, g.tenant), t.sha256, t.body
            from g, unnest(${}::text[], ${}::bytea[], ${}::bytea[]) t(tenant, sha256, body)
          on conflict (tenant, sha256) do update set at = threadline_now())
"""
"""The same inside another statement, whose own tenant is that of its CTE `g`."""

# $1 tenants (null: $3, or that of run $4) $2 digests
BODIES = """
select t.tenant, t.sha256, b.body from unnest($1::text[], $2::bytea[]) t(tenant, sha256)
  join blobs b on b.tenant = coalesce(t.tenant, $3, (select tenant from runs where run_id = $4)) and b.sha256 = t.sha256
"""


class Rows(Database):
    """Reads and writes rows, alone or inside an operation's statement."""

    async def read(self, query: Select) -> list[dict[str, Any]]:
        parameters = dialect.Parameters(POSTGRES)
        found = await self._fetch(dialect.select(query, parameters), *parameters.values)
        rows = [dialect.decode_row(POSTGRES, query.table, row) for row in found]
        for name in query.table.values:
            for row in rows:
                if row[name] is not None and row[name][:1] == MARK:
                    row[name] = await self._restored(query.table, name, row)
        return rows

    async def totals(self, query: Select, *columns: str) -> tuple[int, ...]:
        parameters = dialect.Parameters(POSTGRES)
        (row,) = await self._fetch(dialect.totals(query, columns, parameters), *parameters.values)
        return tuple(row)

    async def write(self, *writes: Write) -> int:
        if len(writes) == 1:
            async with self._connection() as connection:
                return await _apply(connection, writes[0])
        async with self._connection() as connection, connection.transaction():
            return sum([await _apply(connection, each) for each in writes])

    async def _guarded(self, ctes: str, result: str, *parameters: Any, writes: Sequence[Write] = ()) -> asyncpg.Record:
        """Send a statement of `ctes` that selects `result`, and whether it was `applied`: whether its CTE `g` has a row.

        Only then do `writes` take effect, in the same commit: most ride along as further CTEs. All CTEs of a statement see one snapshot,
        so from the first write that may touch a row which another one touches, they follow in order, in one transaction with it.
        """
        apart, (riding, following) = Apart(), split(writes)
        sent = apart.parameters(parameters)
        riders = dialect.Parameters(POSTGRES, start=len(sent), apart=apart)
        texts = [f", w{n} as ({dialect.write(each, riders, guard='g')})" for n, each in enumerate(riding)]
        sent += riders.values
        if apart.bodies:
            texts.append(KEEP_RIDER.format(*(len(sent) + n for n in (1, 2, 3))))
            sent += _columns(apart)
        statement = "".join((ctes, *texts, " select exists (select from g) as applied, ", result))
        return await (self._followed(statement, sent, following) if following else self._one(statement, *sent))

    async def _followed(self, statement: str, sent: list[Any], following: Sequence[Write]) -> asyncpg.Record:
        async with self._connection() as connection, connection.transaction():
            row: asyncpg.Record = await connection.fetchrow(statement, *sent)
            if row["applied"]:
                for each in following:
                    await _apply(connection, each)
            return row

    # Large values

    async def _whole(
        self, found: Sequence[Found], *, strict: bool = True, run_id: str | None = None, tenant: str | None = None
    ) -> list[Found]:
        """What was found, with its large values: those of `tenant`, or of the tenant of `run_id`, where it names none itself.

        Raises BlobMissingError if `strict`.
        """
        if not (owned := wanted(found)):
            return list(found)
        tenants, digests = zip(*owned, strict=True)
        bodies = {(row[0], row[1]): row[2] for row in await self._fetch(BODIES, tenants, digests, tenant, run_id)}
        return [filled(each, bodies, strict=strict, run_id=run_id) for each in found]

    async def _restored(self, table: Table, name: str, row: dict[str, Any]) -> bytes | None:
        record = Record(row.get("path", f"{table.name}.{name}"), Status.OK, row[name])
        (whole,) = await self._whole([record], run_id=row.get("run_id"), tenant=row.get("tenant"))
        return whole.output


async def _apply(connection: Any, change: Write) -> int:
    parameters = dialect.Parameters(POSTGRES)
    statement = dialect.write(change, parameters)
    if not parameters.apart.bodies:
        return _count(await connection.execute(statement, *parameters.values))
    async with connection.transaction():
        await connection.execute(KEEP, *_columns(parameters.apart))
        return _count(await connection.execute(statement, *parameters.values))


def _count(tag: str) -> int:
    return int(tag.rsplit(" ", 1)[-1])


def _columns(apart: Apart) -> list[list[Any]]:
    """Bodies as KEEP takes them."""
    return [[tenant for tenant, _ in apart.bodies], [digest for _, digest in apart.bodies], list(apart.bodies.values())]
