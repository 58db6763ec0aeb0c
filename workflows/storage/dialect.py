"""What differs between SQL dialects, and the statements rendered from tables, writes and selects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from pydantic_core import from_json, to_json

from workflows.storage.blobs import Apart
from workflows.storage.moments import EPOCH, MICROSECOND
from workflows.storage.schema import Column, ColumnType, Insert, Is, Select, Table, Update, Where, Write


class Dialect(Protocol):
    """One SQL dialect: column types, placeholders, and how Python values travel."""

    types: Mapping[ColumnType, str]
    identity: str
    now: str
    starts_with: str
    """A condition: that `{column}` begins with the parameter `{prefix}`."""

    def placeholder(self, position: int, type_: ColumnType) -> str:
        """The n-th parameter (from 1), with a cast where the dialect needs one."""
        ...

    def encode(self, type_: ColumnType, value: Any) -> Any:
        """A Python value as the driver wants it."""
        ...

    def decode(self, type_: ColumnType, value: Any) -> Any:
        """A driver's value as Python."""
        ...


class Sqlite:
    """SQLite: times are integer microseconds since 1970, JSON is text, booleans are 0 and 1."""

    types: Mapping[ColumnType, str] = {
        "text": "text",
        "int": "integer",
        "float": "real",
        "bool": "integer",
        "time": "integer",
        "json": "text",
        "bytes": "blob",
        "value": "blob",
    }
    identity = "integer"
    now = "(threadline_now())"
    starts_with = "instr({column}, {prefix}) = 1"

    def placeholder(self, position: int, type_: ColumnType) -> str:
        return "?"

    def encode(self, type_: ColumnType, value: Any) -> Any:
        if value is None:
            return None
        if type_ == "time":
            return micros(value)
        if type_ == "json":
            return to_json(value).decode()
        return int(value) if type_ == "bool" else value

    def decode(self, type_: ColumnType, value: Any) -> Any:
        if value is None:
            return None
        if type_ == "time":
            return moment(value)
        if type_ == "json":
            return from_json(value)
        return bool(value) if type_ == "bool" else value


class Postgres:
    """PostgreSQL 15+. `json`, not `jsonb`: it keeps what it was given, also a NUL escape inside a string."""

    types: Mapping[ColumnType, str] = {
        "text": "text",
        "int": "bigint",
        "float": "double precision",
        "bool": "boolean",
        "time": "timestamptz",
        "json": "json",
        "bytes": "bytea",
        "value": "bytea",
    }
    identity = "bigint generated always as identity"
    now = "threadline_now()"
    starts_with = "starts_with({column}, {prefix})"

    def placeholder(self, position: int, type_: ColumnType) -> str:
        return f"${position}::{self.types[type_]}"

    def encode(self, type_: ColumnType, value: Any) -> Any:
        return to_json(value).decode() if type_ == "json" and value is not None else value

    def decode(self, type_: ColumnType, value: Any) -> Any:
        if value is None:
            return None
        if type_ == "json":
            return from_json(value)
        return None if type_ == "time" and value.year == 9999 else value


def micros(at: datetime) -> int:
    """Microseconds since 1970 of an aware datetime."""
    return (at - EPOCH) // MICROSECOND


def moment(value: int) -> datetime | None:
    """The aware datetime of microseconds since 1970; None for what stands for infinity."""
    return None if value >= INFINITY else EPOCH + value * MICROSECOND


INFINITY = 2**62
"""SQLite's stand-in for a time that never comes."""


@dataclass(slots=True)
class Parameters:
    """Collects parameters while a statement is rendered; `start` are those already bound before it.

    Large values of `tenant` go to `apart`; of a table that names no tenant they stay.
    """

    dialect: Dialect
    start: int = 0
    values: list[Any] = field(default_factory=list)
    apart: Apart = field(default_factory=Apart)
    tenant: str | None = None

    def add(self, column: Column, value: Any) -> str:
        """Bind `value` as of `column`'s type; returns its placeholder."""
        if column.type == "value" and value is not None and self.tenant is not None:
            value = self.apart.value(value, tenant=self.tenant)
        self.values.append(self.dialect.encode(column.type, value))
        return self.dialect.placeholder(self.start + len(self.values), column.type)


