"""Workers: leases, claims, and what is taken back from those that are gone."""

import json
from collections.abc import Sequence
from datetime import timedelta

from workflows.storage.base import SUSPECT_AFTER, ReapOutcome, RunRow, Suspects
from workflows.storage.moments import MICROSECOND
from workflows.storage.rows import run_row
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.rows import Rows
from workflows.storage.tables import RUN_COLUMNS

# ?1 worker ?2 host ?3 deployment ?4 lease until
REGISTER = """
insert into workers (worker_id, host, deployment, lease_until) values (?1, ?2, ?3, ?4)
on conflict (worker_id) do update set lease_until = excluded.lease_until
"""

# ?1 worker ?2 lease until
BEAT = "update workers set lease_until = ?2 where worker_id = ?1 returning 1"
"""A pure UPDATE: a row that still exists has not been reaped, and one that is gone does not come back."""

WORKERS = "select worker_id from workers"

UNREGISTER = "delete from workers where worker_id = ?1"

# ?1 worker ?2 now ?3 limit; lists as JSON: ?4 queues ?5 pairs of workflow and version ?6 tenants to leave out; ?7 suspects: no, head, only
DUE = f"""
select run_id, attempts from runs
 where queue in (select value from json_each(?4)) and state in ('ready','suspended') and available_at <= ?2
   and tenant not in (select value from json_each(?6))
   and (workflow, version) in (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?5))
   and exists (select 1 from workers where worker_id = ?1)  -- one that was reaped must not claim before it has noticed
   and case ?7 when 'no' then attempts < {SUSPECT_AFTER} when 'only' then attempts >= {SUSPECT_AFTER} else 1 end
 order by priority, available_at, run_id limit ?3
"""

# ?1 now; lists as JSON: ?2 queues ?3 pairs of workflow and version
WAITING_SUSPECT = f"""
select run_id, ?1 - available_at from (
  select run_id, attempts, available_at from runs
   where queue in (select value from json_each(?2)) and state in ('ready','suspended') and available_at <= ?1
     and (workflow, version) in (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?3))
   order by priority, available_at, run_id limit 200)
 where attempts >= {SUSPECT_AFTER} order by available_at limit 1
"""
"""Only the head of the line: what waits long comes to it."""

# ?1 worker ?2 run
TAKE = f"""
update runs set state = 'running', fence = fence + 1, owner = ?1, attempts = attempts + 1 where run_id = ?2 returning {RUN_COLUMNS}
"""

# ?1 worker ?2 runs held, as JSON ?3 now
RELEASE = """
update runs set state = 'ready', owner = null, fence = fence + 1, attempts = max(attempts - 1, 0), available_at = ?3
 where owner = ?1 and state = 'running' and run_id not in (select value from json_each(?2)) returning run_id
"""

# ?1 worker ?2 run ?3 available at
ABANDON = """
update runs set fence = fence + 1, owner = null, available_at = ?3,
       state = case when attempts < max_attempts then 'ready' else state end
 where run_id = ?2 and owner = ?1 and state = 'running' returning 1
"""
"""The last attempt leaves the run without an owner but running: the reaper finds it, and ends it as dead."""

CANCELLED = "select run_id from runs where owner = ?1 and state = 'running' and cancel_requested"

# ?1 now
REAP_WORKERS = "delete from workers where lease_until < ?1"

LOST = "state = 'running' and not exists (select 1 from workers w where w.worker_id = runs.owner)"

# ?1 now
FREE = f"""
update runs set state = 'ready', fence = fence + 1, owner = null, available_at = ?1
 where {LOST} and attempts < max_attempts returning run_id
"""

DEAD = f"update runs set fence = fence + 1 where {LOST} returning {RUN_COLUMNS}"
"""After FREE: those out of attempts."""


class WorkerOperations(Rows):
    """Registers workers and gives them runs."""

    async def register(self, worker_id: str, *, host: str, deployment: str, lease: timedelta) -> None:
        until = lease // MICROSECOND
        await self._transact(lambda: self._one(REGISTER, worker_id, host, deployment, self._now() + until))

    async def beat(self, worker_id: str, *, lease: timedelta) -> bool:
        until = lease // MICROSECOND
        return await self._transact(lambda: self._one(BEAT, worker_id, self._now() + until) is not None)

    async def workers(self) -> list[str]:
        return [row[0] for row in await self._call(lambda: self._rows(WORKERS))]

    async def unregister(self, worker_id: str) -> None:
        await self._transact(lambda: self._one(UNREGISTER, worker_id))

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
        lists = [json.dumps(list(each)) for each in (queues, workflows, leave_out)]

        def due() -> list[str]:
            rows = self._rows(DUE, worker_id, self._now(), limit, *lists, suspects)
            if rows and rows[0][1] >= SUSPECT_AFTER:
                return [rows[0][0]]
            return [run_id for run_id, attempts in rows if attempts < SUSPECT_AFTER]

        def take() -> list[RunRow]:
            taken = [run_row(SQLITE, self._one(TAKE, worker_id, run_id)) for run_id in due()]
            return self._whole(taken, strict=False)

        # A look without the write lock first: idle workers that poll one file must not queue behind each other.
        return await self._transact(take) if await self._call(due) else []

    async def waiting_suspect(
        self, *, queues: Sequence[str], workflows: Sequence[tuple[str, str]]
    ) -> tuple[str, timedelta] | None:
        lists = [json.dumps(list(each)) for each in (queues, workflows)]
        row = await self._transact(lambda: self._one(WAITING_SUSPECT, self._now(), *lists))
        return None if row is None else (row[0], row[1] * MICROSECOND)

    async def release(self, worker_id: str, *, held: Sequence[str]) -> list[str]:
        ours = json.dumps(list(held))
        return await self._transact(lambda: [row[0] for row in self._rows(RELEASE, worker_id, ours, self._now())])

    async def abandon(self, worker_id: str, run_id: str, *, delay: timedelta) -> None:
        until = delay // MICROSECOND
        await self._transact(lambda: self._one(ABANDON, worker_id, run_id, self._now() + until))

    async def cancelled(self, worker_id: str) -> list[str]:
        return [row[0] for row in await self._call(lambda: self._rows(CANCELLED, worker_id))]

    async def reap(self) -> ReapOutcome:
        def run() -> ReapOutcome:
            self._rows(REAP_WORKERS, self._now())
            freed = tuple(sorted(row[0] for row in self._rows(FREE, self._now())))
            dead = self._whole([run_row(SQLITE, row) for row in self._rows(DEAD)], strict=False)
            return ReapOutcome(freed, tuple(dead))

        return await self._transact(run)
