"""Workers whose connections to PostgreSQL and Redis break, lose, delay and swallow messages, by a seed: every run ends as it should, and
nothing happens twice. `THREADLINE_CHAOS=full` (`./dev chaos`) raises more storms.
"""

import asyncio
import logging
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
import structlog

from tests.faults.proxy import Fault, Proxy, Weather
from tests.flows import Attendant, MemoryLedger, catalogue
from tests.flows.attendant import TENANT
from tests.invariants import Invariants, InvariantViolation
from tests.tally import Tally
from tests.waiting import until
from workflows import Engine
from workflows.pubsub import RedisPubSub
from workflows.storage import PostgresStore, StoreUnavailableError

SEEDS = range(30 if os.environ.get("THREADLINE_CHAOS") == "full" else 2)
STORM_S = 6.0
CALM_S = 60.0
TOO_LONG = frozenset({"retry with a long wait"})
"""Its wait is twenty seconds, and nobody moves the clock here: that would end every lease."""
CHANCES = {
    Fault.REQUEST_LOST: 0.02,
    Fault.REPLY_LOST: 0.02,
    Fault.CUT: 0.01,
    Fault.REQUEST_SWALLOWED: 0.003,
    Fault.DELAYED: 0.05,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


class Storm:
    """Two workers behind proxies; a client that reaches everything directly."""

    def __init__(self, seed: int, dsn: str, redis_url: str, prefix: str) -> None:
        self.databases, self.buses = Weather(dict(CHANCES)), Weather(dict(CHANCES))
        self._ledger = MemoryLedger()
        self._cases = [case for name, case in catalogue(self._ledger).items() if name not in TOO_LONG]
        random.Random(seed).shuffle(self._cases)
        self._seed = seed
        self._dsn = dsn
        self._redis_url = redis_url
        self._prefix = prefix
        self._store = PostgresStore(dsn, pool_size=3)

    async def rage(self) -> int:
        """Raise it, let it pass, and check what it left. Returns how many runs there were."""
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(Proxy(self._dsn, seed=self._seed, weather=self.databases))
            redis = await stack.enter_async_context(Proxy(self._redis_url, seed=-self._seed, weather=self.buses))
            client = await stack.enter_async_context(self._engine(self._store, self._redis_url, worker=False))
            attendants = [Attendant(client, case, f"run-{number}") for number, case in enumerate(self._cases)]
            for attendant in attendants:
                await attendant.begin()
            for _ in range(2):
                store = PostgresStore(postgres.url, pool_size=4, timeout_s=1.0)
                await self._opened(stack, self._engine(store, redis.url))
            await self._attend(attendants)
            await self._check(attendants)
            return len(await self._store.runs(limit=1000))

    def _engine(self, store: PostgresStore, redis_url: str, **options: Any) -> Engine:
        flows = [flow for case in self._cases for flow in case.flows]
        bus = RedisPubSub(redis_url, self._prefix, timeout_s=1.0)
        return Engine(store=store, pubsub=bus, workflows=flows, **{"poll_s": 0.1, "lease_s": 5, **options})

    async def _opened(self, stack: AsyncExitStack, engine: Engine) -> None:
        """As a process's supervisor does: open it until it is."""
        await _until_open(engine)
        stack.push_async_callback(engine.close)

    async def _attend(self, attendants: Sequence[Attendant]) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def over() -> bool:
            if loop.time() - begun > STORM_S:
                self.databases.calm()
                self.buses.calm()
            for attendant in attendants:
                await attendant.look()
            return not any(run.state.live for run in await self._store.runs(limit=1000))

        await until(over, "every run to end", deadline_s=STORM_S + CALM_S)

    async def _check(self, attendants: Sequence[Attendant]) -> None:
        flows = [flow for case in self._cases for flow in case.flows]
        await Invariants(self._store, workflows=flows).check(settled=True)
        runs = await self._store.runs(limit=1000)
        problems = []
        for case, attendant in zip(self._cases, attendants, strict=True):
            family = {run.run_id for run in runs if run.run_id == attendant.run_id or run.workflow in _ids(case.others)}
            row = await self._store.run(attendant.run_id, tenant=TENANT)
            assert row is not None
            entries = [entry for entry in self._ledger.entries() if entry.run_id in family]
            problems += case.problems(row, entries, disturbed=True)
        if problems:
            raise InvariantViolation(problems)


def _ids(flows: Sequence[Any]) -> set[str]:
    return {flow.id for flow in flows}


async def _until_open(engine: Engine) -> None:
    while True:
        try:
            return await engine.open()
        except StoreUnavailableError:
            await asyncio.sleep(0.05)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", SEEDS)
async def test_every_run_ends_whatever_its_connections_do(
    seed: int, engine_database: str, redis_url: str, redis_prefix: str, tally: Tally
) -> None:
    storm = Storm(seed, engine_database, redis_url, redis_prefix)
    runs = await storm.rage()
    for name, weather in (("postgres", storm.databases), ("redis", storm.buses)):
        assert weather.done, f"no fault befell {name}"
        tally.count(
            "faults on connections", name, **{fault.value: times for fault, times in sorted(weather.done.items())}
        )
    tally.count("faults on connections", "runs", ended=runs)
    tally.count("invariants", checks=1, violations=0)
