"""The clock removes what is over."""

from datetime import timedelta
from pathlib import Path

from workflows import Effect, Engine, step, workflow
from workflows.storage import Insert, MemoryStore, Retention, SqliteStore
from workflows.storage.tables import RECEIVED
from workflows.workers.retaining import Retaining


@step(effect=Effect.READ)
async def double(n: int) -> int:
    return 2 * n


twice = workflow("twice").then(double).commit()


class Ticking:
    """A monotonic clock that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


async def left(path: Path, retention: Retention | None) -> int:
    """How many of three ended runs a clock leaves half a year later."""
    async with Engine(store=SqliteStore(path), workflows=[twice], poll_s=0.01) as engine:
        for n in range(3):
            assert await (await engine.start(twice, n, tenant="T1")).result(timeout=10) == 2 * n
        await _move_clock(path, timedelta(days=180))
    async with Engine(store=SqliteStore(path), worker=False, clock=True, retention=retention) as engine:
        assert engine.clock is not None
        await engine.clock.stop()
        await engine.clock.sweep()
        return len(await engine.store.runs(tenant="T1"))


async def _move_clock(path: Path, offset: timedelta) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.set_clock_offset(offset)
    await store.close()


async def test_the_clock_removes_old_runs(tmp_path: Path) -> None:
    assert await left(tmp_path / "one.db", Retention(runs_days=90)) == 0


async def test_it_keeps_what_it_is_told_to_keep(tmp_path: Path) -> None:
    assert await left(tmp_path / "one.db", Retention(runs_days=365)) == 3
    assert await left(tmp_path / "two.db", None) == 3


async def test_it_goes_on_while_there_is_something_and_rests_when_there_is_nothing() -> None:
    store, ticking = MemoryStore(), Ticking()
    await store.open()
    sweep = Retaining(store, Retention(), rest_s=60, monotonic=ticking)
    assert await sweep() == 0
    await _receive(store)
    await store.set_clock_offset(timedelta(days=50))
    assert await sweep() == 0
    ticking.at += 61
    assert [await sweep(), await sweep()] == [200, 50]
    await store.close()


async def _receive(store: MemoryStore) -> None:
    await store.write(*(Insert(RECEIVED, {"tenant": "T1", "dedup_key": str(n)}) for n in range(250)))
