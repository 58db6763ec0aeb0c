"""One PostgreSQL database: a pool of connections, what its faults mean, and the clock."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from workflows.errors import AccessError
from workflows.storage import dialect
from workflows.storage.base import StoreUnavailableError
from workflows.storage.migrations import Schema, schemas_of
from workflows.storage.migrations.engine import ENGINE
from workflows.storage.postgres.connections import Connections
from workflows.storage.postgres.session import SETTINGS, assert_durable
from workflows.storage.postgres.upgrade import upgrade
from workflows.storage.schema import Table

POSTGRES = dialect.Postgres()

UNREACHABLE = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.CannotConnectNowError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.exceptions.TransactionRollbackError,
    asyncpg.InternalClientError,  # a statement between the server's word that it ends an idle connection and the end itself
)
"""Faults that may pass. What was asked may have been committed or not."""

REFUSED = (
    asyncpg.exceptions.InvalidAuthorizationSpecificationError,
    asyncpg.exceptions.InvalidCatalogNameError,
    asyncpg.exceptions.InsufficientPrivilegeError,
)
"""Faults that stay until somebody changes the server or the DSN."""

PING = "select 1"
NOW = "select threadline_now()"
SET_CLOCK = "update threadline_clock set shift = $1"


class Database:
    """The connections to one database."""

    def __init__(
        self, dsn: str, *, tables: Iterable[Table | Schema] = (), pool_size: int = 10, timeout_s: float = 10.0
    ) -> None:
        self._dsn = dsn
        self._schemas = schemas_of(ENGINE, *tables)
        self._pool_size = pool_size
        self._timeout_s = timeout_s
        self._pool: Connections | None = None

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for schema in self._schemas for table in schema.tables)

    # Life

    async def open(self) -> None:
        if self._pool is not None:
            return
        pool = Connections(await self._connect(), size=self._pool_size, timeout_s=self._timeout_s)
        self._pool = pool
        try:
            async with self._connection() as connection:
                await upgrade(connection, self._schemas)
        except BaseException:
            self._pool = None  # a pool without its schema must not pass for open
            await pool.close()
            raise

    async def _connect(self) -> "asyncpg.Pool[asyncpg.Record]":
        try:
            return await asyncpg.create_pool(
                self._dsn,
                min_size=1,
                max_size=self._pool_size,
                timeout=self._timeout_s,
                command_timeout=self._timeout_s,
                reset=_keep,
                statement_cache_size=1000,  # a step's statement has a text for each combination of parts and tables
                init=assert_durable,
                server_settings=SETTINGS,
            )
        except UNREACHABLE as error:
            raise StoreUnavailableError(f"PostgreSQL can't be reached: {type(error).__name__}: {error}") from error
        except REFUSED as error:
            raise AccessError(
                f"PostgreSQL does not let this process in: {error}. Check the DSN, and the role's rights"
            ) from error

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()

    async def ping(self) -> None:
        await self._fetch(PING)

    async def now(self) -> datetime:
        ((at,),) = await self._fetch(NOW)
        assert isinstance(at, datetime)
        return at

    async def set_clock_offset(self, offset: timedelta) -> None:
        """Move the database's clock, for every process on it. For tests and the emulator."""
        await self._fetch(SET_CLOCK, offset)

    # Statements

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        if self._pool is None:
            raise StoreUnavailableError("the store is not open")
        pool = self._pool
        try:
            connection = await pool.take()
            try:
                yield connection
            except asyncpg.PostgresError:
                pool.keep(connection)  # the server has answered, so the connection is in order
                raise
            except BaseException:
                await pool.discard(connection)
                raise
            pool.keep(connection)
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

    async def _one(self, statement: str, *parameters: Any) -> asyncpg.Record:
        """The one row of a statement that always has one."""
        (row,) = await self._fetch(statement, *parameters)
        return row

    async def _row(self, statement: str, *parameters: Any) -> asyncpg.Record | None:
        rows = await self._fetch(statement, *parameters)
        return rows[0] if rows else None


async def _keep(connection: Any) -> None:
    """Nothing to reset: sessions keep no state here, and asyncpg's own reset costs a round trip per release."""
