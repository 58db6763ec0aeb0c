"""Large values apart, and the indexes that find what refers to them."""

from workflows.storage.migrations.changes import AddIndex, AddTable
from workflows.storage.migrations.history import Migration
from workflows.storage.schema import Column, Index, Table

_TABLE = Table(
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


BLOBS = Migration("blobs", (AddTable(_TABLE), *(_apart(table, column) for table, column in _REFERRING)))
