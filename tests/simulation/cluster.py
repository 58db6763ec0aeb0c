"""Processes of the product over one store and one bus, on a virtual loop."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.network import Link, LossyBus, Passing, Trace, Weather, pass_by
from workflows import Engine, Workflow
from workflows.pubsub import Policy
from workflows.pubsub.memory_log import MemoryLog
from workflows.storage import StoreUnavailableError
from workflows.tracing import Span

LEASE_S = 3.0
POLL_S = 0.5


class Nowhere:
    """Spans would write at times that the wall clock decides."""

    def began(self, span: Span) -> None:
        """Not kept."""

    def put(self, span: Span) -> None:
        """Not kept."""


class Node:
    """One process with an engine."""

    def __init__(self, process: Process, engine: Engine, link: Link, loop: VirtualLoop, trace: Trace) -> None:
        self.process = process
        self.engine = engine
        self.link = link
        self._loop = loop
        self._trace = trace

    def __repr__(self) -> str:
        return self.process.name

    async def open(self) -> None:
        """Start it; it connects, as often as it takes, and begins to work as its own process."""
        await self._loop.spawn(self.process, self._open())

    async def _open(self) -> None:
        while True:
            try:
                return await self.engine.open()
            except StoreUnavailableError:
                await asyncio.sleep(0.5)

    def kill(self) -> None:
        """End it between two lines: nothing of it runs any more."""
        self._trace.add(self._loop.time(), self.process, "KILLED")
        self.process.dead = True

    def freeze(self) -> None:
        """Stop it where it is, until `thaw`."""
        self._trace.add(self._loop.time(), self.process, "FROZEN")
        self.process.frozen = True

    def thaw(self) -> None:
        """Let it go on as if no time had passed for it."""
        self._trace.add(self._loop.time(), self.process, "THAWED")
        self.process.frozen = False

    async def leave(self) -> None:
        """Stop it in good order."""
        self._trace.add(self._loop.time(), self.process, "LEAVES")
        await self._loop.spawn(self.process, self.engine.close())
        self.process.dead = True


class Cluster:
    """Boots nodes. All share `store` and a bus, through weather; `trace` keeps what they did."""

    def __init__(
        self, store: Any, flows: Sequence[Workflow[Any, Any]], *, rng: random.Random, weather: Weather
    ) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop = loop
        self.store = store
        self.weather = weather
        self.trace = Trace()
        self.nodes: list[Node] = []
        self._flows = flows
        self._rng = rng
        self._policy = Policy()
        self._log = MemoryLog(self._policy, clock=lambda: loop.time() + 1)

    async def boot(self, name: str, *, store: Any = None, passing: Passing = pass_by, **options: Any) -> Node:
        """A process with an engine of those options, open. `store`: its own connection to what all share."""
        process = Process(f"{name}{len(self.nodes)}")
        link = Link(store or self.store, process, self.weather, self._rng, self.trace, passing)
        bus = LossyBus(self._log, self._policy, process, self.weather, self._rng, passing)
        linked: Any = link  # it passes every operation on, and declares none
        engine = Engine(
            store=linked,
            pubsub=bus,
            workflows=self._flows,
            spans=Nowhere(),
            rng=random.Random(self._rng.random()),
            **{"lease_s": LEASE_S, "poll_s": POLL_S, **options},
        )
        node = Node(process, engine, link, self.loop, self.trace)
        self.nodes.append(node)
        await node.open()
        return node

    @property
    def workers(self) -> list[Node]:
        """The nodes that live, frozen or not, and work runs."""
        return [node for node in self.nodes if not node.process.dead and node.engine.worker is not None]
