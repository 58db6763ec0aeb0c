"""Signals, and what brings them to a run: the live one of a key, or a new one."""

from collections.abc import Sequence

import asyncpg

from workflows.storage.base import NewRun, Signal, SignalOutcome
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import Rows
from workflows.storage.rows import signal
from workflows.storage.schema import Write
from workflows.storage.tables import LIVE, SIGNAL_COLUMNS

LIVE_CONFLICT = f"(tenant, workflow, key) where key is not null and {LIVE}"
"""The one live run of a key, as ON CONFLICT names it."""

RUNG = """inbox_seq = runs.inbox_seq + 1,
    available_at = case runs.state when 'suspended' then threadline_now() else runs.available_at end,
    state = case runs.state when 'suspended' then 'ready' else runs.state end"""
"""What accepting a signal does to a live run: count it, and wake the run if it sleeps."""
RING = f"do update set {RUNG}"

SIGNALLED = "coalesce({0}.input, 'null') = 'null'"
"""A run that signals alone began: another one can begin the same way."""

# a fresh id, the state the child ended in
WAKE_PARENT = f"""b as (update runs set {RUNG} from g where runs.run_id = g.parent_id and runs.{LIVE} returning runs.run_id, runs.inbox_seq, runs.queue),
p as (select q.tenant, q.workflow, q.version, q.key, q.queue, q.trace_id, q.max_attempts, q.deployment
        from g join runs q on q.run_id = g.parent_id where q.key is not null and not exists (select from b) and ({SIGNALLED.format("q")} or exists
             (select from runs l where l.tenant = q.tenant and l.workflow = q.workflow and l.key = q.key and l.{LIVE} and l.run_id <> q.run_id))),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, max_attempts, deployment, inbox_seq)
      select {{0}} || '-p', tenant, workflow, version, key, queue, trace_id, max_attempts, deployment, 1 from p
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq, queue),
e as (select * from b union all select * from r),
s as (insert into signals (run_id, seq, name, dedup_key, payload)
      select e.run_id, e.inbox_seq, 'task', 'task:' || $1,
             convert_to(json_build_object('run_id', $1::text, 'path', g.parent_path, 'state', {{1}})::text, 'utf8') from e, g
      on conflict do nothing)"""
"""The end of a child (`g`) is a signal to its parent while that lives (`b`), else a signal-with-start at its key, if it has one. Of a parent that
was started with a value only another live run of the key is woken: that one itself may have ended since the statement's snapshot.
"""
WOKEN_PARENT = "(select queue from e) as parent_queue"
"""The queue of the run that was woken or began."""

# $1 tenant $2 workflow $3 version $4 key $5 id for a new run $6 dedup key $7 name $8 payload $9 queue $10 trace $11 input $12 max_attempts
# $13 priority $14 deployment $15 the worker that claims a new run
SIGNAL_WITH_START = f"""
with g as (insert into received (tenant, dedup_key) values ($1, $6) on conflict do nothing returning tenant),
o as materialized (select exists (select from workers where worker_id = $15::text) as lives from g),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, input, max_attempts, priority, deployment, inbox_seq,
                        state, owner, fence, attempts)
      select $5, $1, $2, $3, $4, $9, $10, $11::bytea, $12::bigint, $13::bigint, $14::text, 1,
             case when lives then 'running' else 'ready' end, case when lives then $15 end, lives::int, lives::int from o
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq, queue, owner),
s as (insert into signals (run_id, seq, name, dedup_key, payload) select run_id, inbox_seq, $7, $6, $8 from r)
"""
SIGNAL_WITH_START_RESULT = """
(select run_id from r) as run_id, (select inbox_seq from r) as seq, (select queue from r) as queue, coalesce((select run_id = $5 and owner = $15 from r), false) as claimed
"""

# $1 run $2 name $3 dedup key $4 payload $5 tenant
SIGNAL = f"""
with g as (update runs set inbox_seq = inbox_seq + 1, cancel_requested = cancel_requested or $2 = '$cancel',
        available_at = case when state = 'suspended' then threadline_now() else available_at end,
        state = case when state = 'suspended' then 'ready' else state end
      where run_id = $1 and tenant = $5 and {LIVE}
        and not exists (select from signals where run_id = $1 and dedup_key = $3) returning run_id, tenant, inbox_seq, queue),
s as (insert into signals (run_id, seq, name, dedup_key, payload) select run_id, inbox_seq, $2, $3, $4 from g returning seq)
"""
"""A cancel also sets the flag, so that neither SUSPEND nor the end can pass it. The same signal twice at once: the second waits for the run's row,
and does not see the first; its key refuses it, and it is asked again.
"""

SIGNAL_RESULT = "(select seq from s) as seq, (select queue from g) as queue, exists (select from signals where run_id = $1 and dedup_key = $3) as duplicate"

# $1 run $2 dedup key
SIGNAL_BY_KEY = f"select {SIGNAL_COLUMNS} from signals where run_id = $1 and dedup_key = $2"

INBOX = f"select {SIGNAL_COLUMNS} from signals where run_id = $1 and consumed_by is null order by seq"


class SignalOperations(Rows):
    """Accepts signals."""

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        row = await self._guarded(
            SIGNAL_WITH_START, SIGNAL_WITH_START_RESULT, run.tenant, run.workflow, run.version, run.key, run.run_id, dedup_key, name,
            payload, run.queue, run.trace_id, run.input, run.max_attempts, run.priority, run.deployment, run.owner,
            writes=writes,
        )  # fmt: skip
        started = row["run_id"] == run.run_id
        return SignalOutcome(
            row["run_id"], row["seq"], started, not row["applied"], claimed=row["claimed"], queue=row["queue"]
        )

    async def signal(
        self, run_id: str, *, tenant: str, name: str, dedup_key: str, payload: bytes | None
    ) -> SignalOutcome:
        try:
            row = await self._guarded(SIGNAL, SIGNAL_RESULT, run_id, name, dedup_key, payload, tenant)
        except asyncpg.UniqueViolationError:
            row = await self._guarded(SIGNAL, SIGNAL_RESULT, run_id, name, dedup_key, payload, tenant)
        accepted = row["seq"] is not None
        return SignalOutcome(
            run_id if accepted else None,
            row["seq"],
            started=False,
            duplicate=not accepted and row["duplicate"],
            queue=row["queue"],
        )

    async def signal_payload(self, run_id: str, dedup_key: str) -> bytes | None:
        found = [signal(POSTGRES, row) for row in await self._fetch(SIGNAL_BY_KEY, run_id, dedup_key)]
        return next((each.payload or b"null" for each in await self._whole(found, run_id=run_id)), None)

    async def inbox(self, run_id: str) -> list[Signal]:
        return await self._whole([signal(POSTGRES, row) for row in await self._fetch(INBOX, run_id)], run_id=run_id)
