"""Lifecycle callbacks: told of a run's turns in the process that works it. A callback that fails or hangs harms nothing."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from workflows.storage.base import RunRow, RunState

LIMIT_S = 5.0
"""How long a run waits for a callback."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a callback is told. `output` is the run's, `failure` a failure as a value, `path` a step's; None where they do not apply."""

    run: RunRow
    state: RunState
    path: str | None = None
    output: Any = None
    failure: dict[str, Any] | None = None


Callback = Callable[[Moment], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What a workflow tells of its runs, in the process that works them and while it lives: `on_start` before the first step, `on_step`
    after each, `on_suspend`, `on_finish` after any end, `on_error` before it when the run failed. A process that dies tells nothing, and
    a run begun anew elsewhere tells again: for counting and telling. Work that has to happen belongs in a step, or in the workflow
    named by `on_failure`.
    """

    on_start: Callback | None = None
    on_step: Callback | None = None
    on_suspend: Callback | None = None
    on_finish: Callback | None = None
    on_error: Callback | None = None

    async def tell(self, name: str, moment: Moment) -> None:
        """Call the one called `name`, if there is one. Never raises an Exception."""
        callback: Callback | None = getattr(self, name)
        if callback is None:
            return
        try:
            async with asyncio.timeout(LIMIT_S):
                told = callback(moment)
                if inspect.isawaitable(told):
                    await told
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            structlog.get_logger().warning("callback_failed", callback=name, error=f"{type(error).__name__}: {error}")
        except Exception as error:
            structlog.get_logger().warning("callback_failed", callback=name, error=f"{type(error).__name__}: {error}")


SILENT = Callbacks()
