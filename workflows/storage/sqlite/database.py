"""One SQLite file: a connection on a thread of its own, transactions, and the clock."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from workflows.storage import dialect
from workflows.storage.base import StoreUnavailableError
from workflows.storage.blobs import Apart, Owned, large
from workflows.storage.migrations import Schema, schemas_of
from workflows.storage.migrations.engine import ENGINE
from workflows.storage.moments import MICROSECOND
from workflows.storage.schema import Table
from workflows.storage.sqlite.session import set_durable
from workflows.storage.sqlite.upgrade import passing, upgrade

T = TypeVar("T")
SQLITE = dialect.Sqlite()

READ_CLOCK = "select offset_us from threadline_clock"
SET_CLOCK = "update threadline_clock set offset_us = ?1"

# ?1 tenant, or null for that of ?2 run ?3 digest ?4 body
KEEP = """
insert into blobs (tenant, sha256, body) values (coalesce(?1, (select tenant from runs where run_id = ?2)), ?3, ?4)
on conflict (tenant, sha256) do update set at = threadline_now()
"""

# ?1 tenant, or null for that of ?2 run ?3 digest
BODY = "select body from blobs where tenant = coalesce(?1, (select tenant from runs where run_id = ?2)) and sha256 = ?3"


class Database:
    """The file, by its path or as a `file:` URI. `tables` are those of the floors above: schemas with their migrations, or bare tables."""

    def __init__(
        self, path: str | Path, *, tables: Iterable[Table | Schema] = (), busy_timeout_s: float = 10.0
    ) -> None:
        self._path = str(path)
        self._schemas = schemas_of(ENGINE, *tables)
        self._busy_timeout_s = busy_timeout_s
        self._connection: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._offset = 0
        self._apart = Apart()

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for schema in self._schemas for table in schema.tables)

    # Life

    async def open(self) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")
        await self._call(self._open)

    async def close(self) -> None:
        if self._connection is not None:
            await self._call(self._connection.close)
            self._connection = None
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None

    async def ping(self) -> None:
        await self._call(lambda: self._db.execute("select 1").fetchone())

    async def now(self) -> datetime:
        at = dialect.moment(await self._transact(lambda: self._now()))  # noqa: PLW0108 — _now reads the offset in the transaction
        assert at is not None
        return at

    async def set_clock_offset(self, offset: timedelta) -> None:
        """Move the store's clock, for every process on this file. For tests and the emulator."""
        await self._transact(lambda: self._one(SET_CLOCK, offset // MICROSECOND))
        await self.now()  # a look outside of a transaction reads the clock as the last one did

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError(f"the store {self._path} is not open")
        return self._connection

    def _open(self) -> None:
        if self._connection is not None:
            return
        connection = sqlite3.connect(
            self._path,
            isolation_level=None,
            check_same_thread=False,
            timeout=self._busy_timeout_s,
            uri=self._path.startswith("file:"),
        )
        connection.create_function("threadline_now", 0, self._now)
        try:
            set_durable(connection, place=self._path, busy_timeout_s=self._busy_timeout_s)
            self._connection = connection
            with self._transaction(read_clock=False):
                upgrade(self._db, self._schemas, place=self._path)
        except BaseException:
            self._connection = None  # a file without its schema must not pass for open
            connection.close()
            raise

    def _now(self) -> int:
        return time.time_ns() // 1000 + self._offset

    # Statements

    async def _call(self, function: Callable[[], T]) -> T:
        if self._thread is None:
            raise StoreUnavailableError("the store is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except sqlite3.OperationalError as error:
            if not passing(error):
                raise
            raise StoreUnavailableError(f"SQLite: {error}") from error
        except (sqlite3.ProgrammingError, RuntimeError) as error:
            if "closed" in str(error) or "shutdown" in str(error):
                raise StoreUnavailableError("the store is closed") from error
            raise

    async def _transact(self, function: Callable[[], T], *, tenant: str | None = None, run_id: str | None = None) -> T:
        """Run `function` in a transaction; its large values are `tenant`'s, or of the tenant of `run_id`."""

        def run() -> T:
            with self._transaction():
                result = function()
                self._keep(tenant, run_id)
                return result

        return await self._call(run)

    @contextmanager
    def _transaction(self, *, read_clock: bool = True) -> Iterator[None]:
        self._apart = Apart()
        self._db.execute("begin immediate")
        try:
            if read_clock:
                self._offset = self._one(READ_CLOCK)[0]
            yield
            self._db.execute("commit")
        except BaseException:
            if self._db.in_transaction:  # a full disk may have rolled it back already
                self._db.execute("rollback")
            raise

    def _rows(self, sql: str, *parameters: Any) -> list[Any]:
        if any(type(each) is bytes and large(each) for each in parameters):
            return self._lightened(sql, parameters)
        return self._db.execute(sql, parameters).fetchall()

    def _one(self, sql: str, *parameters: Any) -> Any:
        rows = self._rows(sql, *parameters)
        return rows[0] if rows else None

    # Large values

    def _lightened(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        """Send a statement without its large values, which are kept at the end of the transaction if it changed anything."""
        apart, before = Apart(), self._db.total_changes
        rows = self._db.execute(sql, apart.parameters(parameters)).fetchall()
        if self._db.total_changes != before:
            self._apart.bodies.update(apart.bodies)
        return rows

    def _keep(self, tenant: str | None, run_id: str | None) -> None:
        for (owner, digest), body in self._apart.bodies.items():
            self._db.execute(KEEP, (owner or tenant, run_id, digest, body))

    def _body(self, owned: Owned, tenant: str | None, run_id: str | None) -> bytes | None:
        row = self._db.execute(BODY, (owned[0] or tenant, run_id, owned[1])).fetchone()
        return None if row is None else bytes(row[0])
