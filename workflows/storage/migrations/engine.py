"""The engine's tables and how they came to be. A change to `workflows.storage.tables` is a new migration at the end of this list."""

from workflows.storage.migrations.changes import AddColumn, AddIndex, AddTable, DropIndex
from workflows.storage.migrations.firings import FIRINGS
from workflows.storage.migrations.first import FIRST
from workflows.storage.migrations.history import Migration, Schema, baseline
from workflows.storage.schema import Column, Index, Table
from workflows.storage.tables import ENGINE_TABLES

_BLOBS = Table(
    "blobs",
    (
        Column("tenant", "text"),
        Column("sha256", "bytes"),
        Column("body", "bytes"),
        Column("at", "time", default="now"),
    ),
    ("tenant", "sha256"),
    (Index("blobs_at", ("at",)),),
)
_REFERRING = (
    ("runs", "input"),
    ("runs", "output"),
    ("steps", "output"),
    ("signals", "payload"),
    ("dead_signals", "payload"),
    ("schedules", "input"),
)


def _apart(table: str, column: str) -> AddIndex:
    return AddIndex(table, Index(f"{table}_{column}_apart", (f"substr({column}, 2)",), where=f"length({column}) = 33"))


MIGRATIONS: tuple[Migration, ...] = (
    baseline(*FIRST),
    Migration(
        "forks-and-pauses",
        (
            AddColumn("runs", Column("forked_from", "text", null=True)),
            AddColumn("runs", Column("forked_seq", "int", null=True)),
            AddColumn("runs", Column("paused", "bool", default=False)),
        ),
    ),
    Migration(
        "open-spans",
        (
            AddColumn("spans", Column("owner", "text", null=True)),
            DropIndex("spans", "spans_run"),  # a run's spans are found by its trace
            AddIndex("spans", Index("spans_open", ("owner",), where="status = 'open'")),
        ),
    ),
    Migration("blobs", (AddTable(_BLOBS), *(_apart(table, column) for table, column in _REFERRING))),
    FIRINGS,
)

ENGINE = Schema("engine", ENGINE_TABLES, MIGRATIONS)
