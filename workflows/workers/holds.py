"""The runs that a worker holds, each worked in a task of its own."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

import structlog

from workflows.errors import Cancelled, ControlFlow, Draining
from workflows.pubsub.base import PubSub
from workflows.running.claim import Claim
from workflows.running.driver import Driver, Left
from workflows.storage.base import RunRow, Signal, Store, StoreUnavailableError
from workflows.workers.slots import Slots

Held = tuple[Claim, "asyncio.Task[None]"]


class Holds(Mapping[str, Held]):
    """Claims and their tasks by run id. Each takes one of the `slots`, until it is let go.

    `leaving()` says that runs are to be handed over at their next step boundary, `worker_id()` under which name they are held; a run that
    was claimed under another is lost. `left` is told how each was left.
    """

    def __init__(
        self,
        store: Store,
        pubsub: PubSub,
        driver: Driver,
        slots: Slots,
        *,
        poll_s: float,
        leaving: Callable[[], bool],
        worker_id: Callable[[], str],
        left: Callable[[Left], Awaitable[None]],
    ) -> None:
        self._store = store
        self._pubsub = pubsub
        self._driver = driver
        self._slots = slots
        self._poll_s = poll_s
        self._leaving = leaving
        self._worker_id = worker_id
        self._left = left
        self._held: dict[str, Held] = {}

    def __getitem__(self, run_id: str) -> Held:
        return self._held[run_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def take(self, row: RunRow, inbox: Sequence[Signal] = ()) -> None:
        """Work a run that was claimed."""
        owner = self._worker_id()
        claim = Claim(
            self._store, self._pubsub, self._driver.tracer, row, (),
            draining=self._leaving,
            abandoned=lambda: self._worker_id() != owner,
            dispatched=partial(self._driver.lifecycle.dispatched, row),
            inbox=inbox,
        )  # fmt: skip
        task = asyncio.create_task(self._work(claim), name=f"run {row.run_id}")
        self._held[row.run_id] = (claim, task)
        self._slots.take(row)

    def interrupt(self, run_id: str, flow: type[Cancelled | Draining] = Cancelled) -> None:
        """Stop a run, if it is held: in the middle of a step that would be run again anyway, else after it."""
        if run_id in self._held:
            self._held[run_id][0].interrupt(flow)

    async def settle(self, within_s: float) -> None:
        """Wait for all of them to be let go."""
        if tasks := [task for _, task in self._held.values()]:
            await asyncio.wait(tasks, timeout=max(within_s, 0))

    def abandon(self) -> "list[asyncio.Task[None]]":
        """Forget all of them, with their slots: they belong to others now. Returns their tasks, to be ended."""
        tasks = [task for _, task in self._held.values()]
        for run_id in self._held:
            self._slots.free(run_id)
        self._held.clear()
        return tasks

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
            left = await self._drive(claim)
        finally:
            self._let_go(claim)
        await self._left(left)

    async def _drive(self, claim: Claim) -> Left:
        run, lifecycle = claim.run, self._driver.lifecycle
        try:
            lifecycle.running(run)
            if run.step_seq:
                claim.remember(await self._store.load(run.run_id, whole=False))
            left = await self._driver.drive(claim)
        except StoreUnavailableError as error:
            structlog.get_logger().warning("run_given_back", error=str(error))
            await asyncio.sleep(self._poll_s)  # or it would be claimed and given back as fast as storage can refuse
            return Left.RELEASED
        except (ControlFlow, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # also what is no Exception, such as a panic in a condition
            structlog.get_logger().exception("run_broke_its_worker")
            return await self._given_up(claim, error)
        if left is Left.SUSPENDED:
            lifecycle.suspended(run)
        return left

    async def _given_up(self, claim: Claim, error: BaseException) -> Left:
        """A fault of the engine itself would come again on every worker: the run fails, and says so. If even that fails, it is given
        back with its attempt counted, a little later each time, until it is dead.
        """
        try:
            return await self._driver.give_up(claim, error)
        except Exception:
            structlog.get_logger().exception("run_not_given_up")
        delay = timedelta(seconds=self._poll_s * 2 ** min(claim.run.attempts, 6))
        with contextlib.suppress(StoreUnavailableError):
            await self._store.abandon(self._worker_id(), claim.run.run_id, delay=delay)
        return Left.LOST

    def _let_go(self, claim: Claim) -> None:
        """Forget a run, unless this process has claimed it anew meanwhile: the task that lost it must not evict the one that holds it."""
        held = self._held.get(claim.run.run_id)
        if held is not None and held[0] is claim:
            del self._held[claim.run.run_id]
            self._slots.free(claim.run.run_id)
