"""Memory: the same operations over a private in-memory SQLite database. It cannot survive its process, and says so."""

import sqlite3
from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog

from workflows.storage.base import StoreUnavailableError
from workflows.storage.migrations import Schema
from workflows.storage.schema import Table
from workflows.storage.sqlite import SqliteStore

T = TypeVar("T")


class MemoryStore(SqliteStore):
    """For tests and trying things out: nothing is kept when the process ends (no P1, no P5).

    It runs in the caller's thread, so an operation is atomic by itself and interleavings are those of the event loop alone. Building it
    on the SQLite statements means one implementation fewer that could differ in an outcome.
    """

    def __init__(self, *, tables: Iterable[Table | Schema] = ()) -> None:
        super().__init__(":memory:", tables=tables)

    async def open(self) -> None:
        structlog.get_logger().warning("memory_store_opened", unsafe="nothing is kept when this process ends")
        await super().open()

    async def _call(self, function: Callable[[], T]) -> T:
        try:
            return function()
        except sqlite3.ProgrammingError as error:
            if "closed" not in str(error):
                raise
            raise StoreUnavailableError("the store is closed") from error
