"""Rules for schedules, and what became of each firing."""

from workflows.storage.migrations.changes import AddColumn, AddTable
from workflows.storage.migrations.history import Migration
from workflows.storage.schema import Column, Index, Table

_TABLE = Table(
    "firings",
    (
        Column("tenant", "text"),
        Column("schedule", "text"),
        Column("run_id", "text"),
        Column("due_at", "time"),
        Column("cause", "text", default="time"),
        Column("status", "text"),
        Column("reason", "text", null=True),
        Column("missed", "int", default=0),
        Column("fired_at", "time", default="now"),
        Column("delivery", "text", null=True),
        Column("delivery_detail", "text", null=True),
        Column("delivered_at", "time", null=True),
    ),
    ("tenant", "run_id"),
    (
        Index("firings_newest", ("tenant", "schedule", "due_at")),
        Index("firings_queued", ("tenant", "schedule", "due_at"), where="status = 'queued'"),
    ),
)

FIRINGS = Migration(
    "firings",
    (
        AddColumn("schedules", Column("due_at", "time", null=True)),
        AddColumn("schedules", Column("catch_up", "text", default="one")),
        AddColumn("schedules", Column("catch_up_limit", "int", default=100)),
        AddColumn("schedules", Column("grace_s", "float", default=60.0)),
        AddColumn("schedules", Column("overlap", "text", default="allow")),
        AddColumn("schedules", Column("jitter_s", "float", default=0.0)),
        AddColumn("schedules", Column("ends_at", "time", null=True)),
        AddColumn("schedules", Column("max_firings", "int", null=True)),
        AddColumn("schedules", Column("fired", "int", default=0)),
        AddColumn("schedules", Column("ended", "bool", default=False)),
        AddColumn("schedules", Column("paused_reason", "text", null=True)),
        AddColumn("schedules", Column("queue", "text", default="default")),
        AddTable(_TABLE),
    ),
)
