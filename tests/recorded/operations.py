"""The story of each operation of the builder, played on virtual time."""

import asyncio
import random

from tests.flows import Attendant, MemoryLedger, catalogue
from tests.recorded.kept import Story
from tests.simulation.cluster import Cluster
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Weather
from workflows import Workflow
from workflows.storage import MemoryStore

WITHIN_S = 300.0
CASES = catalogue(MemoryLedger())


def play(name: str) -> Story:
    """A run of the case of that name, undisturbed, with all that came of it."""
    return VirtualLoop.of(random.Random(0), disorder=0.0).simulate(_play(name), within_s=WITHIN_S)


async def _play(name: str) -> Story:
    case, store = catalogue(MemoryLedger())[name], MemoryStore()
    await store.open()
    cluster = Cluster(store, case.flows, rng=random.Random(0), weather=Weather())
    client = await cluster.boot("client", worker=False)
    await cluster.boot("worker")
    attendant = Attendant(client.engine, case, "run")
    await attendant.begin()
    while True:
        await attendant.look()
        if not any(run.state.live for run in await store.runs(limit=1000)):
            return await Story.of(store)
        await asyncio.sleep(0.2)


def flows(name: str) -> "tuple[Workflow[object, object], ...]":
    """The workflows of that case, as they are today."""
    return CASES[name].flows
