"""DDL rendered from tables as data."""

from typing import Any

from workflows.storage.dialect import Dialect, Postgres, Sqlite
from workflows.storage.schema import Column, Index, Table

HOT = " with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)"
"""Room in each page for the next version of a row, so that an update touches no index and is cleaned up early."""


def create(table: Table, dialect: Dialect, *, if_not_exists: bool = False) -> list[str]:
    """The statements that make `table` and its indexes."""
    postgres = isinstance(dialect, Postgres)
    lines = [column_of(column, dialect) for column in table.columns]
    lines.append(f"primary key ({', '.join(table.primary_key)})")
    kind = "unlogged table" if table.unlogged and postgres else "table"
    absent = "if not exists " if if_not_exists else ""
    options = HOT if table.hot and postgres else ""
    head = f"create {kind} {absent}{table.name} (\n  " + ",\n  ".join(lines) + f"\n){options}"
    return [head, *(index_of(table.name, index, dialect) for index in table.indexes)]


def column_of(column: Column, dialect: Dialect) -> str:
    """One column as it stands in CREATE TABLE and after ADD COLUMN."""
    if column.default == "identity":
        return f"{column.name} {dialect.identity}"
    sql = f"{column.name} {dialect.types[column.type]}" + ("" if column.null else " not null")
    if column.default is None:
        return sql
    return f"{sql} default {dialect.now if column.default == 'now' else _literal(column.default, dialect)}"


def _literal(value: Any, dialect: Dialect) -> str:
    if isinstance(value, bool):
        return str(int(value)) if isinstance(dialect, Sqlite) else str(value).lower()
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def index_of(table: str, index: Index, dialect: Dialect) -> str:
    """The statement that makes `index` on `table`."""
    unique = "unique " if index.unique else ""
    where = f" where {index.where}" if index.where else ""
    method = " using brin" if index.by_block and isinstance(dialect, Postgres) else ""
    return f"create {unique}index {index.name} on {table}{method} ({', '.join(index.columns)}){where}"
