"""Connections that are kept between statements, when the server goes away under them."""

import asyncio
from typing import Any

from tests.servers import PostgresServer
from tests.waiting import until
from workflows.storage import PostgresStore, StoreUnavailableError


async def test_after_a_restart_the_first_statement_on_each_connection_succeeds(
    private_postgres: PostgresServer,
) -> None:
    """All of them were idle when the server closed them: nobody's statement was cut off, so nobody is told of an outage."""
    store = PostgresStore(private_postgres.dsn, pool_size=5)
    await store.open()
    await asyncio.gather(*(store._fetch("select pg_sleep(0.1)") for _ in range(5)))
    private_postgres.restart()
    await until(lambda: _all_closed(store), "the idle connections to be closed")
    await asyncio.gather(*(store.now() for _ in range(20)))
    await store.close()


def _all_closed(store: PostgresStore) -> bool:
    kept: Any = store._pool
    return len(kept._idle) == 5 and not any(holder.is_connected() for holder in kept._pool._holders)


async def test_a_store_can_be_closed_after_its_server_is_gone(private_postgres: PostgresServer) -> None:
    store = PostgresStore(private_postgres.dsn, pool_size=3)
    await store.open()
    await asyncio.gather(*(store.now() for _ in range(3)))
    private_postgres.kill()

    async def away() -> bool:
        try:
            await store.now()
        except StoreUnavailableError:
            return True
        return False

    await until(away, "the store to notice")
    async with asyncio.timeout(10):
        await store.close()


async def test_a_statement_that_is_under_way_when_its_store_is_closed_does_not_hold_it_up(postgres_url: str) -> None:
    """A worker gives up a step that ignores its cancellation, and what that step does later must not keep the process from leaving."""
    store = PostgresStore(postgres_url, pool_size=2)
    await store.open()
    slow = asyncio.create_task(store._fetch("select pg_sleep(0.5)"))
    await until(lambda: len(_idle(store)) == 0, "the statement to be under way")
    async with asyncio.timeout(20):
        await store.close()
    assert len(await slow) == 1


def _idle(store: PostgresStore) -> list[Any]:
    kept: Any = store._pool
    idle: list[Any] = kept._idle
    return idle
