"""The changes a migration is made of, as data: rendered to DDL for each dialect, and replayed on tables as data.

A change is additive if the version before it still works on what it leaves: it adds what old statements do not name.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from workflows.storage.ddl import column_of, create, index_of
from workflows.storage.dialect import Dialect, Postgres
from workflows.storage.schema import Column, Index, Table

Tables = dict[str, Table]
"""Tables by name."""


class Change(Protocol):
    """One change of the schema."""

    @property
    def additive(self) -> bool:
        """Whether the version before it can go on working beside it."""
        ...

    def statements(self, dialect: Dialect) -> list[str]:
        """The statements that make it."""
        ...

    def replay(self, tables: Tables) -> None:
        """Make it on tables as data. Raises ValueError if it does not fit them."""
        ...


@dataclass(frozen=True, slots=True)
class AddTable:
    """A new table with its indexes."""

    table: Table

    @property
    def additive(self) -> bool:
        return True

    def statements(self, dialect: Dialect) -> list[str]:
        return create(self.table, dialect)

    def replay(self, tables: Tables) -> None:
        if self.table.name in tables:
            raise ValueError(f"there is a table {self.table.name} already")
        tables[self.table.name] = self.table


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column, last in its table: nullable, or with a literal default that the rows already there get.

    "now" as a default is refused: SQLite can't add such a column. Leave it null, or fill it in `Statements`.
    """

    table: str
    column: Column

    def __post_init__(self) -> None:
        where = f"the new column {self.table}.{self.column.name}"
        if self.column.default in ("now", "identity"):
            raise ValueError(f"{where} can't have the default {self.column.default!r}; make it null, or give a literal")
        if self.column.default is None and not self.column.null:
            raise ValueError(f"{where} needs a default or null=True: the table has rows that know nothing of it")

    @property
    def additive(self) -> bool:
        return True

    def statements(self, dialect: Dialect) -> list[str]:
        return [f"alter table {self.table} add column {column_of(self.column, dialect)}"]

    def replay(self, tables: Tables) -> None:
        _alter(tables, self.table, lambda table: replace(table, columns=(*table.columns, self.column)))


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column that goes, with what is in it. It must be in no key and no index."""

    table: str
    column: str

    @property
    def additive(self) -> bool:
        return False

    def statements(self, dialect: Dialect) -> list[str]:
        return [f"alter table {self.table} drop column {self.column}"]

    def replay(self, tables: Tables) -> None:
        gone = _found(tables, self.table).column(self.column)
        kept = tuple(column for column in tables[self.table].columns if column is not gone)
        _alter(tables, self.table, lambda table: replace(table, columns=kept))


@dataclass(frozen=True, slots=True)
class AddIndex:
    """A new index. A unique one is not additive: it refuses rows that the version before may write."""

    table: str
    index: Index

    @property
    def additive(self) -> bool:
        return not self.index.unique

    def statements(self, dialect: Dialect) -> list[str]:
        return [index_of(self.table, self.index, dialect)]

    def replay(self, tables: Tables) -> None:
        _alter(tables, self.table, lambda table: replace(table, indexes=(*table.indexes, self.index)))


@dataclass(frozen=True, slots=True)
class DropIndex:
    """An index that goes. `unique`: it was unique, and the version before may name it in ON CONFLICT."""

    table: str
    index: str
    unique: bool = False

    @property
    def additive(self) -> bool:
        return not self.unique

    def statements(self, dialect: Dialect) -> list[str]:
        return [f"drop index {self.index}"]

    def replay(self, tables: Tables) -> None:
        gone = [index for index in _found(tables, self.table).indexes if index.name == self.index]
        if not gone:
            raise ValueError(f"table {self.table} has no index {self.index!r}")
        if gone[0].unique and not self.unique:
            raise ValueError(f"the index {self.index} is unique; say so, since older versions may need it")
        kept = tuple(index for index in tables[self.table].indexes if index not in gone)
        _alter(tables, self.table, lambda table: replace(table, indexes=kept))


@dataclass(frozen=True, slots=True)
class DropTable:
    """A table that goes, with its rows."""

    table: str

    @property
    def additive(self) -> bool:
        return False

    def statements(self, dialect: Dialect) -> list[str]:
        return [f"drop table {self.table}"]

    def replay(self, tables: Tables) -> None:
        _found(tables, self.table)
        del tables[self.table]


@dataclass(frozen=True, slots=True)
class Statements:
    """What no other change can say, dialect by dialect: filling a column, moving rows. It must leave tables, columns and indexes alone."""

    postgres: tuple[str, ...]
    sqlite: tuple[str, ...]
    additive: bool

    def statements(self, dialect: Dialect) -> list[str]:
        return list(self.postgres if isinstance(dialect, Postgres) else self.sqlite)

    def replay(self, tables: Tables) -> None:
        return


def _found(tables: Tables, name: str) -> Table:
    if name not in tables:
        raise ValueError(f"there is no table {name!r} to change")
    return tables[name]


def _alter(tables: Tables, name: str, altered: Callable[[Table], Table]) -> None:
    tables[name] = altered(_found(tables, name))
