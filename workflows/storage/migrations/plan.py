"""What a database still lacks, worked out from what it says was done to it. The stores run it, under a lock, in one transaction.

Prior art: numbered migrations with checksums (Flyway), and an additive flag that lets the version before run on during a deploy.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workflows.errors import SchemaError
from workflows.storage.ddl import create
from workflows.storage.dialect import Dialect
from workflows.storage.migrations.history import Migration, Schema, fingerprint
from workflows.storage.schema import Column, Insert, Select, Table

APPLIED = Table(
    "threadline_migrations",
    (
        Column("schema", "text"),
        Column("number", "int"),  # from 1
        Column("name", "text"),
        Column("additive", "bool"),
        Column("fingerprint", "text"),
        Column("applied_at", "time", default="now"),
    ),
    ("schema", "number"),
    shared=True,
)
"""One row per migration that was made."""

ALL_APPLIED = Select(APPLIED, {}, order=("schema", "number"))
UNVERSIONED = "threadline_schema"
"""The table of databases from before there were migrations: one row with the fingerprint of their tables, which are the baseline."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One migration to make: its statements, and the row that says it was made, in one transaction with all others."""

    name: str
    statements: list[str]
    row: Insert


def bookkeeping(dialect: Dialect) -> list[str]:
    """The statements that make the table of migrations where it is not there."""
    return create(APPLIED, dialect, if_not_exists=True)


def pending(
    schemas: Sequence[Schema],
    applied: Sequence[dict[str, Any]],
    dialect: Dialect,
    *,
    place: str,
    unversioned: str | None,
) -> list[Pending]:
    """The migrations that `place` lacks, in order. `unversioned`: the fingerprint of a database that knows of no migrations.

    Raises SchemaError if a schema's tables are not what its migrations yield, if `place` has another history, or if it was migrated
    by a newer version in a way that this one can't work with.
    """
    for schema in schemas:
        schema.check(dialect)
    adopted = 0 if unversioned is None else _recognised(schemas, unversioned, dialect, place)
    todo: list[Pending] = []
    for position, schema in enumerate(schemas):
        done = [row for row in applied if row["schema"] == schema.name]
        made = 1 if position < adopted else _compared(schema, done, dialect, place)
        for number, migration in enumerate(schema.migrations[len(done) :], len(done) + 1):
            statements = migration.statements(dialect) if number > made else []
            todo.append(Pending(migration.name, statements, _row(schema, number, migration, dialect)))
    return todo


def _compared(schema: Schema, done: Sequence[dict[str, Any]], dialect: Dialect, place: str) -> int:
    """How many of the schema's migrations `place` has."""
    for number, (row, migration) in enumerate(zip(done, schema.migrations, strict=False), 1):
        if (row["number"], row["name"], row["fingerprint"]) != (number, migration.name, migration.fingerprint(dialect)):
            raise SchemaError(
                f"the data in {place} was made by another version: its migration {row['number']} of {schema.name!r} is {row['name']!r}, "
                f"which is not the {migration.name!r} this version knows. {WAY_OUT}"
            )
    newer = done[len(schema.migrations) :]
    breaking = [f"{row['number']} ({row['name']})" for row in newer if not row["additive"]]
    if breaking:
        raise SchemaError(
            f"the data in {place} was migrated by a newer version, in a way this one can't work with: "
            f"{schema.name!r} {', '.join(breaking)}; this version knows {len(schema.migrations)} migrations of it. "
            "Start the newer version, or restore a backup from before it."
        )
    return len(done)


WAY_OUT = "In development, `./dev reset` empties it; in production, start the version that made it, or restore a backup taken by this one."


def failed(migration: Pending, place: str, error: Exception) -> SchemaError:
    """The error for a migration whose statements the database refuses."""
    return SchemaError(
        f"the migration {migration.row.values['number']} ({migration.name}) of {migration.row.values['schema']!r} can't be made in "
        f"{place}, and nothing was changed: {type(error).__name__}: {error}"
    )


def _recognised(schemas: Sequence[Schema], found: str, dialect: Dialect, place: str) -> int:
    """How many of the schemas, from the first, a database without migrations has at their baseline."""
    for count in range(len(schemas), 0, -1):
        if found == fingerprint(_tables(schemas[:count]), dialect):
            return count
    raise SchemaError(f"the data in {place} was made by another version of Threadline's schema. {WAY_OUT}")


def _tables(schemas: Iterable[Schema]) -> list[Table]:
    return [table for schema in schemas for table in schema.baseline]


def _row(schema: Schema, number: int, migration: Migration, dialect: Dialect) -> Insert:
    values = {
        "schema": schema.name,
        "number": number,
        "name": migration.name,
        "additive": migration.additive,
        "fingerprint": migration.fingerprint(dialect),
    }
    return Insert(APPLIED, values, on_conflict="fail")
