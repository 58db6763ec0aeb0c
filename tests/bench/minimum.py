"""The least a durable turn could do: one committed row per step, by plain asyncpg."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg

from tests.bench.subject import Session, Shape, Subject

TABLE = "create table if not exists minimum (turn text not null, seq int not null, body bytea not null, primary key (turn, seq))"
INSERT = "insert into minimum (turn, seq, body) values ($1, $2, $3)"


class Minimum(Subject):
    """An insert of `row_bytes` bytes per step, one after another, each its own commit; each client has a connection."""

    def __init__(self, shape: Shape, *, row_bytes: int) -> None:
        self.kind = f"minimum: {shape.steps} commits"
        self.shape = shape
        self._body = bytes(row_bytes)

    @asynccontextmanager
    async def open(self, dsn: str, *, clients: int) -> AsyncIterator[Session]:
        """Connect."""
        pool = await asyncpg.create_pool(dsn, min_size=clients, max_size=clients, reset=_keep)
        await pool.execute(TABLE)

        async def turn() -> None:
            turn_id = uuid4().hex
            async with pool.acquire() as connection:
                for seq in range(self.shape.steps):
                    await connection.execute(INSERT, turn_id, seq, self._body)

        try:
            yield Session(turn)
        finally:
            await pool.close()


async def _keep(connection: Any) -> None:
    """Asyncpg's own reset would cost the minimum a round trip."""
