"""kill -9 of a worker process on PostgreSQL, for every operation of the builder: another process takes the run over, it ends as if nothing
had happened, and nothing happens twice.

The tests kill at three points of each operation; `./dev chaos` kills at all of them.
"""

import logging
import multiprocessing
import os
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import structlog

from tests.crashes.worker import Orders, work
from tests.flows import Attendant, Case, FileLedger, MemoryLedger, catalogue
from tests.flows.attendant import TENANT
from tests.invariants import Invariants, InvariantViolation
from tests.tally import Tally
from tests.waiting import until
from workflows import Engine
from workflows.pubsub import MemoryPubSub
from workflows.storage import PostgresStore

NAMES = tuple(catalogue(MemoryLedger()))
ALL = os.environ.get("THREADLINE_CHAOS") == "full"
LEASE = timedelta(seconds=11)

pytestmark = [pytest.mark.process, pytest.mark.timeout(900 if ALL else 120)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


class Scene:
    """One database; runs of a case on it, one after the other, each with a worker that is killed and one that takes over."""

    def __init__(self, name: str, dsn: str, store: PostgresStore, directory: Path) -> None:
        self._name = name
        self._dsn = dsn
        self._store = store
        self._directory = directory
        self._shift = timedelta(0)
        self._number = 0
        self._forks = multiprocessing.get_context("forkserver")
        self._forks.set_forkserver_preload(["tests.crashes.worker"])

    async def play(self, at: int = 0) -> tuple[list[str], bool]:
        """A run whose worker is killed at point `at`. Returns the points that were passed, and whether it came to that one."""
        self._number += 1
        trace, ledger = (
            self._directory / f"points-{self._number}",
            FileLedger(self._directory / f"ledger-{self._number}"),
        )
        case = catalogue(ledger)[self._name]
        orders = Orders(self._dsn, self._name, self._directory / f"ledger-{self._number}", trace, at)
        async with self._engine(case, worker=False) as client:
            attendant = Attendant(client, case, f"run-{self._number}", hurry=self._hurry)
            await attendant.begin()
            process = self._forks.Process(target=work, args=(orders,), daemon=True)
            process.start()
            try:
                await self._attend(attendant, process)
                killed = await self._ended(process)
            finally:
                process.kill()
                process.join()
            recorded = await self._store.load(attendant.run_id)
            done = len(ledger.entries())
            if killed:
                await self._take_over(case, attendant)
            await self._check(case, attendant, ledger, recorded, done, killed=killed)
        return trace.read_text().splitlines(), killed

    def _engine(self, case: Case, **options: Any) -> Engine:
        return Engine(
            store=PostgresStore(self._dsn, pool_size=3),
            pubsub=MemoryPubSub(quiet=True),
            workflows=case.flows,
            poll_s=0.05,
            **options,
        )

    async def _attend(self, attendant: Attendant, process: ForkServerProcess | None = None) -> None:
        """Do what the run needs until it has ended with all that came of it, or the process has."""

        async def over() -> bool:
            await attendant.look()
            return (process is not None and not process.is_alive()) or not await self._live()

        await until(over, f"the end of {self._name}", deadline_s=60)

    async def _live(self) -> bool:
        return any(run.state.live for run in await self._store.runs(limit=1000))

    @staticmethod
    async def _ended(process: ForkServerProcess) -> bool:
        if process.is_alive():
            return False
        process.join()
        assert process.exitcode == -SIGKILL, f"the worker ended with {process.exitcode}"
        return True

    async def _take_over(self, case: Case, attendant: Attendant) -> None:
        """The dead worker's lease runs out, and another one comes."""
        await self._hurry(LEASE)
        await self._store.reap()
        async with self._engine(case):
            await self._attend(attendant)

    async def _hurry(self, by: timedelta) -> None:
        self._shift += by
        await self._store.set_clock_offset(self._shift)

    async def _check(
        self, case: Case, attendant: Attendant, ledger: FileLedger, recorded: list[Any], done: int, *, killed: bool
    ) -> None:
        await Invariants(self._store, workflows=case.flows).check(settled=True)
        row = await self._store.run(attendant.run_id, tenant=TENANT)
        assert row is not None
        found = case.problems(row, ledger.entries(), disturbed=killed)
        ended = {record.path for record in recorded}
        found += [
            f"{each.what} at {each.path} was recorded, and was done again"
            for each in ledger.entries()[done:]
            if each.run_id == attendant.run_id and each.path in ended
        ]
        if found:
            raise InvariantViolation(found)


@pytest.fixture
async def store(engine_database: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(engine_database, pool_size=3)
    await opened.open()
    yield opened
    await opened.close()


@pytest.mark.parametrize("name", NAMES)
async def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    name: str, engine_database: str, store: PostgresStore, tmp_path: Path, tally: Tally
) -> None:
    scene = Scene(name, engine_database, store, tmp_path)
    points, _ = await scene.play()
    tally.count("crash points", "postgres, kill -9", operations=1)
    for number in _chosen(name, len(points)):
        try:
            passed, killed = await scene.play(number)
        except (InvariantViolation, AssertionError) as error:
            raise AssertionError(f"{name}, killed at point {number} ({points[number - 1]}): {error}") from error
        # In real time arms may finish in another order and share fewer points, so that the last ones are not reached.
        tally.count("crash points", "postgres, kill -9", killed=int(killed), survived=int(killed))
        assert killed or len(passed) < number


def _chosen(name: str, count: int) -> list[int]:
    """All, or three spread over the run, elsewhere for each case."""
    if ALL:
        return list(range(1, count + 1))
    begin = NAMES.index(name) % 3 + 1
    return sorted({min(begin + part * count // 3, count) for part in range(3)})
