"""Workers: leases, claims, and what is taken back from those that are gone."""

from collections.abc import Sequence
from datetime import timedelta

from workflows.storage.base import SUSPECT_AFTER, ReapOutcome, RunRow, RunState, Suspects
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import Rows
from workflows.storage.rows import run_row
from workflows.storage.tables import RUNS

R_RUN = ", ".join(f"r.{column.name}" for column in RUNS.columns)

# $1 worker $2 host $3 deployment $4 lease
REGISTER = """
insert into workers (worker_id, host, deployment, lease_until) values ($1, $2, $3, threadline_now() + $4)
on conflict (worker_id) do update set lease_until = excluded.lease_until
"""

# $1 worker $2 lease
BEAT = "update workers set lease_until = threadline_now() + $2 where worker_id = $1 returning true"
"""A pure UPDATE: a row that still exists has not been reaped, and one that is gone does not come back."""

WORKERS = "select worker_id from workers"

UNREGISTER = "delete from workers where worker_id = $1"

# $1 worker $2 queues $3 limit $4 workflows $5 versions (pairwise) $6 tenants to leave out $7 suspects: no, head, only
CLAIM = f"""
with due as materialized (
  select run_id, attempts, priority, available_at from runs
   where queue = any($2) and state in ('ready','suspended') and available_at <= threadline_now() and tenant <> all($6)
     and (workflow, version) in (select * from unnest($4::text[], $5::text[]))
     and exists (select from workers where worker_id = $1)  -- one that was reaped must not claim before it has noticed
     and case $7::text when 'no' then attempts < {SUSPECT_AFTER} when 'only' then attempts >= {SUSPECT_AFTER} else true end
   order by priority, available_at, run_id limit $3 for update skip locked),
first as (select run_id, attempts from due order by priority, available_at, run_id limit 1),
taken as (select due.run_id from due, first
           where case when first.attempts < {SUSPECT_AFTER} then due.attempts < {SUSPECT_AFTER} else due.run_id = first.run_id end)
update runs r set state = 'running', fence = fence + 1, owner = $1, attempts = attempts + 1
  from taken where r.run_id = taken.run_id returning {R_RUN}
"""

# $1 queues $2 workflows $3 versions (pairwise)
WAITING_SUSPECT = f"""
select run_id, threadline_now() - available_at from (
  select run_id, attempts, available_at from runs
   where queue = any($1) and state in ('ready','suspended') and available_at <= threadline_now()
     and (workflow, version) in (select * from unnest($2::text[], $3::text[]))
   order by priority, available_at, run_id limit 200) head
 where attempts >= {SUSPECT_AFTER} order by available_at limit 1
"""
"""Only the head of the line: an index for this would cost every run its heap-only updates, and what waits long comes to the head."""

# $1 worker $2 runs held
RELEASE = """
update runs set state = 'ready', owner = null, fence = fence + 1, attempts = greatest(attempts - 1, 0), available_at = threadline_now()
 where owner = $1 and state = 'running' and run_id <> all($2) returning run_id
"""

# $1 worker $2 run $3 delay
ABANDON = """
update runs set fence = fence + 1, owner = null, available_at = threadline_now() + $3,
       state = case when attempts < max_attempts then 'ready' else state end
 where run_id = $2 and owner = $1 and state = 'running' returning run_id
"""
"""The last attempt leaves the run without an owner but running: the reaper finds it, and ends it as dead."""

CANCELLED = "select run_id from runs where owner = $1 and state = 'running' and cancel_requested"

REAP_WORKERS = "delete from workers where lease_until < threadline_now()"

REAP_RUNS = f"""
with lost as materialized (
  select r.run_id, r.fence from runs r
   where r.state = 'running' and not exists (select from workers w where w.worker_id = r.owner) order by r.run_id limit 500)
update runs r set fence = r.fence + 1,
       state = case when r.attempts < r.max_attempts then 'ready' else r.state end,
       owner = case when r.attempts < r.max_attempts then null else r.owner end,
       available_at = case when r.attempts < r.max_attempts then threadline_now() else r.available_at end
  from lost where r.run_id = lost.run_id and r.fence = lost.fence and r.state = 'running' returning {R_RUN}
"""
"""A statement of its own, whose snapshot sees no worker that REAP_WORKERS deleted; the fence guards against an older one."""


class WorkerOperations(Rows):
    """Registers workers and gives them runs."""

    async def register(self, worker_id: str, *, host: str, deployment: str, lease: timedelta) -> None:
        await self._fetch(REGISTER, worker_id, host, deployment, lease)

    async def beat(self, worker_id: str, *, lease: timedelta) -> bool:
        return await self._row(BEAT, worker_id, lease) is not None

    async def workers(self) -> list[str]:
        return [row[0] for row in await self._fetch(WORKERS)]

    async def unregister(self, worker_id: str) -> None:
        await self._fetch(UNREGISTER, worker_id)

    async def claim(
        self,
        worker_id: str,
        *,
        queues: Sequence[str],
        workflows: Sequence[tuple[str, str]],
        limit: int,
        leave_out: Sequence[str] = (),
        suspects: Suspects = "no",
    ) -> list[RunRow]:
        names, versions = [name for name, _ in workflows], [version for _, version in workflows]
        rows = await self._fetch(CLAIM, worker_id, list(queues), limit, names, versions, list(leave_out), suspects)
        return await self._whole([run_row(POSTGRES, row) for row in rows], strict=False)

    async def waiting_suspect(
        self, *, queues: Sequence[str], workflows: Sequence[tuple[str, str]]
    ) -> tuple[str, timedelta] | None:
        names, versions = [name for name, _ in workflows], [version for _, version in workflows]
        row = await self._row(WAITING_SUSPECT, list(queues), names, versions)
        return None if row is None else (row[0], row[1])

    async def release(self, worker_id: str, *, held: Sequence[str]) -> list[str]:
        return [row[0] for row in await self._fetch(RELEASE, worker_id, list(held))]

    async def abandon(self, worker_id: str, run_id: str, *, delay: timedelta) -> None:
        await self._fetch(ABANDON, worker_id, run_id, delay)

    async def cancelled(self, worker_id: str) -> list[str]:
        return [row[0] for row in await self._fetch(CANCELLED, worker_id)]

    async def reap(self) -> ReapOutcome:
        await self._fetch(REAP_WORKERS)
        rows = await self._whole([run_row(POSTGRES, row) for row in await self._fetch(REAP_RUNS)], strict=False)
        freed = tuple(sorted(row.run_id for row in rows if row.state is RunState.READY))
        return ReapOutcome(freed, dead=tuple(row for row in rows if row.state is RunState.RUNNING))
