"""Runs: started, ended, suspended, listed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from workflows.storage.base import EndOutcome, NewRun, RunRow, RunState, StartOutcome, StoreUnavailableError, own_id
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import RUNNING
from workflows.storage.postgres.signals import SIGNALLED, WAKE_PARENT, WOKEN_PARENT, SignalOperations
from workflows.storage.rows import run_row
from workflows.storage.runs import RunCursor
from workflows.storage.schema import Write
from workflows.storage.tables import LIVE, RUN_COLUMNS

START = """
with o as materialized (select exists (select from workers where worker_id = $16::text) as lives),
g as (
  insert into runs (run_id, tenant, workflow, version, key, queue, priority, input, trace_id, deployment, parent_id, parent_path,
                    max_attempts, available_at, paused, state, owner, fence, attempts)
  select $1, $2, $3, $4, $5, $6, $7::bigint, $8::bytea, $9, $10, $11, $12, $13::bigint, coalesce($14::timestamptz, threadline_now()),
         $15::boolean, case when lives then 'running' else 'ready' end, case when lives then $16 end, lives::int, lives::int from o
  on conflict do nothing returning run_id, tenant, owner)
"""
START_RESULT = "(select owner from g) as owner"

# $1 run
TENANT_OF = "select tenant from runs where run_id = $1"

# $1 tenant $2 workflow $3 key
LIVE_RUN = f"select run_id from runs where tenant = $1 and workflow = $2 and key = $3 and {LIVE}"

TOLD_OF_CHILD = """(s.name = 'task' and s.dedup_key like 'task:%'
       and exists (select from runs c where c.run_id = substr(s.dedup_key, 6) and c.parent_id = g.run_id))"""
"""The end of a child. To a run that has no successor it would not have been told at all a moment later, so it is no dead letter."""

# $1 run $2 fence $3 state $4 inbox seen $5 successor's id $6 error $7 output
END = f"""
with g as (update runs set state = $3, owner = null, error = $6::json, output = $7::bytea, finished_at = threadline_now()
            where run_id = $1 and fence = $2 and {RUNNING} and inbox_seq = $4
              and step_seq = (select step_seq from runs where run_id = $1) returning *),
m as (select s.seq, row_number() over (order by s.seq) n from signals s join g using (run_id)
       where s.consumed_by is null and s.carried = 0 and g.key is not null and {SIGNALLED.format("g")} and s.name not like '$%'),
x as (select s.* from signals s join g using (run_id) where s.consumed_by is null and (s.carried > 0 or g.key is null or not {SIGNALLED.format("g")}) and s.name not like '$%'
       and not ((g.key is null or not {SIGNALLED.format("g")}) and {TOLD_OF_CHILD})),
u as (insert into runs (run_id, tenant, workflow, version, key, queue, priority, trace_id, max_attempts, deployment, inbox_seq)
      select $5, tenant, workflow, version, key, queue, priority, $5, max_attempts, deployment, (select count(*) from m) from g where exists (select from m) returning run_id),
v as (update signals s set run_id = u.run_id, seq = m.n, carried = 1 from u, m where s.run_id = $1 and s.seq = m.seq returning s.seq),
d as (insert into dead_signals (tenant, run_id, seq, workflow, key, name, dedup_key, payload, carried, created_at)
      select g.tenant, x.run_id, x.seq, g.workflow, g.key, x.name, x.dedup_key, x.payload, x.carried, x.created_at from x, g
      on conflict do nothing),
