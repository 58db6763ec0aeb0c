"""What an operator does with runs: forks, redrives, counts."""

import asyncpg

from workflows.storage.base import Census, Fork, RedriveOutcome, RunState
from workflows.storage.postgres.rows import Rows
from workflows.storage.tables import LIVE

# $1 new run $2 source $3 tenant $4 cut $5 paths left out $6 input $7 paused $8-$11 added records: paths, outputs, statuses, started
FORK = f"""
with o as (select * from runs where run_id = $2 and tenant = $3 and not {LIVE} for update),
kept as (select path, status, output, error, started_at, finished_at, seq from steps
          where run_id = $2 and seq < $4 and path <> all($5::text[]) and exists (select from o)),
added as (select * from unnest($8::text[], $9::bytea[], $10::text[], $11::timestamptz[]) with ordinality a(path, output, status, started, n)),
g as (insert into runs (run_id, tenant, workflow, version, queue, priority, input, trace_id, deployment, max_attempts, forked_from,
                        forked_seq, paused, inbox_seq, step_seq)
      select $1, tenant, workflow, version, queue, priority, $6::bytea, $1, deployment, max_attempts, $2, $4, $7, inbox_seq,
             $4 - 1 + cardinality($8::text[]) from o on conflict do nothing returning run_id, tenant),
i as (insert into steps (run_id, path, seq, fence, status, output, error, started_at, finished_at)
      select $1, path, seq, 0, status, output, error, started_at, finished_at from kept, g
      union all
      select $1, path, $4 - 1 + n, 0, status, output, null, started, threadline_now() from added, g),
s as (insert into signals (run_id, seq, name, dedup_key, payload, created_at, carried, consumed_by)
      select $1, s.seq, s.name, s.dedup_key, s.payload, s.created_at, s.carried, (select path from kept where path = s.consumed_by)
        from signals s, g where s.run_id = $2 and s.name not in ('$cancel', '$step', '$go-on')
   and (s.name not like '$resume:%' or exists (select from kept where path = s.consumed_by)))
"""
"""`o` locks the source, so that nothing deletes or redrives it meanwhile, and finds none that is live."""

FORK_RESULT = "(select run_id from g) as run_id"

# $1 run $2 tenant
FORKED = "select exists (select from runs where run_id = $1 and tenant = $2)"

# $1 run $2 tenant
REDRIVE = f"""
with d as (select * from runs where run_id = $1 and tenant = $2 and state = 'dead' for update),
l as (select r.run_id from runs r, d where r.tenant = d.tenant and r.workflow = d.workflow and r.key = d.key and r.{LIVE}),
u as (update runs r set state = 'ready', attempts = 0, fence = r.fence + 1, owner = null, error = null, output = null, finished_at = null,
             cancel_requested = false, available_at = threadline_now()
        from d where r.run_id = d.run_id and not exists (select from l) returning r.run_id),
c as (delete from signals s using u where s.run_id = u.run_id and s.name = '$cancel')
select exists (select from u) as redriven, (select run_id from l) as live
"""
"""A cancel of its former life goes (`c`): left there, the next one would be taken for a copy of it."""

CENSUS = f"""
select workflow, version, state, count(*), min(available_at) filter (where state in ('ready', 'suspended') and available_at < 'infinity')
  from runs where {LIVE} or state = 'dead' group by workflow, version, state order by workflow, version, state
"""


class OperatorOperations(Rows):
    """Copies ended runs and puts dead ones back."""

    async def fork(self, fork: Fork) -> bool:
        added = fork.records
        row = await self._guarded(
            FORK, FORK_RESULT, fork.run_id, fork.source, fork.tenant, fork.cut, list(fork.leave_out), fork.input, fork.paused,
            [r.path for r in added], [r.output for r in added], [r.status.value for r in added], [r.started_at for r in added],
        )  # fmt: skip
        return bool(row["applied"] or (await self._one(FORKED, fork.run_id, fork.tenant))[0])

    async def redrive(self, run_id: str, *, tenant: str) -> RedriveOutcome:
        try:
            row = await self._one(REDRIVE, run_id, tenant)
        except asyncpg.UniqueViolationError:  # a live run of its key began at this very moment
            row = await self._one(REDRIVE, run_id, tenant)
        return RedriveOutcome(row["redriven"], row["live"])

    async def census(self) -> list[Census]:
        return [Census(row[0], row[1], RunState(row[2]), row[3], row[4]) for row in await self._fetch(CENSUS)]
