"""Signals, and what brings them to a run: the live one of a key, or a new one."""

from collections.abc import Sequence

from pydantic_core import to_json

from workflows.storage import dialect
from workflows.storage.base import (
    DeadSignal,
    NewRun,
    RunRow,
    Signal,
    SignalOutcome,
)
from workflows.storage.rows import dead_signal, signal
from workflows.storage.schema import Select, Write
from workflows.storage.sqlite.database import SQLITE, Database
from workflows.storage.tables import DEAD_SIGNALS, LIVE

INBOX = "select seq, name, dedup_key, payload, carried, created_at from signals where run_id = ? and consumed_by is null order by seq"


class SignalOperations(Database):
    """Accepts signals."""

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        def accept() -> SignalOutcome:
            if (
                self._one(
                    "insert into received (tenant, dedup_key) values (?, ?) on conflict do nothing returning 1",
                    run.tenant,
                    dedup_key,
                )
                is None
            ):
                return SignalOutcome(run_id=None, seq=None, started=False, duplicate=True)
            self._apply(writes)
            run_id, seq = self._deliver(run, name, dedup_key, payload)
            return SignalOutcome(run_id, seq, started=run_id == run.run_id, duplicate=False)

        return await self._transact(accept)

    def _deliver(self, run: NewRun, name: str, dedup_key: str, payload: bytes | None) -> tuple[str, int]:
        live = self._live(run)
        if live is None:
            self._insert_run(run, inbox_seq=1)
            run_id, seq = run.run_id, 1
        else:
            run_id, seq = live, self._ring(live)
        self._post(run_id, seq, name, dedup_key, payload)
        return run_id, seq

    def _ring(self, run_id: str) -> int:
        sql = (
            "update runs set inbox_seq = inbox_seq + 1,"
            " available_at = case state when 'suspended' then ? else available_at end,"
            " state = case state when 'suspended' then 'ready' else state end where run_id = ? returning inbox_seq"
        )
        return int(self._one(sql, self._now(), run_id)[0])

    def _post(self, run_id: str, seq: int, name: str, dedup_key: str, payload: bytes | None) -> None:
        self._one(
            "insert into signals (run_id, seq, name, dedup_key, payload) values (?, ?, ?, ?, ?) on conflict do nothing",
            run_id, seq, name, dedup_key, payload,
        )  # fmt: skip

    async def signal(
        self, run_id: str, *, tenant: str, name: str, dedup_key: str, payload: bytes | None
    ) -> SignalOutcome:
        def accept() -> SignalOutcome:
            if self._one("select 1 from signals where run_id = ? and dedup_key = ?", run_id, dedup_key):
                return SignalOutcome(run_id=None, seq=None, started=False, duplicate=True)
            sql = f"update runs set cancel_requested = cancel_requested or ? where run_id = ? and tenant = ? and {LIVE} returning 1"
            if self._one(sql, int(name == "$cancel"), run_id, tenant) is None:
                return SignalOutcome(run_id=None, seq=None, started=False, duplicate=False)
            seq = self._ring(run_id)
            self._post(run_id, seq, name, dedup_key, payload)
            return SignalOutcome(run_id, seq, started=False, duplicate=False)

        return await self._transact(accept)

    async def signal_payload(self, run_id: str, dedup_key: str) -> bytes | None:
        sql = "select payload from signals where run_id = ? and dedup_key = ?"
        row = await self._call(lambda: self._one(sql, run_id, dedup_key))
        return None if row is None else bytes(row[0] or b"null")

    async def inbox(self, run_id: str) -> list[Signal]:
        return [signal(SQLITE, row) for row in await self._call(lambda: self._rows(INBOX, run_id))]

    async def dead_signals(self, *, tenant: str, limit: int = 100) -> list[DeadSignal]:
        query = Select(DEAD_SIGNALS, {"tenant": tenant}, order=("-died_at",), limit=limit)
        return [dead_signal(row) for row in await self.read(query)]

    def _live(self, run: NewRun | RunRow) -> str | None:
        sql = f"select run_id from runs where tenant = ? and workflow = ? and key = ? and {LIVE}"
        row = self._one(sql, run.tenant, run.workflow, run.key)
        return None if row is None else str(row[0])

    def _insert_run(self, run: NewRun, *, inbox_seq: int = 0) -> bool:
        at = self._now() if run.available_at is None else dialect.micros(run.available_at)
        sql = (
            "insert into runs (run_id, tenant, workflow, version, key, queue, priority, input, trace_id, deployment, parent_id, parent_path,"
            " max_attempts, available_at, inbox_seq, paused) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning 1"
        )
        return (
            self._one(
                sql, run.run_id, run.tenant, run.workflow, run.version, run.key, run.queue, run.priority, run.input, run.trace_id,
                run.deployment, run.parent_id, run.parent_path, run.max_attempts, at, inbox_seq, int(run.paused),
            )
            is not None
        )  # fmt: skip

    # Approvals

    async def decide(
        self,
        *,
        tenant: str,
        approval_id: str,
        decision: str,
        by: str,
        reason: str | None,
        successor_id: str,
        version: str,
    ) -> tuple[bool, str | None]:
        def run() -> tuple[bool, str | None]:
            row = self._one(
                "update approvals set state = ?, by_user = ?, reason = ?, decided_at = ? where tenant = ? and id = ? and state = 'pending'"
                " and (expires_at <= ?) = ? returning workflow, key",
                decision, by, reason, self._now(), tenant, approval_id, self._now(), int(decision == "expired"),
            )  # fmt: skip
            if row is None:
                return False, None
            successor = NewRun(successor_id, tenant, row[0], version, row[1])
            payload = to_json({"approval_id": approval_id})
            return True, self._deliver(successor, "approval", f"approval:{approval_id}", payload)[0]

        return await self._transact(run)

    async def expired_approvals(self, limit: int = 100) -> list[tuple[str, str, str]]:
        sql = "select tenant, id, workflow from approvals where state = 'pending' and expires_at <= ? order by expires_at limit ?"
        return await self._transact(lambda: [tuple(row) for row in self._rows(sql, self._now(), limit)])
