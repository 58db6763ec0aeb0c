"""PostgreSQL 15+: the production store. Each operation is one statement (see `statements`), one round trip, one commit."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import asyncpg
from pydantic_core import from_json, to_json

from workflows.storage import dialect
from workflows.storage import statements as sql
from workflows.storage.base import (
    Census,
    DeadSignal,
    EndOutcome,
    Fork,
    Hint,
    NewRun,
    Record,
    RunRow,
    RunState,
    Schedule,
    Signal,
    SignalOutcome,
    SpanRow,
    StepBatch,
    StepOutcome,
    StoreUnavailableError,
)
from workflows.storage.migrations import Schema, schemas_of
from workflows.storage.migrations.engine import ENGINE
from workflows.storage.migrations.plan import ALL_APPLIED, UNVERSIONED, Pending, bookkeeping, failed, pending
from workflows.storage.rows import dead_signal, record, run_row, schedule, signal
from workflows.storage.schema import Select, Table, Write
from workflows.storage.tables import DEAD_SIGNALS

POSTGRES = dialect.Postgres()
PLACE = "this PostgreSQL database"
MIGRATION_LOCK = 0x7468726561646C69  # "threadli": one process at a time changes the schema
MIGRATION_TIMEOUT_S = 3600.0
"""An index over a large table takes longer than any other statement may, and so does waiting for the process that builds it."""

CLOCK = """
create or replace function threadline_now() returns timestamptz language sql stable parallel safe
as 'select clock_timestamp() + (select shift from threadline_clock)'
"""

UNREACHABLE = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.CannotConnectNowError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.exceptions.TransactionRollbackError,
)


class PostgresStore:
    """The store over one PostgreSQL database. `tables` are those of the floors above: schemas with their migrations, or bare tables.

    Time-outs are in seconds.
    """

    def __init__(
        self, dsn: str, *, tables: Iterable[Table | Schema] = (), pool_size: int = 10, timeout_s: float = 10.0
    ) -> None:
        self._dsn = dsn
        self._schemas = schemas_of(ENGINE, *tables)
        self._pool_size = pool_size
        self._timeout_s = timeout_s
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    # Life

    async def open(self) -> None:
        if self._pool is not None:
            return
        try:
            pool = await asyncpg.create_pool(
                self._dsn,
                min_size=1,
                max_size=self._pool_size,
                timeout=self._timeout_s,
                command_timeout=self._timeout_s,
                reset=_keep,
                server_settings={
                    "synchronous_commit": "on",
                    "default_transaction_isolation": "read committed",
                    "timezone": "UTC",
                },
            )
        except UNREACHABLE as error:
            raise StoreUnavailableError(f"PostgreSQL can't be reached: {type(error).__name__}: {error}") from error
        self._pool = pool
        try:
            await self._migrate()
        except BaseException:
            self._pool = None  # a pool without its schema must not pass for open
            await pool.close()
            raise

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()

    async def ping(self) -> None:
        async with self._connection() as connection:
            await connection.fetchval("select 1")

    async def now(self) -> datetime:
        async with self._connection() as connection:
            at: datetime = await connection.fetchval("select threadline_now()")
            return at

    async def set_clock_offset(self, offset: timedelta) -> None:
        """Move the database's clock, for every process on it. For tests and the emulator."""
        async with self._connection() as connection:
            await connection.execute("update threadline_clock set shift = $1", offset)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        if self._pool is None:
            raise StoreUnavailableError("the store is not open")
        try:
            async with self._pool.acquire(timeout=self._timeout_s) as connection:
                yield connection
        except UNREACHABLE as error:
            raise StoreUnavailableError(f"PostgreSQL: {type(error).__name__}: {error}") from error
        except asyncpg.InterfaceError as error:
            if "clos" not in str(error):  # "connection is closed", "pool is closing"; anything else is a fault of ours
                raise
            raise StoreUnavailableError(f"PostgreSQL: {error}") from error

    async def _fetch(self, statement: str, *parameters: Any) -> list[asyncpg.Record]:
        async with self._connection() as connection:
            rows: list[asyncpg.Record] = await connection.fetch(statement, *parameters)
            return rows

    async def _row(self, statement: str, *parameters: Any) -> asyncpg.Record | None:
        rows = await self._fetch(statement, *parameters)
        return rows[0] if rows else None

    async def _migrate(self) -> None:
        async with self._connection() as connection, connection.transaction():
            await connection.execute("select pg_advisory_xact_lock($1)", MIGRATION_LOCK, timeout=MIGRATION_TIMEOUT_S)
            if await connection.fetchval("select to_regclass('threadline_migrations') is null"):
                await self._begin(connection)
            unversioned = None
            if await connection.fetchval(f"select to_regclass('{UNVERSIONED}') is not null"):
                unversioned = await connection.fetchval(f"select fingerprint from {UNVERSIONED}")
                await connection.execute(f"drop table {UNVERSIONED}")
            rows = await connection.fetch(dialect.select(ALL_APPLIED, dialect.Parameters(POSTGRES)))
            applied = [dialect.decode_row(POSTGRES, ALL_APPLIED.table, row) for row in rows]
            for each in pending(self._schemas, applied, POSTGRES, place=PLACE, unversioned=unversioned):
                await _make(connection, each)

    @staticmethod
    async def _begin(connection: Any) -> None:
        await connection.execute("create table if not exists threadline_clock (shift interval not null)")
        await connection.execute(
            "insert into threadline_clock select '0' where not exists (select from threadline_clock)"
        )
        for statement in (CLOCK, *bookkeeping(POSTGRES)):
            await connection.execute(statement)

    # Workers

    async def register(self, worker_id: str, *, host: str, deployment: str, lease: timedelta) -> None:
        await self._fetch(sql.REGISTER, worker_id, host, deployment, lease)

    async def beat(self, worker_id: str, *, lease: timedelta) -> bool:
        return await self._row(sql.BEAT, worker_id, lease) is not None

    async def workers(self) -> list[str]:
        return [row[0] for row in await self._fetch("select worker_id from workers")]

    async def unregister(self, worker_id: str) -> None:
        await self._fetch("delete from workers where worker_id = $1", worker_id)

    async def claim(
        self,
        worker_id: str,
        *,
        queues: Sequence[str],
        workflows: Sequence[tuple[str, str]],
        limit: int,
        leave_out: Sequence[str] = (),
    ) -> list[RunRow]:
        names, versions = [name for name, _ in workflows], [version for _, version in workflows]
        rows = await self._fetch(sql.CLAIM, worker_id, list(queues), limit, names, versions, list(leave_out))
        return [run_row(POSTGRES, row) for row in rows]

    async def load(self, run_id: str) -> list[Record]:
        return [record(POSTGRES, row) for row in await self._fetch(sql.LOAD, run_id)]

    async def release(self, worker_id: str, *, held: Sequence[str]) -> list[str]:
        return [row[0] for row in await self._fetch(sql.RELEASE, worker_id, list(held))]

    async def abandon(self, worker_id: str, run_id: str, *, delay: timedelta) -> None:
        await self._fetch(sql.ABANDON, worker_id, run_id, delay)

    async def cancelled(self, worker_id: str) -> list[str]:
        rows = await self._fetch(
            "select run_id from runs where owner = $1 and state = 'running' and cancel_requested", worker_id
        )
        return [row[0] for row in rows]

    async def reap(self) -> tuple[list[str], list[RunRow]]:
        await self._fetch(sql.REAP_WORKERS)
        rows = [run_row(POSTGRES, row) for row in await self._fetch(sql.REAP_RUNS)]
        return [row.run_id for row in rows if row.state is RunState.READY], [
            row for row in rows if row.state is RunState.RUNNING
        ]

    # Runs

    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        parameters = (
            run.run_id, run.tenant, run.workflow, run.version, run.key, run.queue, run.priority, run.input, run.trace_id, run.deployment,
            run.parent_id, run.parent_path, run.max_attempts, run.available_at, run.paused,
        )  # fmt: skip
        riders, values = _riders(writes, len(parameters))
        statement = sql.INSERT_RUN if not riders else f"with g as ({sql.INSERT_RUN}){riders} select run_id from g"
        for _ in range(3):  # a live run may end between the two statements
            if (row := await self._row(statement, *parameters, *values)) is not None:
                return str(row[0])
            if await self.run(run.run_id) is not None:
                return run.run_id
            if (live := await self._row(sql.LIVE_RUN, run.tenant, run.workflow, run.key)) is not None:
                return str(live[0])
        raise StoreUnavailableError(
            f"the run {run.run_id} could not be inserted for key {run.key!r}: its live run keeps changing"
        )

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        records, children = batch.records, batch.children
        parameters = (
            run_id, fence, [r.path for r in records], [r.output for r in records], [r.status.value for r in records],
            [POSTGRES.encode("json", r.error) for r in records], [r.started_at for r in records], batch.done, batch.inbox_seen,
            list(batch.consumed), [h.topic for h in batch.hints], [h.type for h in batch.hints],
            [to_json(h.data).decode() for h in batch.hints], [c.run_id for c in children], [c.workflow for c in children],
            [c.version for c in children], [c.key for c in children], [c.queue for c in children], [c.input for c in children],
            [c.parent_path for c in children], batch.successor_id, batch.output, [c.max_attempts for c in children],
        )  # fmt: skip
        riders, values = _riders(batch.writes, len(parameters))
        row = await self._row(sql.STEP_HEAD + riders + sql.STEP_TAIL, *parameters, *values)
        assert row is not None
        if row["applied"]:
            return StepOutcome(
                recorded=True, owned=not batch.done, inbox_seq=row["inbox_seq"],
                cancel_requested=row["cancel_requested"], parent_run=row["parent_run"],
            )  # fmt: skip
        return await self._step_refused(run_id, fence, batch)

    async def _step_refused(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = await self._row(sql.STEP_AGAIN, run_id, [r.path for r in batch.records], fence)
        if row is None:
            return StepOutcome(recorded=False, owned=False, inbox_seq=0, cancel_requested=False)
        mine = row["fence"] == fence
        if batch.done:
            recorded = mine and row["state"] == RunState.DONE
        else:
            recorded = bool(batch.records) and row["existing"] == len(batch.records)
        return StepOutcome(
            recorded, mine and row["state"] == RunState.RUNNING, row["inbox_seq"], row["cancel_requested"]
        )

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
        parameters = (run_id, fence, state.value, inbox_seen, successor_id, POSTGRES.encode("json", error), output)
        riders, values = _riders(writes, len(parameters))
        row = await self._row(sql.END_HEAD + riders + sql.END_TAIL, *parameters, *values)
        assert row is not None
        if row["ended"]:
            return EndOutcome(ended=True, successor=row["successor"], carried=row["carried"])
        again = await self._row(sql.ENDED, run_id, state.value, fence)
        return EndOutcome(ended=bool(again and again[0]), successor=None, carried=0)

    async def suspend(self, run_id: str, fence: int, *, inbox_seen: int, until: datetime | None) -> bool:
        return await self._row(sql.SUSPEND, run_id, fence, inbox_seen, until) is not None

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None:
        row = await self._row(
            f"select {sql.RUN} from runs where run_id = $1 and ($2::text is null or tenant = $2)", run_id, tenant
        )
        return None if row is None else run_row(POSTGRES, row)

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
        statement = (
            f"select {sql.RUN} from runs where ($1::text is null or tenant = $1) and ($2::text is null or workflow = $2)"
            " and ($3::text is null or key = $3) and (cardinality($4::text[]) = 0 or state = any($4))"
            " and ($5::text is null or (created_at, run_id) < (select created_at, run_id from runs where run_id = $5))"
            " order by created_at desc, run_id desc limit $6"
        )
        rows = await self._fetch(statement, tenant, workflow, key, [state.value for state in states], before, limit)
        return [run_row(POSTGRES, row) for row in rows]

    # What an operator does

    async def fork(self, fork: Fork) -> bool:
        added = fork.records
        await self._fetch(
            sql.FORK, fork.run_id, fork.source, fork.tenant, fork.cut, list(fork.leave_out), fork.input, fork.paused,
            [r.path for r in added], [r.output for r in added], [r.status.value for r in added], [r.started_at for r in added],
        )  # fmt: skip
        row = await self._row(sql.FORKED, fork.run_id, fork.tenant)
        return bool(row and row[0])

    async def redrive(self, run_id: str, *, tenant: str) -> tuple[bool, str | None]:
        try:
            row = await self._row(sql.REDRIVE, run_id, tenant)
        except asyncpg.UniqueViolationError:  # a live run of its key began at this very moment
            row = await self._row(sql.REDRIVE, run_id, tenant)
        assert row is not None
        return row["redriven"], row["live"]

    async def census(self) -> list[Census]:
        return [Census(row[0], row[1], RunState(row[2]), row[3], row[4]) for row in await self._fetch(sql.CENSUS)]

    # Signals

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        parameters = (
            run.tenant,
            run.workflow,
            run.version,
            run.key,
            run.run_id,
            dedup_key,
            name,
            payload,
            run.queue,
            run.trace_id,
            run.input,
            run.max_attempts,
            run.priority,
            run.deployment,
        )
        riders, values = _riders(writes, len(parameters))
        row = await self._row(sql.SIGNAL_WITH_START_HEAD + riders + sql.SIGNAL_WITH_START_TAIL, *parameters, *values)
        assert row is not None
        return SignalOutcome(row["run_id"], row["seq"], started=row["run_id"] == run.run_id, duplicate=row["duplicate"])

    async def signal(
        self, run_id: str, *, tenant: str, name: str, dedup_key: str, payload: bytes | None
    ) -> SignalOutcome:
        row = await self._row(sql.SIGNAL, run_id, name, dedup_key, payload, tenant)
        assert row is not None
        accepted = row["seq"] is not None
        return SignalOutcome(
            run_id if accepted else None, row["seq"], started=False, duplicate=not accepted and row["duplicate"]
        )

    async def signal_payload(self, run_id: str, dedup_key: str) -> bytes | None:
        row = await self._row(
            "select coalesce(payload, 'null') from signals where run_id = $1 and dedup_key = $2", run_id, dedup_key
        )
        return None if row is None else bytes(row[0])

    async def inbox(self, run_id: str) -> list[Signal]:
        return [signal(POSTGRES, row) for row in await self._fetch(sql.INBOX, run_id)]

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
        row = await self._row(sql.DECIDE, tenant, approval_id, decision, by, successor_id, reason, version)
        assert row is not None
        return row["decided"], row["run_id"]

    async def expired_approvals(self, limit: int = 100) -> list[tuple[str, str, str]]:
        statement = "select tenant, id, workflow from approvals where state = 'pending' and expires_at <= threadline_now() order by expires_at limit $1"
        return [(row[0], row[1], row[2]) for row in await self._fetch(statement, limit)]

    # Schedules

    async def put_schedule(self, schedule: Schedule) -> None:
        values = (
            schedule.tenant, schedule.name, schedule.workflow, schedule.version, schedule.spec, schedule.tz, schedule.next_at,
            schedule.last_at, schedule.paused, schedule.input,
        )  # fmt: skip
        names = [name.strip() for name in sql.SCHEDULE.split(",")]
        marks = ", ".join(f"${n}" for n in range(1, len(values) + 1))
        changed = ", ".join(f"{name} = excluded.{name}" for name in names)
        await self._fetch(
            f"insert into schedules ({sql.SCHEDULE}) values ({marks}) on conflict (tenant, name) do update set {changed}",
            *values,
        )

    async def schedules(self, *, tenant: str | None = None, due: bool = False, limit: int = 100) -> list[Schedule]:
        statement = (
            f"select {sql.SCHEDULE} from schedules where ($1::text is null or tenant = $1)"
            " and (not $2 or (next_at <= threadline_now() and not paused)) order by next_at limit $3"
        )
        return [schedule(POSTGRES, row) for row in await self._fetch(statement, tenant, due, limit)]

    async def delete_schedule(self, *, tenant: str, name: str) -> bool:
        return (
            await self._row("delete from schedules where tenant = $1 and name = $2 returning true", tenant, name)
            is not None
        )

    async def tick(self, schedule: Schedule, *, next_at: datetime, run: NewRun) -> bool:
        row = await self._row(
            sql.TICK, schedule.tenant, schedule.name, schedule.next_at, next_at, run.run_id, run.workflow, run.version, run.key,
            run.queue, run.input, run.max_attempts,
        )  # fmt: skip
        return row is not None

    # Hints

    async def drain_hints(self, limit: int = 500) -> list[Hint]:
        return [Hint(row[0], row[1], from_json(row[2])) for row in await self._fetch(sql.DRAIN_HINTS, limit)]

    # Spans

    async def put_spans(self, new: Sequence[SpanRow], *, again: Sequence[SpanRow] = ()) -> None:
        async with self._connection() as connection:
            if new:
                try:
                    await connection.copy_records_to_table("spans", records=new, columns=SpanRow._fields)
                except asyncpg.UniqueViolationError:  # an earlier COPY of them was committed, and its reply was lost
                    again = (*new, *again)
            if again:
                await connection.execute(sql.UPSERT_SPANS, *map(list, zip(*again, strict=True)))

    async def open_span_owners(self) -> list[str]:
        return [row[0] for row in await self._fetch(sql.OPEN_SPAN_OWNERS)]

    async def interrupt_spans(self, owners: Sequence[str]) -> list[SpanRow]:
        return [SpanRow(*row) for row in await self._fetch(sql.INTERRUPT_SPANS, list(owners))]

    # Rows of the floors above

    async def read(self, query: Select) -> list[dict[str, Any]]:
        parameters = dialect.Parameters(POSTGRES)
        statement = dialect.select(query, parameters)
        rows = await self._fetch(statement, *parameters.values)
        return [dialect.decode_row(POSTGRES, query.table, row) for row in rows]

    async def write(self, *writes: Write) -> int:
        if len(writes) == 1:
            async with self._connection() as connection:
                return await _apply(connection, writes[0])
        async with self._connection() as connection, connection.transaction():
            return sum([await _apply(connection, each) for each in writes])


async def _make(connection: Any, migration: Pending) -> None:
    for statement in migration.statements:
        try:
            await connection.execute(statement, timeout=MIGRATION_TIMEOUT_S)
        except UNREACHABLE:
            raise
        except asyncpg.PostgresError as error:
            raise failed(migration, PLACE, error) from error
    await _apply(connection, migration.row)


async def _apply(connection: Any, change: Write) -> int:
    parameters = dialect.Parameters(POSTGRES)
    tag: str = await connection.execute(dialect.write(change, parameters), *parameters.values)
    return int(tag.rsplit(" ", 1)[-1])


def _riders(writes: Sequence[Write], bound: int) -> tuple[str, list[Any]]:
    """Writes as further CTEs of a statement that has `bound` parameters, in effect only if its CTE `g` has a row."""
    parameters = dialect.Parameters(POSTGRES, start=bound)
    ctes = [f", w{n} as ({dialect.write(each, parameters, guard='g')})" for n, each in enumerate(writes)]
    return "".join(ctes), parameters.values


async def _keep(connection: Any) -> None:
    """Nothing to reset: sessions keep no state here, and asyncpg's own reset costs a round trip per release."""
