"""One try of a step: its time limit, what cancels it from within, and what a step gives that was cut off."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from workflows.definition.context import StepContext
from workflows.definition.step import Step
from workflows.errors import ControlFlow, StepCancelledError, StepFailedError, StepPanickedError
from workflows.values import Interrupted, fits


async def attempt(step: Step[Any, Any], ctx: StepContext, call: Callable[[], Awaitable[Any]]) -> Any:
    """Await what `call` does for the step within its time limit. Raises what it raises, TimeoutError, and StepCancelledError if it cancelled itself.

    What is no Exception and ends no process would end the run's task without a word, and the run would be taken up again for ever:
    it is raised as StepPanickedError. A suspension in a group of tasks comes out as one.
    """
    task = asyncio.current_task()
    assert task is not None
    outer = task.cancelling()
    try:
        if step.timeout_s is None:
            return await call()
        return await _within(step.timeout_s, ctx, call)
    except asyncio.CancelledError:
        if task.cancelling() > outer:
            raise
        # By something inside the step; left alone it would look as if this worker were leaving.
        raise StepCancelledError(f"step {ctx.path} cancelled itself") from None
    except (Exception, ControlFlow, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        if (flow := _flow_in(error)) is not None:
            raise flow from None
        raise StepPanickedError(f"step {ctx.path} raised {type(error).__name__}: {error}") from error


def _flow_in(error: BaseException) -> ControlFlow | None:
    """The first control flow among what tasks of a group raised."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for each in error.exceptions if (found := _flow_in(each)) is not None), None)
    return error if isinstance(error, ControlFlow) else None


async def _within(seconds: float, ctx: StepContext, call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call()
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"step {ctx.path} took longer than {seconds} s") from None
        raise


def interrupted(step: Step[Any, Any], path: str, value: Interrupted) -> Interrupted:
    """What an irreversible step gives that was cut off, if its output type can say so. Raises StepFailedError if not."""
    if fits(Interrupted, step.output):
        return value
    raise StepFailedError(path, {"type": "Interrupted", "message": f"outcome unknown: {value.reason}", "causes": []})
