"""kill -9 of a worker process whose runs are in Temporal: another one goes on, the run ends as if nothing had happened, and what can't be
undone is done once at most.

The tests kill before and after the first thing that a few operations do; `THREADLINE_CHAOS=full` kills around everything each of them does.
"""

import logging
import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from signal import SIGKILL

import pytest
import structlog

from tests.flows import FileLedger, MemoryLedger, catalogue
from tests.flows.attendant import TENANT
from tests.tally import Tally
from tests.temporal.attending import TemporalAttendant, attend, histories, replayer
from tests.temporal.process import Orders, engine_options, work
from workflows import Engine

ALL = os.environ.get("THREADLINE_CHAOS") == "full"
AFTER = ("then", "foreach", "reconcile", "irreversible", "compensation", "suspend in arms", "a background task")
STRUCK: tuple[tuple[str, int], ...] = (("irreversible arms", 1), *((name, 2) for name in AFTER))
"""Before something is done, and after it was and before anybody has heard of it."""
if ALL:
    STRUCK = tuple((name, at) for name in catalogue(MemoryLedger()) for at in range(1, 13))

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@pytest.fixture
def orders(temporal_address: str, temporal_fleet: str, tmp_path: Path) -> Orders:
    return Orders(temporal_address, temporal_fleet, "", tmp_path / "ledger", tmp_path / "trace")


@pytest.mark.parametrize(("name", "at"), STRUCK)
async def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    orders: Orders, name: str, at: int, tally: Tally
) -> None:
    orders = replace(orders, case=name, at=at)
    ledger = FileLedger(orders.ledger)
    case = catalogue(ledger)[name]
    options = engine_options(orders.address, orders.fleet, worker=False)
    async with Engine(**options, workflows=case.flows) as client:
        attendant = TemporalAttendant(client, case, "run-1")
        await attendant.begin()
        killed = await _work(orders, attendant, client)
        if killed:
            await _work(replace(orders, at=0), attendant, client)
        row = await client.execution.runs.run(attendant.run_id, tenant=TENANT)
        assert row is not None
        assert case.problems(row, ledger.entries(), disturbed=killed) == []
        for history in await histories(client):
            await replayer(case).replay_workflow(history)
    tally.count("crash points", "temporal, kill -9", killed=int(killed), survived=int(killed))
    assert killed or len(orders.trace.read_text().splitlines()) < at


async def _work(orders: Orders, attendant: TemporalAttendant, client: Engine) -> bool:
    """Let a process work until the run has ended with all that came of it, or it has killed itself. Returns which."""
    process = _started(orders)
    try:
        await attend(client, attendant, gone=lambda: not process.is_alive())
        return not process.is_alive()
    finally:
        process.kill()
        process.join()
        assert process.exitcode == -SIGKILL, f"the worker ended with {process.exitcode}"


def _started(orders: Orders) -> ForkServerProcess:
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.temporal.process"])
    process = forks.Process(target=work, args=(orders,), daemon=True)
    process.start()
    return process
