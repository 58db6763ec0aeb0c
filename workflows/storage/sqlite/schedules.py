"""Schedules, their firing by compare-and-set, and what became of each firing."""

from dataclasses import replace
from datetime import datetime

from workflows.storage import dialect
from workflows.storage.base import MAX_QUEUED, Firing, FiringStatus, NewRun, Schedule
from workflows.storage.rows import firing as firing_of
from workflows.storage.rows import schedule as schedule_of
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.signals import SignalOperations
from workflows.storage.tables import (
    FIRINGS,
    LIVE,
    SCHEDULE_COLUMNS,
    SCHEDULE_KEPT,
    SCHEDULE_NAMES,
    SCHEDULE_REPLACED,
    SCHEDULES,
)

_F = ", ".join(f"f.{column.name}" for column in FIRINGS.columns)
_SAME = " and ".join(
    f"schedules.{name} is excluded.{name}" for name in ("spec", "tz", "jitter_s", "ends_at", "max_firings")
)

# one parameter per column, in table order, then: whether one that is paused stays so
PUT = f"""
insert into schedules ({SCHEDULE_COLUMNS}) values ({", ".join(f"?{n}" for n, _ in enumerate(SCHEDULE_NAMES, 1))})
on conflict (tenant, name) do update set {", ".join(f"{name} = excluded.{name}" for name in SCHEDULE_REPLACED)},
   {", ".join(f"{name} = case when {_SAME} then schedules.{name} else excluded.{name} end" for name in SCHEDULE_KEPT)},
   paused = schedules.paused and ?{len(SCHEDULE_NAMES) + 1},
   paused_reason = case when ?{len(SCHEDULE_NAMES) + 1} then schedules.paused_reason end
returning {SCHEDULE_COLUMNS}
"""

# ?1 tenant ?2 name
GET = f"select {SCHEDULE_COLUMNS} from schedules where tenant = ?1 and name = ?2"

# ?1 tenant or null ?2 only those due ?3 now ?4 limit
LIST = f"""
select {SCHEDULE_COLUMNS} from schedules
 where (?1 is null or tenant = ?1) and (not ?2 or (next_at <= ?3 and not paused and not ended)) order by next_at, tenant, name limit ?4
"""

# ?1 tenant ?2 name ?3 reason
PAUSE = "update schedules set paused = 1, paused_reason = ?3 where tenant = ?1 and name = ?2 returning 1"

# ?1 tenant ?2 name ?3 due ?4 next
RESUME = """
update schedules set paused = 0, paused_reason = null, due_at = ?3, next_at = ?4 where tenant = ?1 and name = ?2 and paused returning 1
"""

# ?1 tenant ?2 name
DELETE = "delete from schedules where tenant = ?1 and name = ?2 returning 1"
FORSAKE = """
update firings set status = 'skipped', reason = 'the schedule was deleted' where tenant = ?1 and schedule = ?2 and status = 'queued'
"""

# ?1 tenant ?2 name ?3 the time it was to fire ?4 due ?5 next ?6 fired ?7 ended
MOVE = """
update schedules set last_at = coalesce(due_at, next_at), due_at = ?4, next_at = ?5, fired = ?6, ended = ?7
 where tenant = ?1 and name = ?2 and next_at = ?3 and not paused and not ended returning 1
"""
"""Any number of clocks, one firing: `next_at` is the token they compare."""

# ?1 tenant ?2 schedule ?3 run ?4 due ?5 cause ?6 status ?7 reason ?8 missed
FIRE = """
insert into firings (tenant, schedule, run_id, due_at, cause, status, reason, missed) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
on conflict do nothing returning status
"""
STATUS = "select status from firings where tenant = ?1 and run_id = ?2"
RUN_EXISTS = "select 1 from runs where run_id = ?1"
WAITING = "select count(*) from firings where tenant = ?1 and schedule = ?2 and status = 'queued'"

# ?1 limit
QUEUED = f"""
select {_F}, null from firings f join schedules s on s.tenant = f.tenant and s.name = f.schedule
 where f.status = 'queued' and not s.paused
   and not exists (select 1 from firings o where o.tenant = f.tenant and o.schedule = f.schedule and o.status = 'queued' and o.due_at < f.due_at)
   and not exists (select 1 from runs where tenant = f.tenant and workflow = s.workflow and key = 'schedule:' || s.name and {LIVE})
 order by f.tenant, f.schedule limit ?1
"""

# ?1 tenant ?2 run ?3 schedule
STILL_QUEUED = "select 1 from firings where tenant = ?1 and run_id = ?2 and schedule = ?3 and status = 'queued'"

# ?1 tenant ?2 run ?3 now
STARTED = "update firings set status = 'started', fired_at = ?3 where tenant = ?1 and run_id = ?2"

