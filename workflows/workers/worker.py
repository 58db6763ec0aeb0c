"""A worker: claims due runs, holds them under a lease, and frees those of workers that are gone."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from workflows.definition.graph import Workflow
from workflows.errors import Draining
from workflows.pubsub.base import Event, PubSub
from workflows.running.driver import Driver, Left
from workflows.storage.base import NewRun, Signal, Store, StoreUnavailableError
from workflows.workers.holds import Holds
from workflows.workers.lease import Lease
from workflows.workers.quarantine import Quarantine
from workflows.workers.reaper import Reaper
from workflows.workers.slots import Slots

PATIENCE_S = 25.0
"""How long a leaving worker waits for what can't be undone before it gives it back anyway."""

STUBBORN_S = 1.0
"""How long a worker waits for tasks it has cancelled."""


class Worker:
    """One process's worker.

    `slots` say what it takes, `lease` how long it may be silent. It looks for due runs every `poll_s` seconds and whenever it is woken.
    A leaving worker waits `grace_s` for its runs to reach a step boundary; then steps that would be run again anyway are cut off.
    `sweeps` are run about once a second, when it has held its lease for a while.
    """

    def __init__(
        self,
        store: Store,
        pubsub: PubSub,
        driver: Driver,
        workflows: Mapping[tuple[str, str], Workflow[Any, Any]],
        *,
        slots: Slots,
        lease: Lease,
        quarantine: Quarantine | None = None,
        poll_s: float = 1.0,
        grace_s: float = 5.0,
        sweeps: tuple[Callable[[], Coroutine[Any, Any, int]], ...] = (),
    ) -> None:
        self._store = store
        self._workflows = workflows
        self._slots = slots
        self._lease = lease
        self._quarantine = quarantine or Quarantine(store)
        self._reaper = Reaper(store, driver, workflows)
        self._poll_s = poll_s
        self._grace_s = grace_s
        self._sweeps = sweeps
        self._wake = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._held = Holds(
            store, pubsub, driver, slots, poll_s=poll_s,
            leaving=lambda: self.draining or self._quarantine.handing_over,
            worker_id=lambda: self.worker_id,
            left=self._left,
        )  # fmt: skip
        self._reserved: set[str] = set()
        self._more = True
        self._loops: list[asyncio.Task[None]] = []
        self._look_at = 0.0
        self.draining = False

    # Life

    async def register(self) -> None:
        """Take a lease. Raises StoreUnavailableError."""
        await self._lease.register()

    def start(self) -> None:
        """Begin; `register` comes first."""
        self._look_at = asyncio.get_running_loop().time() + self._poll_s
        loops = (self._claim_forever, self._beat_forever, self._reap_forever)
        self._loops = [asyncio.create_task(loop(), name=loop.__name__) for loop in loops]

    async def stop(self) -> None:
        """Take no new run, bring each to its next step boundary, and hand all over. Counts as no attempt."""
        self.draining = True
        claiming, others = self._loops[:1], self._loops[1:]
        await _ended(claiming)  # the beat goes on while runs are brought to their boundaries
        await self._held.settle(self._grace_s)
        for run_id in list(self._held):
            self._held.interrupt(run_id, Draining)
        await self._held.settle(PATIENCE_S - self._grace_s)
        await _ended([*(task for _, task in self._held.values()), *others])
        with contextlib.suppress(StoreUnavailableError):
            await self._store.release(self.worker_id, held=[])
            await self._store.unregister(self.worker_id)

    @property
    def worker_id(self) -> str:
        """Its id in storage: another one after it was taken for dead."""
        return self._lease.worker_id

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues it serves."""
        return self._slots.queues

    # What it is told

    def wake(self) -> None:
        """Look for due runs now."""
        self._wake.set()

    async def woken(self, event: Event) -> None:
        """Handle a `wake` event of the bus."""
        self.wake()

    async def controlled(self, event: Event) -> None:
        """Handle a `control` event: stop a run that is held here."""
        self._held.interrupt(str(event.data.get("run_id")))

    # Claiming

    async def _claim_forever(self) -> None:
        while True:
            self._wake.clear()
            await self._guarded(self._claim())
            await self._guarded(self._look_for_suspects())
            # Jitter keeps an idle fleet's polls apart. Not wait_for: before 3.12 it can swallow a cancellation.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s * random.uniform(0.75, 1.25)):  # noqa: S311
                    await self._wake.wait()

    async def _look_for_suspects(self) -> int:
        now = asyncio.get_running_loop().time()
        if self._held and not self._slots.alone and now >= self._look_at:
            self._look_at = now + self._poll_s
            await self._quarantine.look(self.worker_id, queues=self._slots.queues, workflows=list(self._workflows))
        return 0

    async def _claim(self) -> int:
        taken, empty, passed_over = 0, set[str](), False
        self._more = True
        async with self._claiming:
            while ask := self._slots.ask(empty=empty, suspects_only=self._quarantine.making_room):
                rows = await self._store.claim(
                    self.worker_id, queues=ask.queues, workflows=list(self._workflows), limit=ask.limit,
                    leave_out=ask.leave_out, suspects=ask.suspects,
                )  # fmt: skip
                for row in rows:
                    self._held.take(row)
                taken += len(rows)
                if len(rows) < ask.limit:
                    empty.update(ask.queues)
                if ask.suspects == "only":
                    self._quarantine.over()
                passed_over = passed_over or bool(ask.leave_out)
        self._more = passed_over or not empty.issuperset(self._slots.queues)
        return taken

    # Runs that are started here

    def reserve(self, run: NewRun) -> NewRun:
        """The run to insert in place of `run`: this worker's at once, if it has room. `begin` or `decline` follows.

        Who waits for a claim in storage is not overtaken: with room left, nobody does.
        """
        known = (run.workflow, run.version) in self._workflows
        open_ = self._loops and not self.draining and not self._more and not self._quarantine.making_room
        if not (known and open_ and run.available_at is None and self._slots.room(tenant=run.tenant, queue=run.queue)):
            return run
        self._reserved.add(run.run_id)
        owned = replace(run, owner=self.worker_id)
        self._slots.take(owned.claimed(inbox_seq=0))
        return owned

    def begin(self, run: NewRun, inbox: Sequence[Signal] = ()) -> None:
        """Work a reserved run that was inserted for this worker, whose signals are `inbox`."""
        self._reserved.discard(run.run_id)
        if run.owner == self.worker_id:
            self._held.take(run.claimed(inbox_seq=len(inbox)), inbox)
        else:  # it was reaped meanwhile, and so was the run
            self._slots.free(run.run_id)

    def decline(self, run: NewRun) -> None:
        """A reserved run was not inserted for this worker, or nobody knows: what storage has of it is given back at the next beat."""
        self._reserved.discard(run.run_id)
        self._slots.free(run.run_id)

    async def _left(self, left: Left) -> None:
        if self._more:
            self.wake()
        if left is Left.RELEASED:
            await self._guarded(self._release())

    async def _release(self) -> int:
        async with self._claiming:
            return len(await self._store.release(self.worker_id, held=[*self._held, *self._reserved]))

    # Lease

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(self._lease.beat_s)
            await self._guarded(self._beat())

    async def _beat(self) -> int:
        if not await self._lease.renew():
            await self._begin_again()
            return 0
        for run_id in await self._store.cancelled(self.worker_id):
            self._held.interrupt(run_id)
        return await self._release()

    async def _begin_again(self) -> None:
        """We were reaped: everything held here belongs to others now. Start over as a new worker."""
        structlog.get_logger().warning("worker_reaped", worker_id=self.worker_id, held=len(self._held))
        async with self._claiming:
            tasks = self._held.abandon()
            self._lease.replace()
        await self._lease.register()
        await _ended(tasks)

    async def _reap_forever(self) -> None:
        while True:
            await asyncio.sleep(min(self._lease.lease_s / 5, 1.0))
            if self._lease.seasoned:
                if await self._guarded(self._reaper.reap()):
                    self.wake()
                for sweep in self._sweeps:
                    await self._guarded(sweep())

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
    """Cancel them. One whose step does not let itself be cancelled is left behind: what it writes has a stale fence."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=STUBBORN_S)
