"""Schedules, and their firing by compare-and-set."""

from datetime import datetime

from workflows.storage import dialect
from workflows.storage.base import NewRun, Schedule
from workflows.storage.rows import schedule
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.signals import SignalOperations
from workflows.storage.tables import SCHEDULE_COLUMNS, SCHEDULES

# one parameter per column, in table order
PUT = f"""
insert into schedules ({SCHEDULE_COLUMNS}) values ({", ".join("?" for _ in SCHEDULES.columns)})
on conflict (tenant, name) do update set {", ".join(f"{each.name} = excluded.{each.name}" for each in SCHEDULES.columns)}
"""

# ?1 tenant or null ?2 only those due ?3 now ?4 limit
LIST = f"""
select {SCHEDULE_COLUMNS} from schedules where (?1 is null or tenant = ?1) and (not ?2 or (next_at <= ?3 and not paused))
 order by next_at limit ?4
"""

# ?1 tenant ?2 name
DELETE = "delete from schedules where tenant = ?1 and name = ?2 returning 1"

# ?1 tenant ?2 name ?3 due ?4 next
MOVE = """
update schedules set last_at = next_at, next_at = ?4 where tenant = ?1 and name = ?2 and next_at = ?3 and not paused returning 1
"""
"""Any number of clocks, one firing: `next_at` is the token they compare."""


class ScheduleOperations(SignalOperations):
    """Keeps schedules."""

    async def put_schedule(self, schedule: Schedule) -> None:
        values = [SQLITE.encode(each.type, getattr(schedule, each.name)) for each in SCHEDULES.columns]
        await self._transact(lambda: self._one(PUT, *values), tenant=schedule.tenant)

    async def schedules(self, *, tenant: str | None = None, due: bool = False, limit: int = 100) -> list[Schedule]:
        def found() -> list[Schedule]:
            rows = self._rows(LIST, tenant, due, self._now(), limit)
            return self._whole([schedule(SQLITE, row) for row in rows], strict=False)

        return await self._transact(found)

    async def delete_schedule(self, *, tenant: str, name: str) -> bool:
        return await self._transact(lambda: self._one(DELETE, tenant, name) is not None)

    async def tick(self, schedule: Schedule, *, next_at: datetime, run: NewRun) -> bool:
        due, following = dialect.micros(schedule.next_at), dialect.micros(next_at)

        def fire() -> bool:
            moved = self._one(MOVE, schedule.tenant, schedule.name, due, following)
            return moved is not None and self._insert_run(run)

        return await self._transact(fire, tenant=schedule.tenant)
