"""Ended spans in a table of their own, packed. Those of before stay where they are until their days are over."""

from workflows.storage.migrations.changes import AddTable
from workflows.storage.migrations.history import Migration
from workflows.storage.schema import Column, Index, Table

_TABLE = Table(
    "traces",
    (
        Column("tenant", "text"),
        Column("trace_id", "text"),
        Column("part", "bytes"),
        Column("started_at", "time"),
        Column("spans", "int"),
        Column("body", "bytes"),
    ),
    ("tenant", "trace_id", "part"),
    (Index("traces_started", ("started_at",), by_block=True),),
)

TRACES = Migration("traces", (AddTable(_TABLE),))
