"""The engine's tables and how they came to be. A change to `workflows.storage.tables` is a new migration at the end of this list."""

from workflows.storage.migrations.blobs import BLOBS
from workflows.storage.migrations.changes import AddColumn, AddIndex, DropIndex, DropTable
from workflows.storage.migrations.firings import FIRINGS
from workflows.storage.migrations.first import FIRST
from workflows.storage.migrations.history import Migration, Schema, baseline
from workflows.storage.migrations.retention import RETENTION
from workflows.storage.migrations.traces import TRACES
from workflows.storage.schema import Column, Index
from workflows.storage.tables import ENGINE_TABLES

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
    BLOBS,
    FIRINGS,
    RETENTION,
    TRACES,
    Migration(
        "no-outbox", (DropTable("outbox"),)
    ),  # hints are published by whoever commits: see workflows.running.lifecycle
)

ENGINE = Schema("engine", ENGINE_TABLES, MIGRATIONS)
