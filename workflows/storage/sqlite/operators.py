"""What an operator does with runs: forks, redrives, counts."""

from workflows.storage.base import Census, Fork, NewRun, RunRow, RunState
from workflows.storage.dialect import INFINITY
from workflows.storage.rows import run_row
from workflows.storage.sqlite.database import SQLITE, marks
from workflows.storage.sqlite.signals import SignalOperations
from workflows.storage.tables import LIVE, RUN_COLUMNS


class OperatorOperations(SignalOperations):
    """Copies ended runs and puts dead ones back."""

    async def fork(self, fork: Fork) -> bool:
        def copy() -> bool:
            if self._one("select 1 from runs where run_id = ? and tenant = ?", fork.run_id, fork.tenant):
                return True
            sql = f"select {RUN_COLUMNS} from runs where run_id = ? and tenant = ? and not {LIVE}"
            row = self._one(sql, fork.source, fork.tenant)
            if row is None:
                return False
            self._copy_run(fork, run_row(SQLITE, row))
            self._copy_records(fork)
            self._copy_signals(fork)
            return True

        return await self._transact(copy)

    def _copy_run(self, fork: Fork, source: RunRow) -> None:
        new = NewRun(
            fork.run_id, source.tenant, source.workflow, source.version, queue=source.queue, input=fork.input, trace_id=fork.run_id,
            deployment=source.deployment, max_attempts=source.max_attempts, paused=fork.paused,
        )  # fmt: skip
        self._insert_run(new, inbox_seq=source.inbox_seq)
        sql = "update runs set forked_from = ?, forked_seq = ?, priority = (select priority from runs where run_id = ?) where run_id = ?"
        self._rows(sql, fork.source, fork.cut, fork.source, fork.run_id)

    def _copy_records(self, fork: Fork) -> None:
        sql = (
            "insert into steps (run_id, path, seq, fence, status, output, error, started_at, finished_at)"
            " select ?, path, seq, 0, status, output, error, started_at, finished_at from steps"
            f" where run_id = ? and seq < ? and path not in ({marks(fork.leave_out)})"
        )
        self._rows(sql, fork.run_id, fork.source, fork.cut, *fork.leave_out)
        for seq, record in enumerate(fork.records, start=fork.cut):
            self._rows(
                "insert into steps (run_id, path, seq, fence, status, output, started_at, finished_at) values (?, ?, ?, 0, ?, ?, ?, ?)",
                fork.run_id, record.path, seq, record.status.value, record.output, SQLITE.encode("time", record.started_at), self._now(),
            )  # fmt: skip

    def _copy_signals(self, fork: Fork) -> None:
        sql = (
            "insert into signals (run_id, seq, name, dedup_key, payload, created_at, carried, consumed_by)"
            " select ?, s.seq, s.name, s.dedup_key, s.payload, s.created_at, s.carried,"
            " (select k.path from steps k where k.run_id = ? and k.path = s.consumed_by)"
            " from signals s where s.run_id = ? and s.name not in ('$cancel', '$step', '$go-on')"
        )
        self._rows(sql, fork.run_id, fork.run_id, fork.source)

    async def redrive(self, run_id: str, *, tenant: str) -> tuple[bool, str | None]:
        def put_back() -> tuple[bool, str | None]:
            row = self._one(
                f"select {RUN_COLUMNS} from runs where run_id = ? and tenant = ? and state = 'dead'", run_id, tenant
            )
            if row is None:
                return False, None
            dead = run_row(SQLITE, row)
            if dead.key is not None and (live := self._live(dead)) is not None:
                return False, live
            sql = (
                "update runs set state = 'ready', attempts = 0, fence = fence + 1, owner = null, error = null, output = null,"
                " finished_at = null, cancel_requested = 0, available_at = threadline_now() where run_id = ?"
            )
            self._rows(sql, run_id)
            return True, None

        return await self._transact(put_back)

    async def census(self) -> list[Census]:
        sql = (
            "select workflow, version, state, count(*),"
            f" min(case when state in ('ready', 'suspended') and available_at < {INFINITY} then available_at end)"
            f" from runs where {LIVE} or state = 'dead' group by workflow, version, state order by workflow, version, state"
        )
        rows = await self._call(lambda: self._rows(sql))
        return [Census(row[0], row[1], RunState(row[2]), row[3], SQLITE.decode("time", row[4])) for row in rows]
