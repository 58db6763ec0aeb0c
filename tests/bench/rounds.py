"""Rounds: every subject once per round, one after the other, so that whatever else the machine does hits all of them."""

import asyncio
import gc
import time
from dataclasses import dataclass

import asyncpg

from tests.bench.meter import Meter, Reading
from tests.bench.subject import Session, Subject


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked of a subject in a round: turns one after another, and `clients` at once with `each` turns (0: none)."""

    one_by_one: int
    clients: int = 1
    each: int = 0
    warm_up: int = 2


@dataclass(frozen=True, slots=True)
class Figures:
    """One subject in one round. Latencies of single turns; the rest per turn, of those done one after another."""

    latencies_ms: tuple[float, ...]
    turns_per_s: float | None
    cpu_ms_at_once: float | None
    commits: float
    wal: float
    stored: float
    rows: float
    cpu_ms: float


async def measure(subject: Subject, load: Load, dsn: str) -> Figures:
    """One round of one subject, on the database it has from its rounds before."""
    connection = await asyncpg.connect(dsn)
    try:
        async with subject.open(dsn, clients=load.clients) as session:
            for _ in range(load.warm_up):
                await session.turn()
            await session.settle()
            meter = Meter(connection)
            gc.collect()
            latencies, cpu_s, used = await _one_by_one(session, load.one_by_one, meter)
            rate, cpu_ms = await _at_once(session, load) if load.each else (None, None)
            each = load.one_by_one
            return Figures(
                tuple(latencies), rate, cpu_ms, used.commits / each, used.wal / each, used.stored / each, used.rows / each,
                cpu_s * 1000 / each,
            )  # fmt: skip
    finally:
        await connection.close()


async def _one_by_one(session: Session, turns: int, meter: Meter) -> tuple[list[float], float, Reading]:
    latencies = []
    before, computed = await meter.read(), time.process_time()
    for _ in range(turns):
        began = time.perf_counter()
        await session.turn()
        latencies.append((time.perf_counter() - began) * 1000)
    await session.settle()
    cpu_s = time.process_time() - computed
    return latencies, cpu_s, await meter.read() - before


async def _at_once(session: Session, load: Load) -> tuple[float, float]:
    async def client() -> None:
        for _ in range(load.each):
            await session.turn()

    # Once unmeasured: connections that are new prepare and plan each statement several times, which a process does once in its life.
    await asyncio.gather(*(client() for _ in range(load.clients)))
    await session.settle()
    began, computed = time.perf_counter(), time.process_time()
    await asyncio.gather(*(client() for _ in range(load.clients)))
    await session.settle()
    turns = load.clients * load.each
    return turns / (time.perf_counter() - began), (time.process_time() - computed) * 1000 / turns


class Databases:
    """An empty database per subject, on one server."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._made: dict[str, str] = {}

    async def of(self, subject: Subject) -> str:
        """The subject's DSN; made at the first question."""
        if subject.name not in self._made:
            name = f"bench_{len(self._made)}"
            connection = await asyncpg.connect(self._dsn)
            await connection.execute(f"create database {name}")
            await connection.close()
            self._made[subject.name] = self._dsn.rsplit("/", 1)[0] + f"/{name}"
        return self._made[subject.name]
