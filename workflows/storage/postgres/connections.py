"""Connections kept between statements.

asyncpg's pool makes, checks and replaces them. Giving one back to it after each statement costs about as much CPU as the statement
itself (measured: 60 µs of 110), so a healthy one stays here, ready for the next.
"""

import asyncio
from typing import Any

import asyncpg


class Connections:
    """Up to `size` connections of `pool`, one statement or transaction at a time on each."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", *, size: int, timeout_s: float) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._free = asyncio.Semaphore(size)
        self._idle: list[Any] = []
        self._closed = False
        self._releasing: set[asyncio.Future[None]] = set()

    async def take(self) -> Any:
        """A connection nobody else uses; `keep` or `discard` it afterwards. Raises what asyncpg's pool raises, TimeoutError."""
        if self._free.locked():
            async with asyncio.timeout(self._timeout_s):
                await self._free.acquire()
        else:
            await self._free.acquire()
        try:
            while self._idle:
                if await self._in_order(connection := self._idle.pop()):
                    return connection
            return await self._pool.acquire(timeout=self._timeout_s)
        except BaseException:
            self._free.release()
            raise

    async def _in_order(self, connection: Any) -> bool:
        try:
            if not connection.is_closed():
                return True
        except asyncpg.InterfaceError:  # the server closed it while it was idle, and the pool has taken it back already
            return False
        await self._pool.release(connection)
        return False

    def keep(self, connection: Any) -> None:
        """Give back one that is in order, for the next statement."""
        if self._closed:  # nobody takes it any more, and closing waits for it
            task = asyncio.ensure_future(self._pool.release(connection))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)
        else:
            self._idle.append(connection)
        self._free.release()

    async def discard(self, connection: Any) -> None:
        """Give back one whose statement was cut off: the pool waits until it is quiet, or replaces it."""
        try:
            await self._pool.release(connection)
        finally:
            self._free.release()

    async def close(self) -> None:
        """Close all; those in use when they are given back."""
        self._closed = True
        while self._idle:
            await self._pool.release(self._idle.pop())  # which does nothing for one that it has taken back
        await self._pool.close()
