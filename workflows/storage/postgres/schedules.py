"""Schedules, their firing by compare-and-set, and what became of each firing."""

from dataclasses import replace
from datetime import datetime

from workflows.storage.base import MAX_QUEUED, Firing, FiringStatus, NewRun, Schedule
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import Rows
from workflows.storage.rows import firing as firing_of
from workflows.storage.rows import schedule as schedule_of
from workflows.storage.tables import FIRINGS, LIVE, SCHEDULE_COLUMNS, SCHEDULE_KEPT, SCHEDULE_NAMES, SCHEDULE_REPLACED

_F = ", ".join(f"f.{column.name}" for column in FIRINGS.columns)
_SAME = " and ".join(
    f"schedules.{name} is not distinct from excluded.{name}"
    for name in ("spec", "tz", "jitter_s", "ends_at", "max_firings")
)

# one parameter per column, in table order, then: whether one that is paused stays so
PUT = f"""
with g as (insert into schedules ({SCHEDULE_COLUMNS}) values ({", ".join(f"${n}" for n, _ in enumerate(SCHEDULE_NAMES, 1))})
on conflict (tenant, name) do update set {", ".join(f"{name} = excluded.{name}" for name in SCHEDULE_REPLACED)},
   {", ".join(f"{name} = case when {_SAME} then schedules.{name} else excluded.{name} end" for name in SCHEDULE_KEPT)},
   paused = schedules.paused and ${len(SCHEDULE_NAMES) + 1},
   paused_reason = case when ${len(SCHEDULE_NAMES) + 1} then schedules.paused_reason end
returning {SCHEDULE_COLUMNS})
"""
PUT_RESULT = "g.* from g"

# $1 tenant $2 name
GET = f"select {SCHEDULE_COLUMNS} from schedules where tenant = $1 and name = $2"

# $1 tenant or null $2 only those due $3 limit
LIST = f"""
select {SCHEDULE_COLUMNS} from schedules where ($1::text is null or tenant = $1)
   and (not $2 or (next_at <= threadline_now() and not paused and not ended)) order by next_at, tenant, name limit $3
"""

# $1 tenant $2 name $3 reason
PAUSE = "update schedules set paused = true, paused_reason = $3 where tenant = $1 and name = $2 returning true"

# $1 tenant $2 name $3 due $4 next
RESUME = """
update schedules set paused = false, paused_reason = null, due_at = $3, next_at = $4
 where tenant = $1 and name = $2 and paused returning true
"""

# $1 tenant $2 name
DELETE = """
with d as (delete from schedules where tenant = $1 and name = $2 returning tenant),
u as (update firings set status = 'skipped', reason = 'the schedule was deleted'
       where tenant = $1 and schedule = $2 and status = 'queued' and exists (select from d))
select from d
"""

_RUN = "run_id, tenant, workflow, version, key, queue, priority, input, trace_id, deployment, max_attempts"
_RUN_VALUES = "$3, $1, $4, $5, $6, $7, $8::bigint, $9::bytea, $10, $11, $12::bigint"

# $1 tenant $2 schedule; the run: $3-$12; the firing: $13 due $14 cause $15 status unless its run is started $16 reason $17 missed
_FIRE = f"""
n as (insert into runs ({_RUN}) select {_RUN_VALUES} from g where {{has_run}} on conflict do nothing returning run_id),
h as (insert into firings (tenant, schedule, run_id, due_at, cause, status, reason, missed)
      select $1, $2, $3, $13::timestamptz, $14,
             case when x.started then 'started' when x.full then 'skipped' else $15 end,
             case when x.started then null when x.full then 'the queue is full' else $16::text end, $17::bigint
        from g, (select exists (select from n) or exists (select from runs where run_id = $3) as started,
                        $15 = 'queued' and (select count(*) from firings where tenant = $1 and schedule = $2 and status = 'queued')
                                           >= {MAX_QUEUED} as full) x
      on conflict do nothing returning status)
"""
FIRED = "coalesce((select status from h), (select status from firings where tenant = $1 and run_id = $3)) as status"

# … $18 the time it was to fire $19 whether it has a run $20 due $21 next $22 fired $23 ended
TICK = f"""
with g as (update schedules set last_at = coalesce(due_at, next_at), due_at = $20, next_at = $21::timestamptz, fired = $22::bigint, ended = $23
            where tenant = $1 and name = $2 and next_at = $18 and not paused and not ended returning tenant),
{_FIRE.format(has_run="$19")}
"""
"""Any number of clocks, one firing: `next_at` is the token they compare. The key of a live run keeps the next one from starting."""

FIRE_NOW = f"""
with g as (select tenant from schedules where tenant = $1 and name = $2 for share),
{_FIRE.format(has_run="true")}
"""

