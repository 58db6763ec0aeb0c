"""Two sessions on one database: the first holds its transaction open, the second may have to wait for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

import asyncpg

from tests.waiting import until
from workflows.storage import PostgresStore
from workflows.storage.base import RunRow
from workflows.storage.postgres.session import SETTINGS
from workflows.storage.tables import ENGINE_TABLES

CLEAR = "; ".join(f"delete from {table.name}" for table in ENGINE_TABLES)
"""Quicker than TRUNCATE, which makes new files for each table and index."""
COMPARED = ("runs", "steps", "signals", "received", "dead_signals", "approvals", "schedules", "firings", "workers")
BLOCKED = """
select exists (select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0)
"""

State = dict[str, list[Any]]


class HeldStore(PostgresStore):
    """A store on one session, all of whose operations are one transaction that the test ends."""

    _session: "asyncpg.Connection[asyncpg.Record]"

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        yield self._session

    async def begin(self, session: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._session = session
        self._transaction = self._session.transaction()
        await self._transaction.start()

    async def finish(self, *, commit: bool) -> None:
        await (self._transaction.commit() if commit else self._transaction.rollback())


class Table:
    """A database that is laid anew for each case; `store` is what everybody but the first uses."""

    kinds: tuple[type[PostgresStore], type[HeldStore]] = (PostgresStore, HeldStore)
    """Of the store, and of the first session's."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.store = self.kinds[0](dsn, pool_size=3)

    async def open(self) -> None:
        await self.store.open()
        self._first = await asyncpg.connect(self._dsn, server_settings=SETTINGS)

    async def close(self) -> None:
        await self._first.close()
        await self.store.close()

    async def clear(self) -> None:
        async with self.store._connection() as connection:
            await connection.execute(CLEAR)

    async def hold(self) -> HeldStore:
        """The first session, its transaction begun."""
        held = self.kinds[1](self._dsn)
        await held.begin(self._first)
        return held

    async def waits(self, task: "asyncio.Task[Any]") -> bool:
        """Whether the second has to wait; returns once it is known."""

        async def known() -> bool:
            return task.done() or await self._blocked()

        await until(known, "the second session to end or to wait for the first")
        return not task.done()

    async def _blocked(self) -> bool:
        async with self.store._connection() as connection:
            return bool(await connection.fetchval(BLOCKED))

    async def state(self) -> State:
        """All rows, but for times: of those it says only whether they are there, due, or never."""
        found: State = {}
        async with self.store._connection() as connection:
            for table in COMPARED:
                rows = await connection.fetch(f"select * from {table}")
                found[table] = sorted(str([_shown(row[name]) for name in row]) for row in map(dict, rows))
        return found


def _shown(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    if value.year == 9999:
        return "never"
    return "due" if value <= datetime.now(value.tzinfo) else "later"


def said(outcome: Any) -> Any:
    """What an operation answered, without times; ids in an order of their own."""
    if isinstance(outcome, RunRow):
        return outcome.run_id, outcome.state, outcome.fence, outcome.attempts, outcome.step_seq, outcome.inbox_seq
    if isinstance(outcome, list) and all(isinstance(each, str) for each in outcome):
        return sorted(outcome)
    if isinstance(outcome, list | tuple):
        return type(outcome)(said(each) for each in outcome)
    if is_dataclass(outcome):
        return {each.name: said(getattr(outcome, each.name)) for each in fields(outcome)}
    return outcome
