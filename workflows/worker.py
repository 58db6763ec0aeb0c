"""A worker: claims due runs, holds them under a lease, and frees those of workers that are gone."""

import asyncio
import contextlib
import os
import random
import socket
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog

from workflows.claim import Claim
from workflows.driver import Driver, Left
from workflows.graph import Workflow
from workflows.ids import uuid7
from workflows.pubsub.base import Event, PubSub
from workflows.storage.base import RunRow, RunState, Store, StoreUnavailableError

GRACE_S = 25.0
"""How long a leaving worker waits for its runs to reach a step boundary before it gives them back anyway."""


class Worker:
    """One process's worker. Intervals in seconds; a worker silent for `lease_s` is gone, and any other worker frees its runs."""

    def __init__(
        self,
        store: Store,
        pubsub: PubSub,
        driver: Driver,
        workflows: Mapping[tuple[str, str], Workflow[Any, Any]],
        *,
        concurrency: int = 10,
        lease_s: float = 10.0,
        beat_s: float | None = None,
        poll_s: float = 1.0,
        queues: tuple[str, ...] = ("default",),
        deployment: str = "",
        sweeps: tuple[Callable[[], Coroutine[Any, Any, int]], ...] = (),
    ) -> None:
        self._store = store
        self._pubsub = pubsub
        self._driver = driver
        self._workflows = workflows
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._beat_s = beat_s or lease_s / 3
        self._poll_s = poll_s
        self._queues = queues
        self._deployment = deployment
        self._sweeps = sweeps
        self._wake = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._held: dict[str, tuple[Claim, asyncio.Task[None]]] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._beating_since: float | None = None
        self.worker_id = str(uuid4())
        self.draining = False

    def start(self) -> None:
        """Begin; `register` comes first."""
        loops = (self._claim_forever, self._beat_forever, self._reap_forever)
        self._loops = [asyncio.create_task(loop(), name=loop.__name__) for loop in loops]

    async def stop(self) -> None:
        """Take no new run, bring each to its next step boundary, and hand all over. Counts as no attempt."""
        self.draining = True
        claiming, others = self._loops[:1], self._loops[1:]
        await _ended(claiming)  # the beat goes on while runs are brought to their boundaries
        tasks = [task for _, task in self._held.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_S)
        await _ended([*tasks, *others])
        with contextlib.suppress(StoreUnavailableError):
            await self._store.release(self.worker_id, held=[])
            await self._store.unregister(self.worker_id)

    def wake(self) -> None:
        """Look for due runs now."""
        self._wake.set()

    @property
    def busy(self) -> bool:
        """Whether it holds runs."""
        return bool(self._held)

    async def woken(self, event: Event) -> None:
        """Handle a `wake` event of the bus."""
        self.wake()

    async def controlled(self, event: Event) -> None:
        """Handle a `control` event: stop a run that is held here."""
        self._interrupt(str(event.data.get("run_id")))

    def _interrupt(self, run_id: str) -> None:
        if run_id in self._held:
            self._held[run_id][0].interrupt()

    async def register(self) -> None:
        """Take a lease. Raises StoreUnavailableError."""
        host = f"{socket.gethostname()}:{os.getpid()}"
        await self._store.register(self.worker_id, host=host, deployment=self._deployment, lease=self._lease)
        self._beating_since = time.monotonic()

    @property
    def _lease(self) -> timedelta:
        return timedelta(seconds=self._lease_s)

    # Claiming

    async def _claim_forever(self) -> None:
        while True:
            self._wake.clear()
            await self._guarded(self._claim())
            # Jitter keeps an idle fleet's polls apart. Not wait_for: before 3.12 it can swallow a cancellation.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s * random.uniform(0.75, 1.25)):  # noqa: S311
                    await self._wake.wait()

    async def _claim(self) -> int:
        free = self._concurrency - len(self._held)
        if free <= 0:
            return 0
        async with self._claiming:
            rows = await self._store.claim(
                self.worker_id, queues=self._queues, workflows=list(self._workflows), limit=free
            )
            for row in rows:
                self._hold(row)
        return len(rows)

    def _hold(self, row: RunRow) -> None:
        claim = Claim(
            self._store,
            self._pubsub,
            self._driver.tracer,
            row,
            (),
            draining=lambda: self.draining,
            abandoned=self._abandoned(self.worker_id),
        )
        task = asyncio.create_task(self._work(claim), name=f"run {row.run_id}")
        self._held[row.run_id] = (claim, task)

    def _abandoned(self, worker_id: str) -> Callable[[], bool]:
        return lambda: self.worker_id != worker_id

    async def _work(self, claim: Claim) -> None:
        run = claim.run
        structlog.contextvars.bind_contextvars(
            run_id=run.run_id,
            workflow=run.workflow,
            fence=run.fence,
            attempt=run.attempts,
            tenant=run.tenant,
            trace_id=run.trace_id,
        )
        left = Left.RELEASED
        try:
            if run.step_seq:
                claim.remember(await self._store.load(run.run_id))
            left = await self._driver.drive(claim)
        except StoreUnavailableError as error:
            structlog.get_logger().warning("run_given_back", error=str(error))
            await asyncio.sleep(self._poll_s)  # or it would be claimed and given back as fast as storage can refuse
        except Exception as error:
            structlog.get_logger().exception("run_broke_its_worker")
            left = await self._given_up(claim, error)
        finally:
            self._let_go(claim)
            self.wake()
        if left is Left.RELEASED:
            await self._guarded(self._release())

    def _let_go(self, claim: Claim) -> None:
        """Forget a run, unless this process has claimed it anew meanwhile: the task that lost it must not evict the one that holds it."""
        held = self._held.get(claim.run.run_id)
        if held is not None and held[0] is claim:
            del self._held[claim.run.run_id]

    async def _given_up(self, claim: Claim, error: Exception) -> Left:
        """A fault of the engine itself would come again on every worker: the run fails, and says so. If even that fails, it is given
        back with its attempt counted, a little later each time, until it is dead.
        """
        try:
            return await self._driver.give_up(claim, error)
        except Exception:
            structlog.get_logger().exception("run_not_given_up")
        delay = timedelta(seconds=self._poll_s * 2 ** min(claim.run.attempts, 6))
        with contextlib.suppress(StoreUnavailableError):
            await self._store.abandon(self.worker_id, claim.run.run_id, delay=delay)
        return Left.LOST

    async def _release(self) -> int:
        async with self._claiming:
            return len(await self._store.release(self.worker_id, held=list(self._held)))

    # Lease

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(self._beat_s)
            await self._guarded(self._beat())

    async def _beat(self) -> int:
        try:
            alive = await self._store.beat(self.worker_id, lease=self._lease)
        except StoreUnavailableError:
            self._beating_since = None
            raise
        if not alive:
            await self._begin_again()
            return 0
        self._beating_since = self._beating_since or time.monotonic()
        for run_id in await self._store.cancelled(self.worker_id):
            self._interrupt(run_id)
        return await self._release()

    async def _begin_again(self) -> None:
        """We were reaped: everything held here belongs to others now. Start over as a new worker."""
        structlog.get_logger().warning("worker_reaped", worker_id=self.worker_id, held=len(self._held))
        async with self._claiming:
            held = list(self._held.values())
            self._held.clear()
            self.worker_id = str(uuid4())
        await _ended([task for _, task in held])
        await self.register()

    # Reaping

    async def _reap_forever(self) -> None:
        while True:
            await asyncio.sleep(min(self._lease_s / 5, 1.0))
            since = self._beating_since
            if since is not None and time.monotonic() - since >= self._lease_s:
                await self._guarded(self._reap())
                for sweep in self._sweeps:
                    await self._guarded(sweep())

    async def _reap(self) -> int:
        freed, dead = await self._store.reap()
        for row in dead:
            await self._guarded(self._bury(row))  # one that can't be buried must not keep the others from it
        if freed or dead:
            structlog.get_logger().info("runs_reaped", freed=freed, dead=[row.run_id for row in dead])
            self.wake()
        return len(freed)

    async def _bury(self, row: RunRow) -> int:
        failure = {"type": "Dead", "message": f"{row.attempts} attempts made no progress", "causes": []}
        workflow = self._workflows.get((row.workflow, row.version))
        writes = self._driver.aftermath(row, workflow, RunState.DEAD, failure)
        inbox_seen = row.inbox_seq
        await self._store.end(
            row.run_id,
            row.fence,
            RunState.DEAD,
            inbox_seen=inbox_seen,
            successor_id=str(uuid7()),
            error=failure,
            writes=writes,
        )
        return 1

    @staticmethod
    async def _guarded(operation: Coroutine[Any, Any, int]) -> int:
        """A loop outlives any failure of one round."""
        try:
            return await operation
        except StoreUnavailableError as error:
            structlog.get_logger().warning("storage_unavailable", error=str(error))
        except Exception:
            structlog.get_logger().exception("worker_round_failed")
        return 0


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
