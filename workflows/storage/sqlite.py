"""SQLite: the embedded store. Each operation is one BEGIN IMMEDIATE … COMMIT on a thread of its own.

Several processes may share the file (WAL, `synchronous=FULL`, `busy_timeout`): that is how `./dev demo` runs a worker that it can kill.
Measured on two cores: about 10k transactions a second through the writer thread with fsync off the path, bounded by the disk otherwise.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import from_json, to_json

from workflows.errors import SchemaError
from workflows.storage import dialect
from workflows.storage.base import (
    DeadSignal,
    EndOutcome,
    Hint,
    NewRun,
    Record,
    RunRow,
    RunState,
    Schedule,
    Signal,
    SignalOutcome,
    StepBatch,
    StepOutcome,
    StoreUnavailableError,
)
from workflows.storage.migrations import fingerprint, refuse
from workflows.storage.rows import dead_signal, record, run_row, schedule, signal
from workflows.storage.schema import Select, Table, Write
from workflows.storage.tables import DEAD_SIGNALS, ENGINE_TABLES, LIVE, RUNS, SCHEDULES

T = TypeVar("T")
SQLITE = dialect.Sqlite()
PASSING = ("locked", "busy", "disk", "full", "unable to open", "interrupted")
"""Words of faults that may pass; any other is a fault of ours or of the file, and trying again would go on for ever."""
RUN_COLUMNS = ", ".join(column.name for column in RUNS.columns)
SCHEDULE_COLUMNS = ", ".join(column.name for column in SCHEDULES.columns)


class SqliteStore:
    """The store over one SQLite file. `tables` are those of the floors above."""

    def __init__(self, path: str | Path, *, tables: Iterable[Table] = (), busy_timeout_s: float = 10.0) -> None:
        self._path = str(path)
        self._tables = (*ENGINE_TABLES, *tables)
        self._busy_timeout_s = busy_timeout_s
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")
        self._offset = 0

    # Life

    async def open(self) -> None:
        await self._call(self._open)

    async def close(self) -> None:
        if self._connection is not None:
            await self._call(self._connection.close)
            self._connection = None
        self._thread.shutdown(wait=False)

    async def ping(self) -> None:
        await self._call(lambda: self._db.execute("select 1").fetchone())

    async def now(self) -> datetime:
        at = dialect.moment(await self._transact(lambda: self._now()))  # noqa: PLW0108 — _now reads the offset in the transaction
        assert at is not None
        return at

    async def set_clock_offset(self, offset: timedelta) -> None:
        """Move the store's clock, for every process on this file. For tests and the emulator."""
        await self._transact(
            lambda: self._db.execute(
                "update threadline_clock set offset_us = ?", (offset // timedelta(microseconds=1),)
            ),
        )

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError(f"the store {self._path} is not open")
        return self._connection

    def _open(self) -> None:
        if self._connection is not None:
            return
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=self._busy_timeout_s
        )
        connection.create_function("threadline_now", 0, self._now)
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"pragma {pragma}")
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise SchemaError(
                f"{self._path} can't be read as a database: {error}. Restore a backup of it, or move it away to begin anew."
            ) from None
        self._connection = connection
        with self._transaction(read_clock=False):
            self._migrate()

    def _migrate(self) -> None:
        self._db.execute("create table if not exists threadline_schema (fingerprint text not null)")
        self._db.execute("create table if not exists threadline_clock (offset_us integer not null)")
        wanted = fingerprint(self._tables, SQLITE)
        found = self._db.execute("select fingerprint from threadline_schema").fetchone()
        if found is None:
            for table in self._tables:
                for statement in dialect.create(table, SQLITE):
                    self._db.execute(statement)
            self._db.execute("insert into threadline_schema values (?)", (wanted,))
            self._db.execute("insert into threadline_clock values (0)")
        elif found[0] != wanted:
            raise refuse(self._path)

    def _now(self) -> int:
        return time.time_ns() // 1000 + self._offset

    # Transactions

    async def _call(self, function: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except sqlite3.OperationalError as error:
            if not any(word in str(error) for word in PASSING):
                raise
            raise StoreUnavailableError(f"SQLite: {error}") from error
        except (sqlite3.ProgrammingError, RuntimeError) as error:
            if "closed" in str(error) or "shutdown" in str(error):
                raise StoreUnavailableError("the store is closed") from error
            raise

    async def _transact(self, function: Callable[[], T]) -> T:
        def run() -> T:
            with self._transaction():
                return function()

        return await self._call(run)

    @contextmanager
    def _transaction(self, *, read_clock: bool = True) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            if read_clock:
                self._offset = self._db.execute("select offset_us from threadline_clock").fetchone()[0]
            yield
            self._db.execute("commit")
        except BaseException:
            if self._db.in_transaction:  # a full disk may have rolled it back already
                self._db.execute("rollback")
            raise

    def _rows(self, sql: str, *parameters: Any) -> list[Any]:
        return self._db.execute(sql, parameters).fetchall()

    def _one(self, sql: str, *parameters: Any) -> Any:
        return self._db.execute(sql, parameters).fetchone()

    # Workers

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
            f"select run_id from runs where queue in ({_marks(queues)}) and state in ('ready','suspended')"
            f" and exists (select 1 from workers where worker_id = ?) and available_at <= ? and tenant not in ({_marks(leave_out)}) and ({pairs})"
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
            f" where owner = ? and state = 'running' and run_id not in ({_marks(held)}) returning run_id"
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

    # Runs

    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        def insert() -> str:
            if run.key is not None and (live := self._live(run)) is not None:
                return live
            if self._insert_run(run):
                self._apply(writes)
            return run.run_id

        return await self._transact(insert)

    def _live(self, run: NewRun) -> str | None:
        sql = f"select run_id from runs where tenant = ? and workflow = ? and key = ? and {LIVE}"
        row = self._one(sql, run.tenant, run.workflow, run.key)
        return None if row is None else str(row[0])

    def _insert_run(self, run: NewRun, *, inbox_seq: int = 0) -> bool:
        at = self._now() if run.available_at is None else dialect.micros(run.available_at)
        sql = (
            "insert into runs (run_id, tenant, workflow, version, key, queue, priority, input, trace_id, deployment, parent_id, parent_path,"
            " max_attempts, available_at, inbox_seq) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning 1"
        )
        return (
            self._one(
                sql, run.run_id, run.tenant, run.workflow, run.version, run.key, run.queue, run.priority, run.input, run.trace_id,
                run.deployment, run.parent_id, run.parent_path, run.max_attempts, at, inbox_seq,
            )
            is not None
        )  # fmt: skip

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        return await self._transact(lambda: self._step(run_id, fence, batch))

    def _step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = self._advance(run_id, fence, batch)
        if row is None:
            return self._step_refused(run_id, fence, batch)
        self._record(run_id, fence, row.step_seq, batch.records)
        path = batch.records[0].path if batch.records else "$end"
        for seq in batch.consumed:
            self._one(
                "update signals set consumed_by = ? where run_id = ? and seq = ? and consumed_by is null",
                path,
                run_id,
                seq,
            )
        self._hint(batch.hints)
        for child in batch.children:
            self._insert_run(child)
        self._apply(batch.writes)
        parent = self._wake_parent(row, batch.successor_id) if batch.done else None
        return StepOutcome(
            recorded=True,
            owned=not batch.done,
            inbox_seq=row.inbox_seq,
            cancel_requested=row.cancel_requested,
            parent_run=parent,
        )

    def _advance(self, run_id: str, fence: int, batch: StepBatch) -> RunRow | None:
        if self._existing(run_id, batch):
            return None
        guard = "and inbox_seq = ? and not cancel_requested" if batch.done else ""
        ending = ", state = 'done', owner = null, output = ?, finished_at = ?" if batch.done else ""
        sql = f"update runs set step_seq = step_seq + ?, attempts = 0{ending} where run_id = ? and fence = ? and state = 'running' {guard} returning {RUN_COLUMNS}"
        values = [len(batch.records), *((batch.output, self._now()) if batch.done else ()), run_id, fence]
        row = self._one(sql, *values, *((batch.inbox_seen,) if batch.done else ()))
        return None if row is None else run_row(SQLITE, row)

    def _existing(self, run_id: str, batch: StepBatch, fence: int | None = None) -> int:
        paths = [each.path for each in batch.records]
        clause = "" if fence is None else f" and fence = {int(fence)}"
        sql = f"select count(*) from steps where run_id = ? and path in ({_marks(paths)}){clause}"
        return int(self._one(sql, run_id, *paths)[0])

    def _step_refused(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = self._one("select state, fence, inbox_seq, cancel_requested from runs where run_id = ?", run_id)
        if row is None:
            return StepOutcome(recorded=False, owned=False, inbox_seq=0, cancel_requested=False)
        state, now_fence, inbox_seq, cancel = row
        mine = bool(batch.records) and self._existing(run_id, batch, fence) == len(batch.records)
        ended = batch.done and state == "done" and now_fence == fence
        recorded = ended if batch.done else mine
        return StepOutcome(recorded, state == "running" and now_fence == fence, inbox_seq, bool(cancel))

    def _record(self, run_id: str, fence: int, step_seq: int, records: Sequence[Record]) -> None:
        first = step_seq - len(records) + 1
        for offset, each in enumerate(records):
            self._one(
                "insert into steps (run_id, path, seq, fence, status, output, error, started_at, finished_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                run_id, each.path, first + offset, fence, each.status, each.output,
                SQLITE.encode("json", each.error), SQLITE.encode("time", each.started_at), self._now(),
            )  # fmt: skip

    async def end(
        self,
        run_id: str,
        fence: int,
        state: RunState,
        *,
        inbox_seen: int,
        successor_id: str,
        output: bytes | None = None,
        error: dict[str, Any] | None = None,
        writes: Sequence[Write] = (),
    ) -> EndOutcome:
        def run() -> EndOutcome:
            row = self._one(
                "update runs set state = ?, owner = null, output = ?, error = ?, finished_at = ?"
                f" where run_id = ? and fence = ? and state = 'running' and inbox_seq = ? returning {RUN_COLUMNS}",
                state, output, SQLITE.encode("json", error), self._now(), run_id, fence, inbox_seen,
            )  # fmt: skip
            if row is None:
                return self._end_refused(run_id, fence, state)
            self._apply(writes)
            ended = run_row(SQLITE, row)
            outcome = self._hand_over(ended, successor_id)
            self._wake_parent(ended, successor_id)
            return outcome

        return await self._transact(run)

    def _end_refused(self, run_id: str, fence: int, state: RunState) -> EndOutcome:
        row = self._one("select state = ? and fence = ? from runs where run_id = ?", state, fence, run_id)
        return EndOutcome(ended=bool(row and row[0]), successor=None, carried=0)

    def _hand_over(self, run: RunRow, successor_id: str) -> EndOutcome:
        unread = [signal(SQLITE, row) for row in self._rows(_INBOX, run.run_id)]
        unread = [each for each in unread if not each.name.startswith("$")]  # the engine's own die with the run
        fresh = [each for each in unread if not each.carried] if run.key is not None else []
        for each in unread:
            if each not in fresh:
                self._bury(run, each)
        if not fresh:
            return EndOutcome(ended=True, successor=None, carried=0)
        successor = NewRun(
            successor_id,
            run.tenant,
            run.workflow,
            run.version,
            run.key,
            run.queue,
            trace_id=successor_id,
            max_attempts=run.max_attempts,
        )
        self._insert_run(successor, inbox_seq=len(fresh))
        for number, each in enumerate(fresh, 1):
            self._one(
                "update signals set run_id = ?, seq = ?, carried = 1 where run_id = ? and seq = ?",
                successor_id, number, run.run_id, each.seq,
            )  # fmt: skip
        return EndOutcome(ended=True, successor=successor_id, carried=len(fresh))

    def _bury(self, run: RunRow, each: Signal) -> None:
        self._one(
            "insert into dead_signals (tenant, run_id, seq, workflow, key, name, dedup_key, payload, carried, created_at)"
            " select ?, run_id, seq, ?, ?, name, dedup_key, payload, carried, created_at from signals where run_id = ? and seq = ?",
            run.tenant, run.workflow, run.key, run.run_id, each.seq,
        )  # fmt: skip
        self._one("update signals set consumed_by = '$dead' where run_id = ? and seq = ?", run.run_id, each.seq)

    async def suspend(self, run_id: str, fence: int, *, inbox_seen: int, until: datetime | None) -> bool:
        at = dialect.INFINITY if until is None else dialect.micros(until)
        sql = (
            "update runs set state = 'suspended', owner = null, attempts = 0, available_at = ?"
            " where run_id = ? and fence = ? and state = 'running' and inbox_seq = ? and not cancel_requested returning 1"
        )
        return await self._transact(lambda: self._one(sql, at, run_id, fence, inbox_seen) is not None)

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None:
        sql = f"select {RUN_COLUMNS} from runs where run_id = ? and (? is null or tenant = ?)"
        row = await self._call(lambda: self._one(sql, run_id, tenant, tenant))
        return None if row is None else run_row(SQLITE, row)

    async def runs(
        self,
        *,
        tenant: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        filters = {
            "tenant = ?": tenant,
            "workflow = ?": workflow,
            "key = ?": key,
            "(created_at, run_id) < (select created_at, run_id from runs where run_id = ?)": before,
        }
        parts = [part for part, value in filters.items() if value is not None] or ["1"]
        if states:
            parts.append(f"state in ({_marks(states)})")
        values = [value for value in filters.values() if value is not None]
        sql = (
            f"select {RUN_COLUMNS} from runs where {' and '.join(parts)} order by created_at desc, run_id desc limit ?"
        )
        return [run_row(SQLITE, row) for row in await self._call(lambda: self._rows(sql, *values, *states, limit))]

    # Signals

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
        return [signal(SQLITE, row) for row in await self._call(lambda: self._rows(_INBOX, run_id))]

    async def dead_signals(self, *, tenant: str, limit: int = 100) -> list[DeadSignal]:
        query = Select(DEAD_SIGNALS, {"tenant": tenant}, order=("-died_at",), limit=limit)
        return [dead_signal(row) for row in await self.read(query)]

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

    # Schedules

    async def put_schedule(self, schedule: Schedule) -> None:
        values = (
            schedule.tenant, schedule.name, schedule.workflow, schedule.version, schedule.spec, schedule.tz,
            dialect.micros(schedule.next_at), SQLITE.encode("time", schedule.last_at), int(schedule.paused), schedule.input,
        )  # fmt: skip
        sql = f"insert or replace into schedules ({SCHEDULE_COLUMNS}) values ({_marks(values)})"
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

    # Hints

    async def drain_hints(self, limit: int = 500) -> list[Hint]:
        if not await self._call(lambda: self._one("select 1 from outbox limit 1")):
            return []
        sql = "delete from outbox where id in (select id from outbox order by id limit ?) returning topic, type, data"
        rows = await self._transact(lambda: self._rows(sql, limit))
        return [Hint(topic, type_, from_json(data)) for topic, type_, data in rows]

    def _hint(self, hints: Sequence[Hint]) -> None:
        for hint in hints:
            self._one(
                "insert into outbox (topic, type, data) values (?, ?, ?)",
                hint.topic,
                hint.type,
                to_json(hint.data).decode(),
            )

    # Rows of the floors above

    async def read(self, query: Select) -> list[dict[str, Any]]:
        parameters = dialect.Parameters(SQLITE)
        sql = dialect.select(query, parameters)
        rows = await self._call(lambda: self._rows(sql, *parameters.values))
        return [dialect.decode_row(SQLITE, query.table, row) for row in rows]

    async def write(self, *writes: Write) -> int:
        return await self._transact(lambda: self._apply(writes))

    def _apply(self, writes: Sequence[Write]) -> int:
        changed = 0
        for each in writes:
            parameters = dialect.Parameters(SQLITE)
            sql = dialect.write(each, parameters)
            changed += self._db.execute(sql, parameters.values).rowcount
        return changed

    def _wake_parent(self, run: RunRow, successor_id: str) -> str | None:
        if run.parent_id is None:
            return None
        parent = self._one(f"select {RUN_COLUMNS} from runs where run_id = ?", run.parent_id)
        if parent is None or (row := run_row(SQLITE, parent)).key is None:
            return None
        payload = to_json({"run_id": run.run_id, "path": run.parent_path, "state": run.state})
        new = NewRun(
            f"{successor_id}-p",
            row.tenant,
            row.workflow,
            row.version,
            row.key,
            row.queue,
            trace_id=row.trace_id,
            max_attempts=row.max_attempts,
        )
        return self._deliver(new, "task", f"task:{run.run_id}", payload)[0]


_INBOX = "select seq, name, dedup_key, payload, carried, created_at from signals where run_id = ? and consumed_by is null order by seq"


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
