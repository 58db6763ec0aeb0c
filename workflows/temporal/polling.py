"""A worker of the SDK's that is begun anew when it fails: a process outlives what its server does."""

import asyncio
import contextlib
from collections.abc import Callable

import structlog
from temporalio.worker import Worker

AGAIN_S = 5.0


class Polling:
    """Polls one task queue until it is stopped."""

    def __init__(self, make: Callable[[], Worker]) -> None:
        self._make = make
        self._worker = make()  # here, so that what is wrong with it is told whoever begins it
        self._stopping = False
        self._task = asyncio.create_task(self._for_ever())

    async def _for_ever(self) -> None:
        while True:
            try:
                await self._worker.run()
                return
            except Exception as error:
                structlog.get_logger().warning("temporal_worker_failed", error=str(error), again_in_s=AGAIN_S)
            await asyncio.sleep(AGAIN_S)
            self._worker = self._make()

    async def stop(self) -> None:
        """Take nothing more, and wait for what is carried out."""
        await asyncio.sleep(0)  # a worker that never ran can't be shut down
        if self._task.done():
            return
        if self._worker.is_running:
            await self._worker.shutdown()
        else:
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