# ?1 tenant ?2 schedule ?3 before or null ?4 limit
FIRINGS_OF = f"""
select {_F}, r.state from firings f left join runs r on r.run_id = f.run_id and r.tenant = f.tenant
 where f.tenant = ?1 and f.schedule = ?2 and (?3 is null or f.due_at < ?3) order by f.due_at desc, f.run_id desc limit ?4
"""


class ScheduleOperations(SignalOperations):
    """Keeps schedules and their firings."""

    async def put_schedule(self, schedule: Schedule, *, keep_paused: bool = False) -> Schedule:
        values = [SQLITE.encode(each.type, getattr(schedule, each.name)) for each in SCHEDULES.columns]

        def put() -> Schedule:
            return replace(schedule_of(SQLITE, self._one(PUT, *values, keep_paused)), input=schedule.input)

        return await self._transact(put, tenant=schedule.tenant)

    async def schedule(self, *, tenant: str, name: str) -> Schedule | None:
        def found() -> list[Schedule]:
            rows = self._rows(GET, tenant, name)
            return self._whole([schedule_of(SQLITE, row) for row in rows], strict=False)

        return next(iter(await self._call(found)), None)

    async def schedules(self, *, tenant: str | None = None, due: bool = False, limit: int = 100) -> list[Schedule]:
        def found() -> list[Schedule]:
            rows = self._rows(LIST, tenant, due, self._now(), limit)
            return self._whole([schedule_of(SQLITE, row) for row in rows], strict=False)

        return await self._transact(found)

    async def pause_schedule(self, *, tenant: str, name: str, reason: str) -> bool:
        return await self._transact(lambda: self._one(PAUSE, tenant, name, reason) is not None)

    async def resume_schedule(self, *, tenant: str, name: str, due_at: datetime, next_at: datetime) -> bool:
        times = dialect.micros(due_at), dialect.micros(next_at)
        return await self._transact(lambda: self._one(RESUME, tenant, name, *times) is not None)

    async def delete_schedule(self, *, tenant: str, name: str) -> bool:
        def delete() -> bool:
            found = self._one(DELETE, tenant, name) is not None
            if found:
                self._one(FORSAKE, tenant, name)
            return found

        return await self._transact(delete)

    async def tick(
        self, schedule: Schedule, *, moved: Schedule, firing: Firing, run: NewRun | None
    ) -> FiringStatus | None:
        times = [SQLITE.encode("time", each) for each in (schedule.next_at, moved.due_at, moved.next_at)]

        def fire() -> FiringStatus | None:
            if self._one(MOVE, schedule.tenant, schedule.name, *times, moved.fired, moved.ended) is None:
                return None
            return self._fire(firing, run)

        return await self._transact(fire, tenant=schedule.tenant)

    async def fire_now(self, firing: Firing, run: NewRun) -> FiringStatus | None:
        def fire() -> FiringStatus | None:
            there = self._one(GET, firing.tenant, firing.schedule) is not None
            return self._fire(firing, run) if there else None

        return await self._transact(fire, tenant=firing.tenant)

    def _fire(self, firing: Firing, run: NewRun | None) -> FiringStatus:
        status, reason = firing.status, firing.reason
        if (run is not None and self._insert_run(run)) or self._one(RUN_EXISTS, firing.run_id):
            status, reason = FiringStatus.STARTED, None
        elif status is FiringStatus.QUEUED and self._one(WAITING, firing.tenant, firing.schedule)[0] >= MAX_QUEUED:
            status, reason = FiringStatus.SKIPPED, "the queue is full"
        due = dialect.micros(firing.due_at)
        row = self._one(
            FIRE, firing.tenant, firing.schedule, firing.run_id, due, firing.cause, status, reason, firing.missed
        )
        return FiringStatus((row or self._one(STATUS, firing.tenant, firing.run_id))[0])

    async def queued_firings(self, limit: int = 100) -> list[Firing]:
        return [firing_of(SQLITE, row) for row in await self._call(lambda: self._rows(QUEUED, limit))]

    async def start_firing(self, firing: Firing, run: NewRun) -> bool:
        def start() -> bool:
            waits = self._one(STILL_QUEUED, firing.tenant, firing.run_id, firing.schedule) is not None
            if not waits or not self._insert_run(run):
                return False
            self._one(STARTED, firing.tenant, firing.run_id, self._now())
            return True

        return await self._transact(start, tenant=firing.tenant)

    async def firings(
        self, *, tenant: str, schedule: str, limit: int = 100, before: datetime | None = None
    ) -> list[Firing]:
        until = SQLITE.encode("time", before)
        rows = await self._call(lambda: self._rows(FIRINGS_OF, tenant, schedule, until, limit))
        return [firing_of(SQLITE, row) for row in rows]
