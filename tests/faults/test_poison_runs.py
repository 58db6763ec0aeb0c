"""A run that kills its process with a real SIGKILL, beside runs that do nothing wrong, in workers that are started again each time."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.waiting import until
from workflows.storage import PostgresStore, SqliteStore, Store
from workflows.storage.base import NewRun, RunRow, RunState

GOOD = 10
LEASE_S = 0.5

# A worker that lives until a poison run kills it. Good runs have three steps, each long enough that the kill finds them at work.
WORKER = """
import asyncio, os, signal, sys
from workflows import Effect, Engine, step, workflow
from workflows.pubsub import MemoryPubSub
from workflows.storage import PostgresStore, SqliteStore

@step(effect=Effect.READ)
async def work(n: int) -> int:
    await asyncio.sleep(0.15)
    return n + 1

@step(effect=Effect.READ)
async def poison(n: int) -> int:
    await asyncio.sleep(0.05)
    os.kill(os.getpid(), signal.SIGKILL)
    return n

good = workflow("good").then(work).then(work.named("work-2")).then(work.named("work-3")).commit()
bad = workflow("poison").then(poison).commit()

async def main(url):
    store = PostgresStore(url) if url.startswith("postgres") else SqliteStore(url)
    async with Engine(store=store, pubsub=MemoryPubSub(quiet=True), workflows=[good, bad], poll_s=0.05, lease_s=float(sys.argv[2])) as engine:
        await engine.serve()

asyncio.run(main(sys.argv[1]))
"""


class Supervisor:
    """Starts `count` workers, and each again whenever it dies, as an operator's process manager does."""

    def __init__(self, url: str, count: int) -> None:
        self._url = url
        self._processes: list[subprocess.Popen[bytes]] = []
        self._count = count
        self.deaths = 0

    async def run(self) -> None:
        while True:
            living = [each for each in self._processes if each.poll() is None]
            self.deaths += len(self._processes) - len(living)
            self._processes = living + [self._spawn() for _ in range(self._count - len(living))]
            await asyncio.sleep(0.02)

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WORKER, self._url, str(LEASE_S)]
        return subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL, env={**os.environ})

    def stop(self) -> None:
        for each in self._processes:
            each.kill()
            each.wait()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return str(request.getfixturevalue("engine_database"))


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store: Store = PostgresStore(url) if url.startswith("postgres") else SqliteStore(url)
    await store.open()
    yield store
    await store.close()


Supervise = Callable[[int], Supervisor]


@pytest.fixture
async def supervise(url: str) -> AsyncIterator[Supervise]:
    started: list[tuple[Supervisor, asyncio.Task[None]]] = []

    def start(count: int) -> Supervisor:
        supervisor = Supervisor(url, count)
        started.append((supervisor, asyncio.create_task(supervisor.run())))
        return supervisor

    yield start
    for supervisor, task in started:
        task.cancel()
        await asyncio.wait({task})
        supervisor.stop()


async def ended(store: Store) -> bool:
    return not any(row.state.live for row in await store.runs(tenant="T1"))


async def begin(store: Store, *, poison: int = 1) -> None:
    """The poison in the middle of the line."""
    names = [f"good-{n}" for n in range(GOOD)]
    names[GOOD // 2 : GOOD // 2] = [f"poison-{n}" for n in range(poison)]
    for name in names:
        await store.start(NewRun(name, "T1", name.split("-")[0], input=b"1"))


def lost_attempts(row: RunRow) -> int:
    """A claim raises the fence by one, and so does freeing it from a dead worker."""
    return (row.fence - 1) // 2


@pytest.mark.process
@pytest.mark.parametrize("workers", [1, 2])
async def test_one_poison_run_among_ten_good_ones_takes_none_of_them_with_it(
    store: Store, supervise: Supervise, workers: int
) -> None:
    await begin(store)
    supervisor = supervise(workers)
    await until(lambda: ended(store), "every run to end", deadline_s=90)
    rows = {row.run_id: row for row in await store.runs(tenant="T1")}
    poison = rows.pop("poison-0")
    assert (poison.state, poison.attempts) == (RunState.DEAD, 5)
    assert {row.state for row in rows.values()} == {RunState.DONE}
    assert {row.output for row in rows.values()} == {b"4"}
    assert max(lost_attempts(row) for row in rows.values()) <= 2
    assert supervisor.deaths >= 5  # it did kill its worker on each of its attempts
