"""Steps: records that finished together, and all that belongs to their commit, under the run's fence."""

from pydantic_core import to_json

from workflows.storage.base import Record, RunState, StepBatch, StepOutcome
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.signals import LIVE_CONFLICT, RING, SignalOperations
from workflows.storage.rows import record

LOAD = "select path, status, output, error, started_at, seq, finished_at from steps where run_id = $1 order by seq"

# $1 run $2 fence $3 paths $4 outputs $5 statuses $6 errors $7 started $8 done $9 inbox seen $10 signals used $11-$13 hints
# $14-$20 children: ids, workflows, versions, keys, queues, inputs, parent paths $21 fresh id for a parent's next run $22 the run's output
# $23 the children's max_attempts
STEP = f"""
with f as (
  update runs set step_seq = step_seq + cardinality($3::text[]), attempts = 0,
         state = case when $8 then 'done' else state end, owner = case when $8 then null else owner end,
         output = case when $8 then $22::bytea else output end,
         finished_at = case when $8 then threadline_now() end
   where run_id = $1 and fence = $2 and state = 'running' and (not $8 or (inbox_seq = $9 and not cancel_requested))
     and not exists (select from steps where run_id = $1 and path = any($3))
  returning *),
i as (insert into steps (run_id, path, seq, fence, status, output, error, started_at)
      select f.run_id, t.path, f.step_seq - cardinality($3) + t.n, $2, t.status, t.output, t.error::json, t.started
        from f, unnest($3, $4::bytea[], $5::text[], $6::text[], $7::timestamptz[]) with ordinality t(path, output, status, error, started, n)
      on conflict do nothing returning run_id),
g as (select f.* from f where cardinality($3) = 0 or exists (select from i)),
c as (update signals s set consumed_by = coalesce($3[1], '$end') from g
       where s.run_id = g.run_id and s.seq = any($10::bigint[]) and s.consumed_by is null returning s.seq),
o as (insert into outbox (topic, type, data) select t.topic, t.type, t.data::json from g, unnest($11::text[], $12::text[], $13::text[]) t(topic, type, data)),
k as (insert into runs (run_id, tenant, workflow, version, key, queue, input, parent_id, parent_path, trace_id, max_attempts)
      select t.id, g.tenant, t.workflow, t.version, t.key, t.queue, t.input, g.run_id, t.path, g.trace_id, t.attempts
        from g, unnest($14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::bytea[], $20::text[], $23::bigint[])
             t(id, workflow, version, key, queue, input, path, attempts)
      on conflict do nothing),
p as (select q.tenant, q.workflow, q.version, q.key, q.queue, q.trace_id, q.max_attempts from g join runs q on q.run_id = g.parent_id where $8 and q.key is not null),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, max_attempts, inbox_seq)
      select $21 || '-p', tenant, workflow, version, key, queue, trace_id, max_attempts, 1 from p
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload)
      select r.run_id, r.inbox_seq, 'task', 'task:' || $1,
             convert_to(json_build_object('run_id', $1::text, 'path', g.parent_path, 'state', 'done')::text, 'utf8') from r, g
      on conflict do nothing)
"""
"""`f` locks the run's row and checks its fence; everything else follows from it, through `g`."""

STEP_RESULT = """
select (select count(*) from g) as applied, (select inbox_seq from f) as inbox_seq,
       (select cancel_requested from f) as cancel_requested, (select run_id from r) as parent_run
"""

# $1 run $2 paths $3 fence
STEP_AGAIN = """
select state, fence, inbox_seq, cancel_requested,
       (select count(*) from steps where run_id = $1 and path = any($2::text[]) and fence = $3) as existing
  from runs where run_id = $1
"""
"""Asked in a new statement when STEP applied nothing: its own snapshot may predate the lock it waited for."""


class StepOperations(SignalOperations):
    """Records steps and reads them back."""

    async def load(self, run_id: str) -> list[Record]:
        return [record(POSTGRES, row) for row in await self._fetch(LOAD, run_id)]

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        records, hints, children = batch.records, batch.hints, batch.children
        row = await self._guarded(
            STEP, STEP_RESULT, run_id, fence, [r.path for r in records], [r.output for r in records], [r.status.value for r in records],
            [POSTGRES.encode("json", r.error) for r in records], [r.started_at for r in records], batch.done, batch.inbox_seen,
            list(batch.consumed), [h.topic for h in hints], [h.type for h in hints], [to_json(h.data).decode() for h in hints],
            [c.run_id for c in children], [c.workflow for c in children], [c.version for c in children], [c.key for c in children],
            [c.queue for c in children], [c.input for c in children], [c.parent_path for c in children], batch.successor_id,
            batch.output, [c.max_attempts for c in children], writes=batch.writes,
        )  # fmt: skip
        assert row is not None
        if not row["applied"]:
            return await self._step_refused(run_id, fence, batch)
        return StepOutcome(
            recorded=True, owned=not batch.done, inbox_seq=row["inbox_seq"], cancel_requested=row["cancel_requested"],
            parent_run=row["parent_run"],
        )  # fmt: skip

    async def _step_refused(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = await self._row(STEP_AGAIN, run_id, [r.path for r in batch.records], fence)
        if row is None:
            return StepOutcome(recorded=False, owned=False, inbox_seq=0, cancel_requested=False)
        mine = row["fence"] == fence
        if batch.done:
            recorded = mine and row["state"] == RunState.DONE
        else:
            recorded = bool(batch.records) and row["existing"] == len(batch.records)
        owned = mine and row["state"] == RunState.RUNNING
        return StepOutcome(recorded, owned, row["inbox_seq"], row["cancel_requested"])
