"""Tables as data. Each table is described once; the DDL and the statements of every dialect are rendered from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ColumnType = Literal["text", "int", "float", "bool", "time", "json", "bytes", "value"]
"""In Python: str, int, float, bool, aware datetime, anything JSON can hold, bytes. A value is JSON bytes of any size (see `blobs`)."""


DEFAULT_DOMAIN = "default"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `default` is a literal of the column's type, or "now" or "identity"."""

    name: str
    type: ColumnType
    null: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Index:
    """An index over `columns`; `where` is a condition in the SQL that both dialects share.

    `by_block`: for rows that come in its order. PostgreSQL then keeps one entry per range of blocks (BRIN), and a row costs none.
    """

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    where: str | None = None
    by_block: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Every query on it must name a tenant, unless it is `shared` (service-wide data such as workers).

    `hot`: its rows are updated again and again. `unlogged`: it may be empty after a crash. `domain`: tables of one are kept in one store.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    indexes: tuple[Index, ...] = ()
    shared: bool = False
    unlogged: bool = False
    hot: bool = False
    domain: str = DEFAULT_DOMAIN

    def column(self, name: str) -> Column:
        """The column called `name`. Raises ValueError naming the table if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise ValueError(f"table {self.name} has no column {name!r}")

    @property
    def values(self) -> list[str]:
        """The columns that hold values."""
        return [column.name for column in self.columns if column.type == "value"]

    def __post_init__(self) -> None:
        if not self.shared and "tenant" not in {column.name for column in self.columns}:
            raise ValueError(f"table {self.name} has no tenant column and is not declared shared")
        names = {column.name for column in self.columns}
        if not names & {"tenant", "run_id"} and self.values:
            raise ValueError(f"table {self.name} has values, and neither a tenant nor a run whose they are")


Operator = Literal["=", "<", "<=", ">", ">=", "!=", "in", "starts with"]


@dataclass(frozen=True, slots=True)
class Is:
    """A condition other than equality, as a value of `where`: `{"at": Is(">=", start)}`; `Is("!=", None)` is IS NOT NULL.

    Raises ValueError for any other comparison with None, which no row could pass.
    """

    operator: Operator
    value: Any

    def __post_init__(self) -> None:
        if self.value is None and self.operator != "!=":
            raise ValueError(
                f"nothing is {self.operator} null; a plain None asks for null, Is('!=', None) for the others"
            )


Where = Mapping[str, Any]
"""Column to value (equality; None means IS NULL) or to an `Is`. All must hold."""


def _check(table: Table, where: Where, *, tenant: bool) -> None:
    for name in where:
        table.column(name)
    if tenant and not table.shared and where.get("tenant") is None:
        raise ValueError(f"a query on {table.name} must say which tenant it is for")


@dataclass(frozen=True, slots=True)
class Select:
    """Rows of `table` matching `where`, ordered by the `order` columns (a leading "-" descends)."""

    table: Table
    where: Where
    order: tuple[str, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        _check(self.table, self.where, tenant=True)
        _check(self.table, dict.fromkeys(name.lstrip("-") for name in self.order), tenant=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row. On a primary-key conflict: "fail", do "nothing", or "replace" the given columns of the old row."""

    table: Table
    values: Mapping[str, Any]
    on_conflict: Literal["fail", "nothing", "replace"] = "nothing"

    def __post_init__(self) -> None:
        _check(self.table, self.values, tenant=True)


@dataclass(frozen=True, slots=True)
class Update:
    """Set `values` on the rows matching `where`."""

    table: Table
    where: Where
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        _check(self.table, self.where, tenant=True)
        _check(self.table, self.values, tenant=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the rows matching `where`."""

    table: Table
    where: Where

    def __post_init__(self) -> None:
        _check(self.table, self.where, tenant=True)


Write = Insert | Update | Delete
"""A change to a table of an upper floor. Writes may ride in a step's or a signal's statement: one commit for both."""
