"""What one floor stores: its tables as they are now, and the migrations that led there."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from workflows.errors import SchemaError
from workflows.storage.ddl import create
from workflows.storage.dialect import Dialect
from workflows.storage.migrations.changes import AddTable, Change, Tables
from workflows.storage.schema import Table


@dataclass(frozen=True, slots=True)
class Migration:
    """Changes made in one transaction. Its number is its place in its schema's list. Once released it is never edited."""

    name: str
    changes: tuple[Change, ...]

    @property
    def additive(self) -> bool:
        """Whether the version before it can go on working beside it."""
        return all(change.additive for change in self.changes)

    def statements(self, dialect: Dialect) -> list[str]:
        """The statements of all its changes, in order."""
        return [statement for change in self.changes for statement in change.statements(dialect)]

    def fingerprint(self, dialect: Dialect) -> str:
        """A hash of its statements: whether a database was migrated by this very migration."""
        return _hash(self.statements(dialect))


@dataclass(frozen=True, slots=True)
class Schema:
    """A floor's tables and the migrations, oldest first, that yield them. Names are unique within a database."""

    name: str
    tables: tuple[Table, ...]
    migrations: tuple[Migration, ...]

    def check(self, dialect: Dialect) -> None:
        """Raise SchemaError, naming the table and line, unless the migrations yield exactly the tables."""
        tables, replayed = {table.name: table for table in self.tables}, self._replayed()
        for name in {**tables, **replayed}:
            now, yielded = (create(each[name], dialect) if name in each else [] for each in (tables, replayed))
            if now != yielded:
                raise SchemaError(
                    f"the table {name} of the schema {self.name!r} is not what its migrations yield: {_difference(now, yielded)}. "
                    "Whoever changes a table adds a migration that makes the same change, at the end of the list."
                )

    def _replayed(self) -> Tables:
        tables: Tables = {}
        for migration in self.migrations:
            for change in migration.changes:
                try:
                    change.replay(tables)
                except ValueError as error:
                    raise SchemaError(
                        f"the migration {migration.name!r} of {self.name!r} can't be made: {error}"
                    ) from None
        return tables

    @property
    def baseline(self) -> tuple[Table, ...]:
        """The tables its first migration makes."""
        return tuple(change.table for change in self.migrations[0].changes if isinstance(change, AddTable))


def baseline(*tables: Table) -> Migration:
    """The first migration of a schema: makes its tables as they were then."""
    return Migration("baseline", tuple(AddTable(table) for table in tables))


def schemas_of(*given: Table | Schema) -> tuple[Schema, ...]:
    """Each schema as it is, and a schema of its own for each bare table: one without a history, which can be made but never changed.

    Raises ValueError if two have one name.
    """
    schemas = tuple(
        each if isinstance(each, Schema) else Schema(each.name, (each,), (baseline(each),)) for each in given
    )
    names = [each.name for each in schemas] + [
        table.name for each in schemas for table in each.tables if each.name != table.name
    ]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"each schema and table is registered once; these are registered twice: {', '.join(twice)}")
    return schemas


def fingerprint(tables: Iterable[Table], dialect: Dialect) -> str:
    """A hash of the DDL of all tables: equal schemas, equal fingerprints."""
    return _hash(statement for table in tables for statement in create(table, dialect))


def _hash(statements: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()


def _difference(now: list[str], yielded: list[str]) -> str:
    lines = [
        [line.strip().rstrip(",") for statement in each for line in statement.splitlines()] for each in (now, yielded)
    ]
    for ours, theirs in zip_longest(*lines):
        if ours != theirs:
            return f"the table says {ours or 'nothing'!r} where they say {theirs or 'nothing'!r}"
    return "nothing differs"
