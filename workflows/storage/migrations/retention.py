"""What finds the rows whose days are over, and what may still need them."""

from workflows.storage.migrations.changes import AddIndex
from workflows.storage.migrations.history import Migration
from workflows.storage.schema import Index

RETENTION = Migration(
    "retention",
    (
        AddIndex("runs", Index("runs_ended", ("finished_at",), where="finished_at is not null")),
        AddIndex("runs", Index("runs_by_parent", ("parent_id",), where="parent_id is not null")),
        AddIndex("runs", Index("runs_by_source", ("forked_from",), where="forked_from is not null")),
        AddIndex("dead_signals", Index("dead_signals_oldest", ("died_at",))),
        AddIndex("dead_signals", Index("dead_signals_dedup", ("tenant", "dedup_key"))),
        AddIndex("approvals", Index("approvals_decided", ("decided_at",), where="decided_at is not null")),
        AddIndex("firings", Index("firings_oldest", ("fired_at",))),
        AddIndex("spans", Index("spans_started", ("started_at",), by_block=True)),
    ),
)
