"""Connections that are kept between statements, when the server goes away under them."""

import asyncio
from collections import Counter
from typing import Any

import asyncpg

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


ENDS = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


async def test_whatever_a_server_that_ends_connections_leads_to_is_unavailable(postgres_url: str) -> None:
    """A statement may begin between the server's word that it ends an idle connection and the end itself: P14, the run waits."""
    store, operator = PostgresStore(postgres_url), await asyncpg.connect(postgres_url)
    await store.open()
    met: Counter[str] = Counter()

    async def ask(number: int) -> None:
        await asyncio.sleep(number * 0.0004)  # spread over the moments of an end
        try:
            await store.now()
        except Exception as error:
            met[type(error).__name__] += 1
        else:
            met["answered"] += 1

    for _ in range(30):
        await asyncio.gather(*(store.now() for _ in range(8)), return_exceptions=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(operator.fetch(ENDS))
            for number in range(12):
                tasks.create_task(ask(number))
    await operator.close()
    await store.close()
    assert met.keys() <= {"answered", "StoreUnavailableError"}
    assert len(met) == 2, "no statement met the end of its connection"


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
