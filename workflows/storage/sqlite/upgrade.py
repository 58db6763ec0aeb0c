"""Brings a SQLite file up to date: all it lacks in one transaction, which the caller has begun with BEGIN IMMEDIATE."""

import sqlite3
from collections.abc import Sequence

from workflows.storage import dialect
from workflows.storage.migrations import Schema
from workflows.storage.migrations.plan import ALL_APPLIED, UNVERSIONED, Pending, bookkeeping, failed, pending

SQLITE = dialect.Sqlite()
PASSING = ("locked", "busy", "disk", "full", "unable to open", "interrupted")
"""Words of faults that may pass; any other is a fault of ours or of the file, and trying again would go on for ever."""

MAKE_CLOCK = (
    "create table if not exists threadline_clock (offset_us integer not null)",
    "insert into threadline_clock select 0 where not exists (select 1 from threadline_clock)",
)
"""What is added to this machine's clock; 0 outside tests."""

EXISTS = "select 1 from sqlite_master where type = 'table' and name = ?1"
UNVERSIONED_FINGERPRINT = f"select fingerprint from {UNVERSIONED}"
DROP_UNVERSIONED = f"drop table {UNVERSIONED}"


def upgrade(connection: sqlite3.Connection, schemas: Sequence[Schema], *, place: str) -> None:
    """Make every migration the file lacks. Raises SchemaError; the caller rolls back."""
    for statement in (*MAKE_CLOCK, *bookkeeping(SQLITE)):
        connection.execute(statement)
    unversioned = _unversioned(connection)
    rows = connection.execute(dialect.select(ALL_APPLIED, dialect.Parameters(SQLITE))).fetchall()
    applied = [dialect.decode_row(SQLITE, ALL_APPLIED.table, row) for row in rows]
    for each in pending(schemas, applied, SQLITE, place=place, unversioned=unversioned):
        _make(connection, each, place)


def _unversioned(connection: sqlite3.Connection) -> str | None:
    if connection.execute(EXISTS, (UNVERSIONED,)).fetchone() is None:
        return None
    row = connection.execute(UNVERSIONED_FINGERPRINT).fetchone()
    connection.execute(DROP_UNVERSIONED)
    return None if row is None else str(row[0])


def _make(connection: sqlite3.Connection, migration: Pending, place: str) -> None:
    for statement in migration.statements:
        try:
            connection.execute(statement)
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError) and passing(error):
                raise
            raise failed(migration, place, error) from error
    parameters = dialect.Parameters(SQLITE)
    connection.execute(dialect.write(migration.row, parameters), parameters.values)


def passing(error: sqlite3.OperationalError) -> bool:
    """Whether a fault may pass."""
    return any(word in str(error) for word in PASSING)
