"""Schedules, and their firing by compare-and-set."""

from datetime import datetime

from workflows.storage import dialect
from workflows.storage.base import (
    NewRun,
    Schedule,
)
from workflows.storage.rows import schedule
from workflows.storage.sqlite.database import SQLITE, marks
from workflows.storage.sqlite.signals import SignalOperations
from workflows.storage.tables import SCHEDULE_COLUMNS


class ScheduleOperations(SignalOperations):
    """Keeps schedules."""

    async def put_schedule(self, schedule: Schedule) -> None:
        values = (
            schedule.tenant, schedule.name, schedule.workflow, schedule.version, schedule.spec, schedule.tz,
            dialect.micros(schedule.next_at), SQLITE.encode("time", schedule.last_at), int(schedule.paused), schedule.input,
        )  # fmt: skip
        sql = f"insert or replace into schedules ({SCHEDULE_COLUMNS}) values ({marks(values)})"
        await self._transact(lambda: self._one(sql, *values))

    async def schedules(self, *, tenant: str | None = None, due: bool = False, limit: int = 100) -> list[Schedule]:
        sql = (
            f"select {SCHEDULE_COLUMNS} from schedules where (? is null or tenant = ?)"
            " and (? = 0 or (next_at <= ? and not paused)) order by next_at limit ?"
        )
        rows = await self._transact(lambda: self._rows(sql, tenant, tenant, int(due), self._now(), limit))
        return [schedule(SQLITE, row) for row in rows]

    async def delete_schedule(self, *, tenant: str, name: str) -> bool:
        sql = "delete from schedules where tenant = ? and name = ? returning 1"
        return await self._transact(lambda: self._one(sql, tenant, name) is not None)

    async def tick(self, schedule: Schedule, *, next_at: datetime, run: NewRun) -> bool:
        def fire() -> bool:
            moved = self._one(
                "update schedules set last_at = next_at, next_at = ? where tenant = ? and name = ? and next_at = ? and not paused returning 1",
                dialect.micros(next_at), schedule.tenant, schedule.name, dialect.micros(schedule.next_at),
            )  # fmt: skip
            return moved is not None and self._insert_run(run)

        return await self._transact(fire)
