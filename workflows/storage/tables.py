"""The engine's own tables. The floors above add theirs to the list they give to a store."""

from workflows.storage.blobs import REFERENCE
from workflows.storage.schema import Column, Index, Table

LIVE = "state in ('ready','running','suspended')"


def refers(table: str, column: str) -> Index:
    """The index of the rows of `table` whose `column` refers to a blob, by the blob's digest."""
    return Index(f"{table}_{column}_apart", (f"substr({column}, 2)",), where=f"length({column}) = {REFERENCE}")


RUNS = Table(
    "runs",
    (
        Column("run_id", "text"),  # UUIDv7, made by the client: ids sort by age
        Column("tenant", "text"),
        Column("workflow", "text"),
        Column("version", "text", default="1"),
        Column("key", "text", null=True),
        Column("queue", "text", default="default"),
        Column("priority", "int", default=100),
        Column("state", "text", default="ready"),
        Column("fence", "int", default=0),  # bumped by every claim, reap and release: the only safety token
        Column("owner", "text", null=True),
        Column("attempts", "int", default=0),
        Column("max_attempts", "int", default=5),
        Column("step_seq", "int", default=0),
        Column("inbox_seq", "int", default=0),  # accepted signals: the condition variable of suspensions and ends
        Column("cancel_requested", "bool", default=False),
        Column("available_at", "time", default="now"),
        Column("parent_id", "text", null=True),
        Column("parent_path", "text", null=True),
        Column("input", "value", null=True),
        Column("output", "value", null=True),
        Column("error", "json", null=True),
        Column("trace_id", "text", null=True),
        Column("deployment", "text", null=True),
        Column("created_at", "time", default="now"),
        Column("finished_at", "time", null=True),
        Column("forked_from", "text", null=True),
        Column("forked_seq", "int", null=True),
        Column("paused", "bool", default=False),  # a run that takes one step for each it is told to
    ),
    ("run_id",),
    (
        Index("runs_live_key", ("tenant", "workflow", "key"), unique=True, where=f"key is not null and {LIVE}"),
        Index("runs_due", ("queue", "priority", "available_at", "run_id"), where="state in ('ready','suspended')"),
        Index("runs_owned", ("owner",), where="state = 'running'"),
        Index("runs_by_key", ("tenant", "key", "run_id")),
        refers("runs", "input"),
        refers("runs", "output"),
        Index("runs_ended", ("finished_at",), where="finished_at is not null"),
        Index("runs_by_parent", ("parent_id",), where="parent_id is not null"),
        Index("runs_by_source", ("forked_from",), where="forked_from is not null"),
    ),
    hot=True,
)

STEPS = Table(
    "steps",
    (
        Column("run_id", "text"),
        Column("path", "text"),
        Column("seq", "int"),
        Column("fence", "int"),
        Column("status", "text"),
        Column("output", "value", null=True),
        Column("error", "json", null=True),
        Column("started_at", "time", null=True),
        Column("finished_at", "time", default="now"),
    ),
    ("run_id", "path"),
    (refers("steps", "output"),),
    shared=True,  # reached through its run, which names the tenant
)

SIGNALS = Table(
    "signals",
    (
        Column("run_id", "text"),
        Column("seq", "int"),
        Column("name", "text"),
        Column("dedup_key", "text"),
        Column("payload", "value", null=True),
        Column("created_at", "time", default="now"),
        Column("carried", "int", default=0),
        Column("consumed_by", "text", null=True),
    ),
    ("run_id", "seq"),
    (Index("signals_dedup", ("run_id", "dedup_key"), unique=True), refers("signals", "payload")),
    shared=True,
)

RECEIVED = Table(
    "received",
    (Column("tenant", "text"), Column("dedup_key", "text"), Column("at", "time", default="now")),
    ("tenant", "dedup_key"),
    (Index("received_at", ("at",)),),
)

DEAD_SIGNALS = Table(
    "dead_signals",
    (
        Column("tenant", "text"),
        Column("run_id", "text"),
        Column("seq", "int"),
        Column("workflow", "text"),
        Column("key", "text", null=True),
        Column("name", "text"),
        Column("dedup_key", "text"),
        Column("payload", "value", null=True),
        Column("carried", "int", default=1),
        Column("created_at", "time"),
        Column("died_at", "time", default="now"),
    ),
    ("tenant", "run_id", "seq"),
    (
        Index("dead_signals_newest", ("tenant", "died_at")),
        refers("dead_signals", "payload"),
        Index("dead_signals_oldest", ("died_at",)),
        Index("dead_signals_dedup", ("tenant", "dedup_key")),
    ),
)

