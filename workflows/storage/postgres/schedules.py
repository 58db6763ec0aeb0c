"""Schedules, and their firing by compare-and-set."""

from datetime import datetime

from workflows.storage.base import NewRun, Schedule
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import Rows
from workflows.storage.rows import schedule
from workflows.storage.tables import SCHEDULE_COLUMNS, SCHEDULES

_NAMES = [column.name for column in SCHEDULES.columns]

# one parameter per column, in table order
PUT = f"""
with g as (
  insert into schedules ({SCHEDULE_COLUMNS}) values ({", ".join(f"${n}" for n, _ in enumerate(_NAMES, 1))})
  on conflict (tenant, name) do update set {", ".join(f"{name} = excluded.{name}" for name in _NAMES)} returning tenant)
"""
PUT_RESULT = "(select tenant from g) as tenant"

# $1 tenant or null $2 only those due $3 limit
LIST = f"""
select {SCHEDULE_COLUMNS} from schedules where ($1::text is null or tenant = $1)
   and (not $2 or (next_at <= threadline_now() and not paused)) order by next_at limit $3
"""

# $1 tenant $2 name
DELETE = "delete from schedules where tenant = $1 and name = $2 returning true"

# $1 tenant $2 name $3 due $4 next $5 run $6 workflow $7 version $8 key $9 queue $10 input $11 max_attempts
TICK = """
with t as (update schedules set last_at = next_at, next_at = $4 where tenant = $1 and name = $2 and next_at = $3 and not paused returning *),
g as (insert into runs (run_id, tenant, workflow, version, key, queue, input, trace_id, max_attempts)
      select $5, tenant, $6, $7, $8, $9, $10, $5, $11::bigint from t on conflict do nothing returning run_id, tenant)
"""
"""Any number of clocks, one firing: `next_at` is the token they compare."""

TICK_RESULT = "(select run_id from g) as run_id"


class ScheduleOperations(Rows):
    """Keeps schedules."""

    async def put_schedule(self, schedule: Schedule) -> None:
        await self._guarded(PUT, PUT_RESULT, *(getattr(schedule, name) for name in _NAMES))

    async def schedules(self, *, tenant: str | None = None, due: bool = False, limit: int = 100) -> list[Schedule]:
        return await self._whole(
            [schedule(POSTGRES, row) for row in await self._fetch(LIST, tenant, due, limit)], strict=False
        )

    async def delete_schedule(self, *, tenant: str, name: str) -> bool:
        return await self._row(DELETE, tenant, name) is not None

    async def tick(self, schedule: Schedule, *, next_at: datetime, run: NewRun) -> bool:
        row = await self._guarded(
            TICK, TICK_RESULT, schedule.tenant, schedule.name, schedule.next_at, next_at, run.run_id, run.workflow, run.version, run.key,
            run.queue, run.input, run.max_attempts,
        )  # fmt: skip
        return bool(row["applied"])
