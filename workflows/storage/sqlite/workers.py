"""Workers: leases, claims, and what is taken back from those that are gone."""

from collections.abc import Sequence
from datetime import timedelta

from workflows.storage.base import (
    Record,
    RunRow,
)
from workflows.storage.rows import record, run_row
from workflows.storage.sqlite.database import SQLITE, Database, marks
from workflows.storage.tables import RUN_COLUMNS


class WorkerOperations(Database):
    """Registers workers and gives them runs."""

    async def register(self, worker_id: str, *, host: str, deployment: str, lease: timedelta) -> None:
        await self._transact(
            lambda: self._one(
                "insert or replace into workers (worker_id, host, deployment, lease_until) values (?, ?, ?, ?)",
                worker_id, host, deployment, self._now() + lease // timedelta(microseconds=1),
            ),
        )  # fmt: skip

    async def beat(self, worker_id: str, *, lease: timedelta) -> bool:
        until = lease // timedelta(microseconds=1)
        sql = "update workers set lease_until = ? where worker_id = ? returning 1"
        return await self._transact(lambda: self._one(sql, self._now() + until, worker_id) is not None)

    async def workers(self) -> list[str]:
        return [row[0] for row in await self._call(lambda: self._rows("select worker_id from workers"))]

    async def unregister(self, worker_id: str) -> None:
        await self._transact(lambda: self._one("delete from workers where worker_id = ?", worker_id))

    async def claim(
        self,
        worker_id: str,
        *,
        queues: Sequence[str],
        workflows: Sequence[tuple[str, str]],
        limit: int,
        leave_out: Sequence[str] = (),
    ) -> list[RunRow]:
        def due() -> list[str]:
            return self._due(worker_id, queues, workflows, limit, leave_out)

        def take() -> list[RunRow]:
            return [self._take(worker_id, run_id) for run_id in due()]

        # A look without the write lock first: idle workers that poll one file must not queue behind each other.
        return await self._transact(take) if await self._call(due) else []

    def _due(
        self,
        worker_id: str,
        queues: Sequence[str],
        workflows: Sequence[tuple[str, str]],
        limit: int,
        leave_out: Sequence[str],
    ) -> list[str]:
        pairs = " or ".join("(workflow = ? and version = ?)" for _ in workflows) or "0"
        sql = (
            f"select run_id from runs where queue in ({marks(queues)}) and state in ('ready','suspended')"
            f" and exists (select 1 from workers where worker_id = ?) and available_at <= ? and tenant not in ({marks(leave_out)}) and ({pairs})"
            " order by priority, available_at, run_id limit ?"
        )
        names = [name for pair in workflows for name in pair]
        return [row[0] for row in self._rows(sql, *queues, worker_id, self._now(), *leave_out, *names, limit)]

    def _take(self, worker_id: str, run_id: str) -> RunRow:
        sql = f"update runs set state = 'running', fence = fence + 1, owner = ?, attempts = attempts + 1 where run_id = ? returning {RUN_COLUMNS}"
        return run_row(SQLITE, self._one(sql, worker_id, run_id))

    async def load(self, run_id: str) -> list[Record]:
        sql = (
            "select path, status, output, error, started_at, seq, finished_at from steps where run_id = ? order by seq"
        )
        return [record(SQLITE, row) for row in await self._call(lambda: self._rows(sql, run_id))]

    async def release(self, worker_id: str, *, held: Sequence[str]) -> list[str]:
        sql = (
            "update runs set state = 'ready', owner = null, fence = fence + 1, attempts = max(attempts - 1, 0), available_at = ?"
            f" where owner = ? and state = 'running' and run_id not in ({marks(held)}) returning run_id"
        )
        return await self._transact(lambda: [row[0] for row in self._rows(sql, self._now(), worker_id, *held)])

    async def abandon(self, worker_id: str, run_id: str, *, delay: timedelta) -> None:
        sql = (
            "update runs set fence = fence + 1, owner = null, available_at = ?,"
            " state = case when attempts < max_attempts then 'ready' else state end"
            " where run_id = ? and owner = ? and state = 'running' returning 1"
        )
        until = delay // timedelta(microseconds=1)
        await self._transact(lambda: self._one(sql, self._now() + until, run_id, worker_id))

    async def cancelled(self, worker_id: str) -> list[str]:
        sql = "select run_id from runs where owner = ? and state = 'running' and cancel_requested"
        return [row[0] for row in await self._call(lambda: self._rows(sql, worker_id))]

    async def reap(self) -> tuple[list[str], list[RunRow]]:
        def run() -> tuple[list[str], list[RunRow]]:
            self._rows("delete from workers where lease_until < ?", self._now())
            lost = "state = 'running' and not exists (select 1 from workers w where w.worker_id = runs.owner)"
            freed = self._rows(
                "update runs set state = 'ready', fence = fence + 1, owner = null, available_at = ?"
                f" where {lost} and attempts < max_attempts returning run_id",
                self._now(),
            )
            dead = self._rows(f"update runs set fence = fence + 1 where {lost} returning {RUN_COLUMNS}")
            return [row[0] for row in freed], [run_row(SQLITE, row) for row in dead]

        return await self._transact(run)
