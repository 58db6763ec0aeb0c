"""One run of a case in a simulated cluster, which is struck at one point: the first worker dies and a second one takes over, or a message
between it and its storage is lost.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tests.crashes.pointed import PointedLedger
from tests.crashes.points import Points
from tests.flows import Attendant, Case, Entry, MemoryLedger, catalogue
from tests.flows.attendant import TENANT
from tests.invariants import Invariants, InvariantViolation
from tests.simulation.cluster import Cluster
from tests.simulation.loop import VirtualLoop, current_process
from tests.simulation.network import Weather
from workflows.storage import StoreUnavailableError
from workflows.storage.base import Record, Status

WITHIN_S = 300.0
DYING = "dying"
Connect = Callable[[], Any]
"""Makes a process's connection to the storage that all share."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a history came to: the points the first worker passed, whether it was struck, and the paths of the run's results."""

    points: tuple[str, ...]
    struck: bool
    results: frozenset[str]


class History:
    """Plays the case of that name, struck at point `at`, counted from 1 (0: not at all)."""

    def __init__(self, name: str, connect: Connect, *, at: int = 0, blow: Literal["death", "loss"] = "death") -> None:
        self._connect = connect
        self._points = Points(at, self._die if blow == "death" else self._lose)
        self._ledger = PointedLedger(MemoryLedger(), self._points, mine=_is_dying)
        self._case: Case = catalogue(self._ledger)[name]
        self._invariants: Invariants
        self._died = self._struck = False

    def play(self) -> Outcome:
        """Raises InvariantViolation, and TimeoutError for a run that does not end."""
        return VirtualLoop.of(random.Random(0), disorder=0.0).simulate(self._play(), within_s=WITHIN_S)

    def _die(self, moment: str) -> None:
        process = current_process()
        assert process is not None
        process.dead = self._died = self._struck = True

    def _lose(self, moment: str) -> None:
        self._struck = True
        raise StoreUnavailableError(f"lost: {moment}")

    async def _play(self) -> Outcome:
        store = await self._connected()
        cluster = Cluster(store, self._case.flows, rng=random.Random(0), weather=Weather())
        self._invariants = Invariants(store, workflows=self._case.flows)
        client = await cluster.boot("client", worker=False, store=await self._connected())
        await cluster.boot(DYING, store=await self._connected(), passing=self._points.passing)
        attendant = Attendant(client.engine, self._case, "run")
        await attendant.begin()
        await self._attend(store, attendant, lambda: self._died)
        recorded, done = await store.load(attendant.run_id), len(self._ledger.entries())
        if self._died:
            await self._invariants.check()
            await cluster.boot("second", store=await self._connected())
            await self._attend(store, attendant, lambda: False)
        await self._check(store, attendant.run_id, recorded, self._ledger.entries()[done:])
        results = frozenset(each.path for each in await store.load(attendant.run_id) if each.status is Status.OK)
        return Outcome(tuple(self._points.passed), self._struck, results)

    async def _connected(self) -> Any:
        store = self._connect()
        await store.open()
        return store

    @staticmethod
    async def _attend(store: Any, attendant: Attendant, over: Callable[[], bool]) -> None:
        """Do what the run needs until it has ended and so has all that came of it (a child, a notice, a thread's next turn), or it is over
        for another reason.
        """
        while not over():
            await attendant.look()
            if not any(run.state.live for run in await store.runs(limit=1000)):
                return
            await asyncio.sleep(0.2)

    async def _check(self, store: Any, run_id: str, recorded: list[Record], after: list[Entry]) -> None:
        await self._invariants.check(settled=True)
        row = await store.run(run_id, tenant=TENANT)
        found = self._case.problems(row, self._ledger.entries(), disturbed=self._struck)
        ended = {record.path for record in recorded if record.status in (Status.OK, Status.FAILED, Status.INTERRUPTED)}
        found += [
            f"{each.what} at {each.path} was recorded, and was done again"
            for each in after
            if each.run_id == run_id and each.path in ended
        ]
        if found:
            raise InvariantViolation(found)


def _is_dying() -> bool:
    return str(current_process()).startswith(DYING)
