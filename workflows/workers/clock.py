"""The clock role: fires schedules, and runs the sweeps of the floors above. Any number may run."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from workflows.running.lifecycle import Lifecycle
from workflows.schedules import Newest, fire_due, start_queued
from workflows.storage.base import Store, StoreUnavailableError

Sweep = Callable[[], Awaitable[int]]
"""Does a bounded piece of work; returns how much. It must be safe to run on several clocks at once."""


class Clock:
    """Runs the sweeps every `interval_s` seconds. Upper floors add theirs with `sweeps`."""

    def __init__(
        self,
        store: Store,
        lifecycle: Lifecycle,
        *,
        interval_s: float = 1.0,
        sweeps: tuple[Sweep, ...] = (),
        newest: Newest = lambda _: None,
    ) -> None:
        self._store = store
        self._lifecycle = lifecycle
        self._interval_s = interval_s
        self._newest = newest
        self._sweeps: tuple[Sweep, ...] = (self._schedules, *sweeps)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin in the background."""
        self._task = asyncio.create_task(self._forever())

    async def stop(self) -> None:
        """Stop, in the middle of a round if need be: every sweep is safe to cut off."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> int:
        """One round; returns how much was done. A sweep that fails does not keep the others from theirs."""
        done = 0
        for each in self._sweeps:
            try:
                done += await each()
            except StoreUnavailableError as error:
                structlog.get_logger().warning("storage_unavailable", error=str(error))
            except Exception:
                structlog.get_logger().exception("sweep_failed", sweep=getattr(each, "__name__", str(each)))
        return done

    async def _forever(self) -> None:
        while True:
            await self.sweep()
            await asyncio.sleep(self._interval_s)

    async def _schedules(self) -> int:
        started = await fire_due(self._store, self._newest) + await start_queued(self._store, self._newest)
        self._lifecycle.due(*(run.queue for run in started))
        return len(started)