def select(query: Select, parameters: Parameters) -> str:
    """The SELECT of `query`, all columns in table order."""
    columns = ", ".join(column.name for column in query.table.columns)
    sql = f"select {columns} from {query.table.name} where {condition(query.table, query.where, parameters)}"
    if query.order:
        sql += " order by " + ", ".join(
            f"{name.lstrip('-')} desc" if name.startswith("-") else name for name in query.order
        )
    return sql if query.limit is None else f"{sql} limit {int(query.limit)}"


def totals(query: Select, columns: Iterable[str], parameters: Parameters) -> str:
    """The SELECT of the number of rows of `query`, and of the sums of `columns`."""
    if query.order or query.limit is not None:
        raise ValueError("totals are of all rows: the query has an order or a limit")
    sums = [f"cast(coalesce(sum({query.table.column(name).name}), 0) as bigint)" for name in columns]
    where = condition(query.table, query.where, parameters)
    return f"select {', '.join(['count(*)', *sums])} from {query.table.name} where {where}"


def condition(table: Table, where: Where, parameters: Parameters) -> str:
    """The SQL of a `Where`; of an empty one, a condition that always holds."""
    parts = [_compare(table.column(name), value, parameters) for name, value in where.items()]
    return " and ".join(parts) or "1 = 1"


def _compare(column: Column, value: Any, parameters: Parameters) -> str:
    if value is None:
        return f"{column.name} is null"
    if not isinstance(value, Is):
        return f"{column.name} = {parameters.add(column, value)}"
    if value.operator == "in":
        options = ", ".join(parameters.add(column, each) for each in value.value)
        return f"{column.name} in ({options})" if options else "1 = 0"
    if value.value is None:
        return f"{column.name} is not null"
    parameter = parameters.add(column, value.value)
    if value.operator == "starts with":
        return parameters.dialect.starts_with.format(column=column.name, prefix=parameter)
    return f"{column.name} {value.operator} {parameter}"


def write(change: Write, parameters: Parameters, *, guard: str | None = None) -> str:
    """The statement of `change`. With `guard` (a CTE's name) it takes effect only if that CTE has a row."""
    table = change.table
    parameters.tenant = (change.values if isinstance(change, Insert) else change.where).get("tenant")
    if isinstance(change, Insert):
        return _insert(change, parameters, guard)
    clause = f" and exists (select 1 from {guard})" if guard else ""
    if isinstance(change, Update):
        assigned = ", ".join(
            f"{name} = {parameters.add(table.column(name), value)}" for name, value in change.values.items()
        )
        return f"update {table.name} set {assigned} where {condition(table, change.where, parameters)}{clause}"
    return f"delete from {table.name} where {condition(table, change.where, parameters)}{clause}"


def _insert(change: Insert, parameters: Parameters, guard: str | None) -> str:
    table = change.table
    names = tuple(change.values)
    values = ", ".join(parameters.add(table.column(name), change.values[name]) for name in names)
    source = f"select {values} from {guard}" if guard else f"select {values} where 1 = 1"
    sql = f"insert into {table.name} ({', '.join(names)}) {source}"
    if change.on_conflict == "nothing":
        return f"{sql} on conflict do nothing"
    if change.on_conflict == "replace":
        changed = [name for name in names if name not in table.primary_key]
        assigned = ", ".join(f"{name} = excluded.{name}" for name in changed)
        action = f"do update set {assigned}" if changed else "do nothing"
        return f"{sql} on conflict ({', '.join(table.primary_key)}) {action}"
    return sql


def decode_row(dialect: Dialect, table: Table, row: Iterable[Any]) -> dict[str, Any]:
    """A driver's row, in table order, as a dict of Python values."""
    return {column.name: dialect.decode(column.type, value) for column, value in zip(table.columns, row, strict=True)}
