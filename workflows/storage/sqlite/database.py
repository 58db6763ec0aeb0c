"""One SQLite file: a connection on a thread of its own, transactions, the clock, and rows of the floors above."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from workflows.errors import SchemaError
from workflows.storage import dialect
from workflows.storage.base import StoreUnavailableError
from workflows.storage.migrations import Schema, schemas_of
from workflows.storage.migrations.engine import ENGINE
from workflows.storage.schema import Select, Table, Write
from workflows.storage.sqlite.upgrade import passing, upgrade

T = TypeVar("T")
SQLITE = dialect.Sqlite()
MICROSECOND = timedelta(microseconds=1)

READ_CLOCK = "select offset_us from threadline_clock"
SET_CLOCK = "update threadline_clock set offset_us = ?1"


class Database:
    """The file. `tables` are those of the floors above: schemas with their migrations, or bare tables."""

    def __init__(
        self, path: str | Path, *, tables: Iterable[Table | Schema] = (), busy_timeout_s: float = 10.0
    ) -> None:
        self._path = str(path)
        self._schemas = schemas_of(ENGINE, *tables)
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
        await self._transact(lambda: self._one(SET_CLOCK, offset // MICROSECOND))

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
        try:
            with self._transaction(read_clock=False):
                upgrade(self._db, self._schemas, place=self._path)
        except BaseException:
            self._connection = None  # a file without its schema must not pass for open
            connection.close()
            raise

    def _now(self) -> int:
        return time.time_ns() // 1000 + self._offset

    # Transactions

    async def _call(self, function: Callable[[], T]) -> T:
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
                self._offset = self._one(READ_CLOCK)[0]
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
