"""Steps: records that finished together, and all that belongs to their commit, under the run's fence."""

from typing import Any

import asyncpg

from workflows.storage.base import Record, RunState, StepBatch, StepOutcome
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import RUNNING
from workflows.storage.postgres.signals import WAKE_PARENT, WOKEN_PARENT, SignalOperations
from workflows.storage.rows import record

LOAD = "select path, status, output, error, started_at, seq, finished_at from steps where run_id = $1 order by seq"

RECALL = """
with c as materialized (select split_part(path, '@', 1) as loop, max(seq) as seq from steps
                         where run_id = $1 and status = 'checkpoint' group by 1)
select path, status, output, error, started_at, seq, finished_at from steps s
 where run_id = $1 and not exists (select from c where s.seq < c.seq and (starts_with(s.path, c.loop || '#') or starts_with(s.path, c.loop || '@')))
 order by seq
"""
"""Without what the last checkpoint of each loop stands for."""

# $1 run $2 fence $3 paths $4 outputs $5 statuses $6 errors $7 started
RECORD = f"""
with f as (
  update runs set step_seq = step_seq + cardinality($3::text[]), attempts = 0{{ending}}
   where run_id = $1 and fence = $2 and {RUNNING}{{condition}}
     and not exists (select from steps where run_id = $1 and path = any($3))
  returning run_id, tenant, step_seq, inbox_seq, cancel_requested, parent_id, parent_path, trace_id),
i as (insert into steps (run_id, path, seq, fence, status, output, error, started_at)
      select f.run_id, t.path, f.step_seq - cardinality($3) + t.n, $2, t.status, t.output, t.error::json, t.started
        from f, unnest($3, $4::bytea[], $5::text[], $6::text[], $7::timestamptz[]) with ordinality t(path, output, status, error, started, n)
      returning run_id),
g as (select f.* from f where cardinality($3) = 0 or exists (select from i))
"""
"""`f` locks the run's row and checks its fence; everything else follows from it, through `g`. A batch that was sent again while it was still
being committed waits for that lock, and does not see those records: their key refuses it, whole.
"""

STEPS_KEY = "steps_pkey"

# output, inbox seen
ENDING = ", state = 'done', owner = null, output = {0}::bytea, finished_at = threadline_now()"
CONDITION = " and inbox_seq = {0} and not cancel_requested"

# signals used
CONSUME = """,
c as (update signals s set consumed_by = coalesce($3[1], '$end') from g
       where s.run_id = g.run_id and s.seq = any({0}::bigint[]) and s.consumed_by is null)"""

# ids, workflows, versions, queues, priorities, inputs, paths, max_attempts, deployments
CHILDREN = """,
k as (insert into runs (run_id, tenant, workflow, version, queue, priority, input, parent_id, parent_path, trace_id, max_attempts, deployment)
      select t.id, g.tenant, t.workflow, t.version, t.queue, t.priority, t.input, g.run_id, t.path, g.trace_id, t.attempts, t.deployment
        from g, unnest({0}::text[], {1}::text[], {2}::text[], {3}::text[], {4}::bigint[], {5}::bytea[], {6}::text[], {7}::bigint[], {8}::text[])
             t(id, workflow, version, queue, priority, input, path, attempts, deployment)
      on conflict do nothing)"""

# fresh id for the parent's next run
PARENT = f""",
{WAKE_PARENT.format("{0}", "'done'")}"""

STEP_RESULT = "(select inbox_seq from f) as inbox_seq, (select cancel_requested from f) as cancel_requested"

NOBODY = "null as parent_queue"

# $1 run $2 paths $3 fence
STEP_AGAIN = """
select state, fence, inbox_seq, cancel_requested,
       (select count(*) from steps where run_id = $1 and path = any($2::text[]) and fence = $3) as existing
  from runs where run_id = $1
"""
"""Asked in a new statement when STEP applied nothing: its own snapshot may predate the lock it waited for."""


class StepOperations(SignalOperations):
    """Records steps and reads them back."""

    async def load(self, run_id: str, *, whole: bool = True) -> list[Record]:
        records = [record(POSTGRES, row) for row in await self._fetch(LOAD if whole else RECALL, run_id)]
        return await self._whole(records, run_id=run_id)

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        ctes, parameters = _step(run_id, fence, batch)
        result = f"{STEP_RESULT}, {WOKEN_PARENT if _tells_parent(batch) else NOBODY}"
        try:
            row = await self._guarded(ctes, result, *parameters, writes=batch.writes)
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name != STEPS_KEY:
                raise
            return await self._step_refused(run_id, fence, batch)
        if not row["applied"]:
            return await self._step_refused(run_id, fence, batch)
        return StepOutcome(True, not batch.done, row["inbox_seq"], row["cancel_requested"], row["parent_queue"])

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


def _tells_parent(batch: StepBatch) -> bool:
    return batch.done and batch.wakes_parent


def _step(run_id: str, fence: int, batch: StepBatch) -> tuple[str, list[Any]]:
    """STEP with the parts that this batch has. An absent part costs neither planning, nor executing, nor its parameters' way."""
    records = batch.records
    parameters: list[Any] = [
        run_id, fence, [r.path for r in records], [r.output for r in records], [r.status.value for r in records],
        [POSTGRES.encode("json", r.error) for r in records], [r.started_at for r in records],
    ]  # fmt: skip

    def part(template: str, *values: Any) -> str:
        parameters.extend(values)
        return template.format(*(f"${len(parameters) - len(values) + n + 1}" for n in range(len(values))))

    ending = part(ENDING, batch.output) if batch.done else ""
    condition = part(CONDITION, batch.inbox_seen) if batch.done else ""
    parts = [RECORD.format(ending=ending, condition=condition)]
    if batch.consumed:
        parts.append(part(CONSUME, list(batch.consumed)))
    if batch.children:
        columns = zip(
            *((c.run_id, c.workflow, c.version, c.queue, c.priority, c.input, c.parent_path, c.max_attempts, c.deployment) for c in batch.children),
            strict=True,
        )  # fmt: skip
        parts.append(part(CHILDREN, *columns))
    if _tells_parent(batch):
        parts.append(part(PARENT, batch.successor_id))
    return "".join(parts), parameters
