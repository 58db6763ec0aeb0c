"""Brings a PostgreSQL database up to date: all it lacks in one transaction, one process at a time."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from workflows.storage import dialect
from workflows.storage.migrations import Schema
from workflows.storage.migrations.plan import ALL_APPLIED, UNVERSIONED, Pending, bookkeeping, failed, pending

POSTGRES = dialect.Postgres()
PLACE = "this PostgreSQL database"
TIMEOUT_S = 3600.0
"""An index over a large table takes longer than any other statement may, and so does waiting for the process that builds it."""

LOCK = "select pg_advisory_xact_lock(x'7468726561646c69'::bigint)"
"""The number is "threadli". Held to the end of the transaction, also by a process that was killed, until the server has noticed."""

MAKE_CLOCK = (
    "create table if not exists threadline_clock (shift interval not null)",
    "insert into threadline_clock select '0' where not exists (select from threadline_clock)",
    """
    create or replace function threadline_now() returns timestamptz language sql stable parallel safe
    as 'select clock_timestamp() + (select shift from threadline_clock)'
    """,
)
"""The one clock durable times are read from; its shift is 0 outside tests."""

EXISTS = "select to_regclass($1) is not null"
UNVERSIONED_FINGERPRINT = f"select fingerprint from {UNVERSIONED}"
DROP_UNVERSIONED = f"drop table {UNVERSIONED}"


async def upgrade(connection: Any, schemas: Sequence[Schema]) -> None:
    """Make every migration the database lacks. Raises SchemaError, having changed nothing."""
    async with connection.transaction():
        await connection.execute(LOCK, timeout=TIMEOUT_S)
        if not await connection.fetchval(EXISTS, ALL_APPLIED.table.name):
            for statement in (*MAKE_CLOCK, *bookkeeping(POSTGRES)):
                await connection.execute(statement)
        unversioned = await _unversioned(connection)
        rows = await connection.fetch(dialect.select(ALL_APPLIED, dialect.Parameters(POSTGRES)))
        applied = [dialect.decode_row(POSTGRES, ALL_APPLIED.table, row) for row in rows]
        for each in pending(schemas, applied, POSTGRES, place=PLACE, unversioned=unversioned):
            await _make(connection, each)


async def _unversioned(connection: Any) -> str | None:
    if not await connection.fetchval(EXISTS, UNVERSIONED):
        return None
    fingerprint: str | None = await connection.fetchval(UNVERSIONED_FINGERPRINT)
    await connection.execute(DROP_UNVERSIONED)
    return fingerprint


async def _make(connection: Any, migration: Pending) -> None:
    for statement in migration.statements:
        try:
            await connection.execute(statement, timeout=TIMEOUT_S)
        except (asyncpg.IntegrityConstraintViolationError, asyncpg.SyntaxOrAccessError, asyncpg.DataError) as error:
            raise failed(migration, PLACE, error) from error
    parameters = dialect.Parameters(POSTGRES)
    await connection.execute(dialect.write(migration.row, parameters), *parameters.values)
