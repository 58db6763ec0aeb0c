"""Compensation: what a failed run had done is undone in reverse order, each undoing a durable step of its own."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from workflows.definition.effects import Effect, Retry
from workflows.definition.step import Step
from workflows.errors import Bailed, InputError, StepFailedError, describe

Completed = tuple[Step[Any, Any], str, Any]
"""A completed step, its path and its output."""

RETRY = Retry(times=5, base=0.2, cap=5.0)


def undo_path(path: str) -> str:
    """Where the undoing of the step at `path` is recorded."""
    return f"{path}!undo"


def undo_step(step: Step[Any, Any]) -> Step[Any, Any]:
    """The step that undoes `step`, given its output."""
    assert step.compensate is not None
    takes_context = len(inspect.signature(step.compensate).parameters) > 1
    return Step(
        f"{step.id}-undo", step.compensate, step.output, Any, takes_context, effect=Effect.IDEMPOTENT, retry=RETRY
    )


async def compensate(
    completed: Sequence[Completed], run: Callable[[Step[Any, Any], str, Any], Awaitable[Any]]
) -> list[dict[str, Any]]:
    """Undo `completed` in reverse order by `run(step, path, value)`. Returns the failures, empty if all was undone."""
    failures = []
    for step, path, output in reversed(completed):
        if step.compensate is None:
            continue
        try:
            await run(undo_step(step), undo_path(path), output)
        except Bailed:
            continue  # it is undone, and there is no workflow to end early
        except (StepFailedError, InputError) as error:
            failures.append(describe(error))
    return failures
