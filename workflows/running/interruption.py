"""Stopping steps in their middle: those that would be run again anyway, when the run is to stop or its worker leaves."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workflows.errors import Cancelled, Draining


class Interruption:
    """Whether, and why, the steps of one claim were interrupted."""

    def __init__(self) -> None:
        self.flow: type[Cancelled | Draining] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def note(self, flow: type[Cancelled | Draining]) -> None:
        """Remember why. A worker that leaves goes before a run that is to stop: the next one stops it."""
        self.flow = flow if flow is Draining or self.flow is None else self.flow

    def strike(self) -> None:
        """Stop what is interruptible now; never from within the very step."""
        asyncio.get_running_loop().call_soon(self._cancel)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    @contextmanager
    def window(self) -> Iterator[None]:
        """While the body runs, `strike` stops it. Raises Cancelled or Draining then."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self.flow is not None and task.cancelling() == 1:
                task.uncancel()
                raise self.flow from None
            raise
        finally:
            self._tasks.discard(task)