# $1 limit
QUEUED = f"""
select distinct on (f.tenant, f.schedule) {_F}, null from firings f join schedules s on s.tenant = f.tenant and s.name = f.schedule
 where f.status = 'queued' and not s.paused and not exists (
       select from runs r where r.tenant = f.tenant and r.workflow = s.workflow and r.key = 'schedule:' || s.name and {LIVE})
 order by f.tenant, f.schedule, f.due_at limit $1
"""

# $1 tenant $2 schedule; the run: $3-$12
START = f"""
with g as (insert into runs ({_RUN}) select {_RUN_VALUES} from firings
            where tenant = $1 and run_id = $3 and schedule = $2 and status = 'queued' for update on conflict do nothing returning tenant),
u as (update firings set status = 'started', fired_at = threadline_now() where tenant = $1 and run_id = $3 and exists (select from g))
"""
START_RESULT = "(select tenant from g) as tenant"

# $1 tenant $2 schedule $3 before or null $4 limit
FIRINGS_OF = f"""
select {_F}, r.state from firings f left join runs r on r.run_id = f.run_id and r.tenant = f.tenant
 where f.tenant = $1 and f.schedule = $2 and ($3::timestamptz is null or f.due_at < $3) order by f.due_at desc, f.run_id desc limit $4
"""


class ScheduleOperations(Rows):
    """Keeps schedules and their firings."""

    async def put_schedule(self, schedule: Schedule, *, keep_paused: bool = False) -> Schedule:
        row = await self._guarded(PUT, PUT_RESULT, *(getattr(schedule, name) for name in SCHEDULE_NAMES), keep_paused)
        return replace(schedule_of(POSTGRES, row[1:]), input=schedule.input)

    async def schedule(self, *, tenant: str, name: str) -> Schedule | None:
        row = await self._row(GET, tenant, name)
        if row is None:
            return None
        (found,) = await self._whole([schedule_of(POSTGRES, row)], strict=False)
        return found

    async def schedules(self, *, tenant: str | None = None, due: bool = False, limit: int = 100) -> list[Schedule]:
        rows = await self._fetch(LIST, tenant, due, limit)
        return await self._whole([schedule_of(POSTGRES, row) for row in rows], strict=False)

    async def pause_schedule(self, *, tenant: str, name: str, reason: str) -> bool:
        return await self._row(PAUSE, tenant, name, reason) is not None

    async def resume_schedule(self, *, tenant: str, name: str, due_at: datetime, next_at: datetime) -> bool:
        return await self._row(RESUME, tenant, name, due_at, next_at) is not None

    async def delete_schedule(self, *, tenant: str, name: str) -> bool:
        return await self._row(DELETE, tenant, name) is not None

    async def tick(
        self, schedule: Schedule, *, moved: Schedule, firing: Firing, run: NewRun | None
    ) -> FiringStatus | None:
        row = await self._guarded(
            TICK, FIRED, *_fired(firing, run), schedule.next_at, run is not None, moved.due_at, moved.next_at, moved.fired, moved.ended
        )  # fmt: skip
        return FiringStatus(row["status"]) if row["applied"] else None

    async def fire_now(self, firing: Firing, run: NewRun) -> FiringStatus | None:
        row = await self._guarded(FIRE_NOW, FIRED, *_fired(firing, run))
        if (
            row["applied"] and row["status"] is None
        ):  # the same firing was being made: only a new snapshot shows what came of it
            row = await self._guarded(FIRE_NOW, FIRED, *_fired(firing, run))
        return FiringStatus(row["status"]) if row["applied"] else None

    async def queued_firings(self, limit: int = 100) -> list[Firing]:
        return [firing_of(POSTGRES, row) for row in await self._fetch(QUEUED, limit)]

    async def start_firing(self, firing: Firing, run: NewRun) -> bool:
        return bool((await self._guarded(START, START_RESULT, *_run(firing, run)))["applied"])

    async def firings(
        self, *, tenant: str, schedule: str, limit: int = 100, before: datetime | None = None
    ) -> list[Firing]:
        return [firing_of(POSTGRES, row) for row in await self._fetch(FIRINGS_OF, tenant, schedule, before, limit)]


def _run(firing: Firing, run: NewRun | None) -> tuple[object, ...]:
    new = run or NewRun(firing.run_id, firing.tenant, "")
    return (
        firing.tenant, firing.schedule, firing.run_id, new.workflow, new.version, new.key, new.queue, new.priority, new.input, new.trace_id,
        new.deployment, new.max_attempts,
    )  # fmt: skip


def _fired(firing: Firing, run: NewRun | None) -> tuple[object, ...]:
    return (*_run(firing, run), firing.due_at, firing.cause, firing.status.value, firing.reason, firing.missed)