y as (update signals s set consumed_by = '$dead' from x where s.run_id = x.run_id and s.seq = x.seq),
z as (update signals s set consumed_by = '$end' from g
       where s.run_id = $1 and s.consumed_by is null and (g.key is null or not {SIGNALLED.format("g")}) and {TOLD_OF_CHILD}),
{WAKE_PARENT.format("$5", "$3::text")}
"""
"""Only if no step was committed since it looked, which may have used the signals it sees. Unread signals go to a successor of the same key
(`m u v`); those carried before, or that nobody can take up, die (`x d y`), and so do those of a run that was started with a value, since a
successor would have none.
"""

END_RESULT = f"(select run_id from u) as successor, (select count(*) from v) as carried, {WOKEN_PARENT}"

# $1 run $2 state $3 fence
ENDED = "select state = $2 and fence = $3 from runs where run_id = $1"

# $1 run $2 fence $3 inbox seen $4 until
SUSPEND = f"""
update runs set state = 'suspended', owner = null, attempts = 0, available_at = coalesce($4::timestamptz, 'infinity')
 where run_id = $1 and fence = $2 and {RUNNING} and inbox_seq = $3
   and (not cancel_requested or exists (select from steps where run_id = $1 and status = 'failed')) returning true
"""
"""A run with a failure is past cancelling: what undoes its work may wait, whoever has asked it to stop."""

# $1 run $2 tenant or null
RUN = f"select {RUN_COLUMNS} from runs where run_id = $1 and ($2::text is null or tenant = $2)"

# $1 tenant $2 workflow $3 key $4 states $5 $6 when the last run of the page before began, its id $7 limit; each but the last may be null or empty
LIST = f"""
select {RUN_COLUMNS} from runs where ($1::text is null or tenant = $1) and ($2::text is null or workflow = $2)
   and ($3::text is null or key = $3) and (cardinality($4::text[]) = 0 or state = any($4))
   and ($5::timestamptz is null or (created_at, run_id) < ($5, $6::text))
 order by created_at desc, run_id desc limit $7
"""


class RunOperations(SignalOperations):
    """Starts, ends and lists runs."""

    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        return (await self.start_owned(run, writes=writes)).run_id

    async def start_owned(self, run: NewRun, *, writes: Sequence[Write] = ()) -> StartOutcome:
        for _ in range(3):  # a live run may end between the two statements
            row = await self._guarded(
                START, START_RESULT, run.run_id, run.tenant, run.workflow, run.version, run.key, run.queue, run.priority, run.input,
                run.trace_id, run.deployment, run.parent_id, run.parent_path, run.max_attempts, run.available_at, run.paused,
                run.owner, writes=writes,
            )  # fmt: skip
            if row["applied"]:
                return StartOutcome(run.run_id, claimed=run.owner is not None and row["owner"] == run.owner)
            if (taken := await self._row(TENANT_OF, run.run_id)) is not None:
                return StartOutcome(own_id(run, taken[0]), claimed=False)
            if (live := await self._row(LIVE_RUN, run.tenant, run.workflow, run.key)) is not None:
                return StartOutcome(str(live[0]), claimed=False)
        raise StoreUnavailableError(
            f"the run {run.run_id} could not be inserted for key {run.key!r}: its live run keeps changing"
        )

    async def end(
        self,
        run_id: str,
        fence: int,
        state: RunState,
        *,
        inbox_seen: int,
        successor_id: str,
        output: bytes | None = None,
        error: dict[str, Any] | None = None,
        writes: Sequence[Write] = (),
    ) -> EndOutcome:
        row = await self._guarded(
            END, END_RESULT, run_id, fence, state.value, inbox_seen, successor_id, POSTGRES.encode("json", error), output,
            writes=writes,
        )  # fmt: skip
        if row["applied"]:
            return EndOutcome(True, row["successor"], row["carried"], parent_queue=row["parent_queue"])
        again = await self._row(ENDED, run_id, state.value, fence)
        return EndOutcome(ended=bool(again and again[0]), successor=None, carried=0)

    async def suspend(self, run_id: str, fence: int, *, inbox_seen: int, until: datetime | None) -> bool:
        return await self._row(SUSPEND, run_id, fence, inbox_seen, until) is not None

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None:
        row = await self._row(RUN, run_id, tenant)
        return None if row is None else (await self._whole([run_row(POSTGRES, row)]))[0]

    async def runs(
        self,
        *,
        tenant: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        last = (None, None) if before is None else RunCursor.parse(before)
        rows = await self._fetch(LIST, tenant, workflow, key, [state.value for state in states], *last, limit)
        return [run_row(POSTGRES, row) for row in rows]