WORKERS = Table(
    "workers",
    (
        Column("worker_id", "text"),
        Column("host", "text", null=True),
        Column("deployment", "text", null=True),
        Column("started_at", "time", default="now"),
        Column("lease_until", "time"),
    ),
    ("worker_id",),
    shared=True,
    unlogged=True,  # after a crash it is empty and reads as "all gone", which is safe
)

APPROVALS = Table(
    "approvals",
    (
        Column("tenant", "text"),
        Column("id", "text"),
        Column("workflow", "text"),
        Column("key", "text"),
        Column("state", "text", default="pending"),
        Column("by_user", "text", null=True),
        Column("reason", "text", null=True),
        Column("created_at", "time", default="now"),
        Column("decided_at", "time", null=True),
        Column("expires_at", "time"),
        Column("body", "json"),
    ),
    ("tenant", "id"),
    (
        Index("approvals_pending", ("expires_at",), where="state = 'pending'"),
        Index("approvals_decided", ("decided_at",), where="decided_at is not null"),
    ),
)

SCHEDULES = Table(
    "schedules",
    (
        Column("tenant", "text"),
        Column("name", "text"),
        Column("workflow", "text"),
        Column("version", "text", default="1"),
        Column("spec", "text"),
        Column("tz", "text"),
        Column("next_at", "time"),
        Column("last_at", "time", null=True),
        Column("paused", "bool", default=False),
        Column("input", "value", null=True),
        Column("due_at", "time", null=True),
        Column("catch_up", "text", default="one"),
        Column("catch_up_limit", "int", default=100),
        Column("grace_s", "float", default=60.0),
        Column("overlap", "text", default="allow"),
        Column("jitter_s", "float", default=0.0),
        Column("ends_at", "time", null=True),
        Column("max_firings", "int", null=True),
        Column("fired", "int", default=0),
        Column("ended", "bool", default=False),
        Column("paused_reason", "text", null=True),
        Column("queue", "text", default="default"),
    ),
    ("tenant", "name"),
    (Index("schedules_due", ("next_at",), where="not paused"), refers("schedules", "input")),
)

FIRINGS = Table(
    "firings",
    (
        Column("tenant", "text"),
        Column("schedule", "text"),
        Column("run_id", "text"),  # derived from the schedule and the time, so that one time fires once
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
        Index("firings_oldest", ("fired_at",)),
    ),
)

SPANS = Table(
    "spans",
    (
        Column("tenant", "text"),
        Column("trace_id", "text"),
        Column("span_id", "text"),
        Column("parent_id", "text", null=True),
        Column("run_id", "text", null=True),
        Column("name", "text"),
        Column("kind", "text"),
        Column("status", "text"),
        Column("started_at", "time"),
        Column("ended_at", "time", null=True),
        Column("attributes", "json", null=True),
        Column("owner", "text", null=True),  # the worker that had it open when it was last written
    ),
    ("tenant", "trace_id", "span_id"),
    (Index("spans_open", ("owner",), where="status = 'open'"), Index("spans_started", ("started_at",), by_block=True)),
    domain="spans",  # written in batches, and never with a step
)
"""Spans that are open, and have been for a while; and ended ones from before there were `traces`, until their days are over."""

TRACES = Table(
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
    domain="spans",
)
"""Ended spans, those of one trace that were written together in one row; see `workflows.storage.traces`."""

BLOBS = Table(
    "blobs",
    (
        Column("tenant", "text"),
        Column("sha256", "bytes"),
        Column("body", "bytes"),
        Column("at", "time", default="now"),  # when something last came to refer to it, or was seen to
    ),
    ("tenant", "sha256"),
    (Index("blobs_at", ("at",)),),
)

ENGINE_TABLES = (
    RUNS,
    STEPS,
    SIGNALS,
    RECEIVED,
    DEAD_SIGNALS,
    WORKERS,
    APPROVALS,
    SCHEDULES,
    FIRINGS,
    SPANS,
    TRACES,
    BLOBS,
)

RUN_COLUMNS = ", ".join(column.name for column in RUNS.columns)
SCHEDULE_COLUMNS = ", ".join(column.name for column in SCHEDULES.columns)
TRACE_COLUMNS = ", ".join(column.name for column in TRACES.columns)
SPAN_COLUMNS = ", ".join(column.name for column in SPANS.columns)
SCHEDULE_NAMES = tuple(column.name for column in SCHEDULES.columns)
SCHEDULE_KEPT = ("next_at", "last_at", "due_at", "fired", "ended")
"""What a schedule goes on with that is put again with the same times."""
SCHEDULE_REPLACED = tuple(
    name for name in SCHEDULE_NAMES if name not in ("tenant", "name", *SCHEDULE_KEPT, "paused", "paused_reason")
)
SIGNAL_COLUMNS = "seq, name, dedup_key, payload, carried, created_at"
