"""A blob that nothing refers to is collected, and somebody comes to refer to it at that very moment."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.conformance.store.test_blobs import LARGE
from tests.storage.locks.sessions import Table
from tests.storage.locks.writers import EVERYTHING_IS_OVER, new
from workflows.storage import PostgresStore, Retention, Select
from workflows.storage.base import Fork, Record, Status, StepBatch
from workflows.storage.tables import BLOBS

AGE = "update blobs set at = threadline_now() - interval '10 days'"


@pytest.fixture
async def table(engine_database: str) -> AsyncIterator[Table]:
    laid = Table(engine_database)
    await laid.open()
    await _leave_an_old_blob(laid)
    yield laid
    await laid.close()


async def _leave_an_old_blob(table: Table) -> None:
    await table.store.start(new("first", input=LARGE))
    async with table.store._connection() as connection:
        await connection.execute("delete from runs")
        await connection.execute(AGE)


async def _refers(store: PostgresStore) -> str:
    return await store.start(new("second", input=LARGE))


async def _collects(store: PostgresStore) -> int:
    return (await store.sweep(Retention())).blobs


async def _readable(table: Table) -> bool:
    run = await table.store.run("second")
    return run is not None and run.input == LARGE


@pytest.mark.parametrize("commit", [True, False], ids=("commits", "rolls-back"))
async def test_whoever_refers_to_it_first_keeps_it(table: Table, commit: bool) -> None:
    held = await table.hold()
    await _refers(held)
    assert await _collects(table.store) == 0
    await held.finish(commit=commit)
    assert await _readable(table) is commit
    assert await _collects(table.store) == int(not commit)


@pytest.mark.parametrize("commit", [True, False], ids=("commits", "rolls-back"))
async def test_whoever_comes_while_it_is_collected_waits_and_has_it(table: Table, commit: bool) -> None:
    held = await table.hold()
    assert await _collects(held) == 1
    task = asyncio.create_task(_refers(table.store))
    assert await table.waits(task)
    await held.finish(commit=commit)
    await task
    assert await _readable(table)
    assert await _collects(table.store) == 0
    assert len(await table.store.read(Select(BLOBS, {"tenant": "T1"}))) == 1


async def test_a_fork_and_the_collector_of_its_source_wait_for_each_other(table: Table) -> None:
    """What the fork copies is referred to all the time, by its source or by itself."""
    await table.store.register("A", host="a", deployment="", lease=timedelta(days=1))
    await table.store.start(new("source", key=None))
    await table.store.claim("A", queues=["default"], workflows=[("w", "1")], limit=1)
    await table.store.step("source", 1, StepBatch((Record("a", Status.OK, LARGE),), done=True))
    held = await table.hold()
    assert await held.fork(Fork("copy", "source", "T1", cut=2, input=None))
    assert (await table.store.sweep(EVERYTHING_IS_OVER)).runs == 0
    await held.finish(commit=True)
    assert (await table.store.load("copy"))[0].output == LARGE
