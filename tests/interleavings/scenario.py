"""What happens in one seed: runs of several kinds, people who talk, clocks, bad weather, and processes that die, freeze and leave."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

from pydantic_core import from_json

from tests.flows import Attendant, Case, MemoryLedger, catalogue
from tests.flows.attendant import TENANT
from tests.flows.ledger import done
from tests.interleavings.witness import Witness
from tests.invariants import Invariants, InvariantViolation
from tests.simulation.cluster import Cluster, Node
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Weather
from workflows import Effect, StepContext, Workflow, step, workflow
from workflows.storage import MemoryStore, Store, StoreUnavailableError

STORM_S = 15.0
DISRUPTIONS = 4
"""One fewer than the attempts a run has."""
SETTLED_S = 600.0
WRITES = frozenset({"before step", "before end", "before suspend"})
WAYS_S = (0, 0, 0.01, 0.5, 3.0)
MakeStore = Callable[[], Store]


class SlowLedger(MemoryLedger):
    """Whoever writes into it is now and then long on the way, there or back."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    async def did(self, what: str, ctx: StepContext) -> None:
        await asyncio.sleep(self._rng.choice(WAYS_S))
        await super().did(what, ctx)
        await asyncio.sleep(self._rng.choice(WAYS_S))


class SeedFailed(AssertionError):
    """What a seed brought to light, with how to see it again."""


class Scenario:
    """One seed. `play` runs it to its end and raises what it finds.

    `overtaken`: the one write ("step", "suspend", "end") before which processes freeze, and nothing else happens to them.
    """

    def __init__(self, seed: int, *, make_store: MakeStore = MemoryStore, overtaken: str | None = None) -> None:
        self.seed = seed
        self._overtaken = overtaken
        self.ended = self.lost = self.checks = 0
        self.digest = 0
        self._make_store = make_store
        self._rng = random.Random(seed)
        self._ledger = SlowLedger(random.Random(self._rng.random()))
        cases = catalogue(self._ledger)
        self._cases = [cases[name] for name in self._rng.sample(sorted(cases), 5)]
        self._talk, self._fired = _talk(), _fired(self._ledger)
        self._accepted: set[str] = set()
        self._words = [f"w{number}" for number in range(8)]
        self._busy: list[asyncio.Task[Any]] = []
        self._asleep: dict[str, Node] = {}
        self._outside = copy_context()
        self._attendants: list[tuple[Case, Attendant]] = []

    def play(self) -> None:
        """Raises SeedFailed."""
        rng = self._rng
        loop = VirtualLoop.of(
            random.Random(rng.random()), disorder=rng.choice((0.1, 0.5, 1.0)), begin_s=rng.uniform(0, 60)
        )
        try:
            loop.simulate(self._play(), within_s=STORM_S + SETTLED_S + 60)
        except Exception as error:
            trace = self._cluster.trace if hasattr(self, "_cluster") else ""
            raise SeedFailed(
                f"{trace}\nseed {self.seed}: {error}\nagain: THREADLINE_SEEDS={self.seed} ./dev test tests/interleavings"
            ) from error

    async def _play(self) -> None:
        rng = self._rng
        weather = Weather(
            lost_request=rng.choice((0.0, 0.01, 0.05)),
            lost_reply=rng.choice((0.0, 0.01, 0.05)),
            slow=rng.choice((0.0, 0.01, 0.05)),
            lost_hint=rng.choice((0.0, 0.3, 1.0)),
        )
        store = self._witness = Witness(self._make_store())
        store.claimed = self._claimed
        await store.open()
        flows = [*(flow for case in self._cases for flow in case.flows), self._talk, self._fired]
        self._cluster = Cluster(store, flows, rng=random.Random(rng.random()), weather=weather)
        self._invariants = Invariants(store, workflows=flows)
        client = self._client = await self._cluster.boot("client", worker=False)
        for _ in range(rng.randint(1, 3)):
            await self._boot()
        await self._insist(
            lambda: client.engine.schedule("fired", self._fired, 0, spec="* * * * *", tz="UTC", tenant=TENANT)
        )
        loop = self._cluster.loop
        tasks = (*(self._attend(case) for case in self._cases), *self._people())
        self._busy = [loop.spawn(client.process, task) for task in tasks]
        await self._storm()
        await self._insist(lambda: client.engine.store.delete_schedule(tenant=TENANT, name="fired"))
        self._words.clear()
        await asyncio.gather(*self._busy)
        await self._settle(store)
        await self._check(store)
        await store.close()

    async def _boot(self) -> Node:
        return await self._cluster.boot(
            "worker", clock=True, concurrency=self._rng.choice((1, 3, 10)), passing=self._interrupting
        )

    async def _interrupting(self, moment: str, run_id: str) -> None:
        """Now and then somebody says something just when a run is about to write: that is when a message is lost, if ever."""
        if moment in WRITES and self._words and self._rng.random() < 0.1:
            row = await self._witness.run(run_id)
            if row is not None and row.workflow == self._talk.id and row.key is not None:
                said = self._speak(self._words.pop(), row.key)
                self._busy.append(self._cluster.loop.spawn(self._client.process, said))

    # Clients

    async def _attend(self, case: Case) -> None:
        """Start a run at some time, and do what it needs until it has ended."""
        attendant = Attendant(self._client.engine, case, f"{case.name}-{self.seed}")
        self._attendants.append((case, attendant))
        await asyncio.sleep(self._rng.uniform(0, STORM_S / 2))
        await self._insist(attendant.begin)
        while (await self._insist(attendant.look)).state.live:
            await asyncio.sleep(self._rng.uniform(0.3, 1.5))

    def _people(self) -> list[Any]:
        return [self._say(f"m{number}", f"thread-{number % 2}") for number in range(6)]

    async def _say(self, text: str, key: str) -> None:
        """Once it is accepted; now and then a second time, as an event that is delivered twice."""
        await asyncio.sleep(self._rng.uniform(0, STORM_S))
        for _ in range(self._rng.choice((1, 1, 2))):
            await self._speak(text, key)

    async def _speak(self, text: str, key: str) -> None:
        engine = self._client.engine
        await self._insist(
            lambda: engine.signal_with_start(
                self._talk, tenant=TENANT, key=key, name="message", dedup_key=text, payload=text
            )
        )
        self._accepted.add(text)

    @staticmethod
    async def _insist(operation: Callable[[], Awaitable[Any]]) -> Any:
        """Ask again until it is known to have happened, as every client has to."""
        while True:
            try:
                return await operation()
            except StoreUnavailableError:
                await asyncio.sleep(0.1)

    # Weather

    async def _storm(self) -> None:
        for _ in range(self._rng.randint(1, DISRUPTIONS)):
            await asyncio.sleep(self._rng.uniform(0, STORM_S / DISRUPTIONS))
            await self._disrupt()
            await self._invariants.check()
            self._witness.testify()
        self._cluster.weather.calm()  # who is frozen stays so until its time has come
        if not self._cluster.workers:
            await self._boot()

    async def _disrupt(self) -> None:
        workers = [node for node in self._cluster.workers if not node.process.frozen]
        what = self._rng.choice(("kill", "kill", "freeze", "overtake", "overtake", "leave", "boot"))
        if self._overtaken is not None:
            what = "overtake"
        if what == "boot" or not workers:
            await self._boot()
        elif what == "kill":
            self._rng.choice(workers).kill()
        elif what == "freeze":
            self._freeze(self._rng.choice(workers))
        elif what == "overtake":
            write = self._overtaken or self._rng.choice(("step", "suspend", "end", "end"))
            self._overtake(self._rng.choice(workers), f"before {write}")
            if len(workers) == 1:
                await self._boot()
        else:
            await self._rng.choice(workers).leave()

    def _overtake(self, node: Node, where: str) -> None:
        """Freeze it when it is next about to write, until another process has begun with that very run."""

        async def freeze(moment: str, run_id: str) -> None:
            if moment == where:
                node.link.passing = self._interrupting
                self._asleep[run_id] = node
                self._freeze(node)

        node.link.passing = freeze

    def _claimed(self, run_id: str) -> None:
        node = self._asleep.pop(run_id, None)
        if node is not None:
            self._thaw_in(self._rng.choice((0, 0.001, 0.005, 0.02)), node)

    def _freeze(self, node: Node) -> None:
        node.freeze()
        self._thaw_in(self._rng.choice((0.5, 6.0, 12.0)), node)

    def _thaw_in(self, seconds: float, node: Node) -> None:
        def thaw() -> None:
            if node.process.frozen:
                node.thaw()

        self._cluster.loop.call_later(seconds, thaw, context=self._outside)

    # The end

    async def _settle(self, store: Witness) -> None:
        async with asyncio.timeout(SETTLED_S):
            while any(run.state.live for run in await store.runs(limit=1000)):
                await asyncio.sleep(0.5)

    async def _check(self, store: Witness) -> None:
        store.testify()
        await self._invariants.check(settled=True, accepted=[(TENANT, text) for text in self._accepted])
        entries, problems = self._ledger.entries(), []
        for case, attendant in self._attendants:
            row = await store.run(attendant.run_id, tenant=TENANT)
            assert row is not None
            others = {flow.id for flow in case.others}
            family = {row.run_id, *(run.run_id for run in await store.runs(limit=1000) if run.workflow in others)}
            problems += case.problems(row, [entry for entry in entries if entry.run_id in family], disturbed=True)
        problems += await self._unanswered(store)
        problems += await self._fired_twice(store)
        if problems:
            raise InvariantViolation(problems)
        self.ended = len(await store.runs(limit=1000))
        self.lost = sum(node.process.dead for node in self._cluster.nodes)
        self.checks = self._invariants.checks
        self.digest = self._cluster.trace.digest

    async def _unanswered(self, store: Witness) -> list[str]:
        """Every accepted message is in exactly one run's answer, or a dead letter."""
        runs = [run for run in await store.runs(limit=1000) if run.workflow == self._talk.id]
        answered = Counter(text for run in runs for text in from_json(run.output or b"[]"))
        answered.update(letter.signal.dedup_key for letter in await store.dead_signals(tenant=TENANT))
        return [
            f"message {text} was answered {answered[text]} times"
            for text in sorted(self._accepted)
            if answered[text] != 1
        ]

    async def _fired_twice(self, store: Witness) -> list[str]:
        runs = [run for run in await store.runs(limit=1000) if run.workflow == self._fired.id]
        fired = done(entry for entry in self._ledger.entries() if entry.what == "fired")["fired"]
        times = Counter(run.key for run in runs)
        found = [f"the schedule fired {count} times as {key}" for key, count in times.items() if count > 1]
        return found if fired == len(runs) else [*found, f"{len(runs)} firings did their work {fired} times"]


def _talk() -> Workflow[Any, Any]:
    """Answers with what was said; a message may come while it works."""

    async def listen(value: None, ctx: StepContext) -> list[str]:
        return [signal.dedup_key for signal in await ctx.signals.drain("message")]

    async def work(texts: list[str]) -> list[str]:
        await asyncio.sleep(0.2)
        return texts

    async def again(texts: list[str], ctx: StepContext) -> list[str]:
        return [*texts, *(signal.dedup_key for signal in await ctx.signals.drain("message"))]

    return (
        workflow("talk")
        .then(step(id="listen", effect=Effect.PURE)(listen))
        .then(step(id="work", effect=Effect.READ)(work))
        .then(step(id="again", effect=Effect.PURE)(again))
        .commit()
    )


def _fired(ledger: MemoryLedger) -> Workflow[Any, Any]:
    async def fired(n: int, ctx: StepContext) -> int:
        await ledger.did("fired", ctx)
        return n

    return workflow("fired").then(step(id="fired", effect=Effect.IDEMPOTENT)(fired)).commit()
