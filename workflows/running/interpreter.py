"""Walks a committed graph. Everything it decides is a function of the input and of what the effects give, so walking again does nothing twice."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from workflows.definition.authored import defined_workflow
from workflows.definition.boundaries import MAX_SECONDS
from workflows.definition.conditions import Condition
from workflows.definition.graph import (
    Authored,
    Branch,
    Entry,
    ForEach,
    Loop,
    Map,
    Parallel,
    Sleep,
    Then,
    WaitFor,
    Workflow,
)
from workflows.definition.paths import Scope
from workflows.definition.projection import Projection
from workflows.definition.state import State
from workflows.definition.step import Step
from workflows.errors import Bailed, Cancelled, ControlFlow, IterationLimitError, NoBranchError, Suspended
from workflows.running.effects import Effects
from workflows.values import check, decode

_beside: ContextVar[bool] = ContextVar("beside", default=False)
"""Whether this is one of several arms that run at once."""
_late: ContextVar[bool] = ContextVar("late", default=False)
"""Whether this is an arm that had not begun when another one ended all of them."""
SleepSeconds = Annotated[float, Field(le=MAX_SECONDS, allow_inf_nan=False)]


class Interpreter:
    """Walks workflows with one set of effects."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    async def walk(self, workflow: Workflow[Any, Any], value: Any, *, prefix: str = "") -> Any:
        """The output of `workflow` on `value`. Raises StepFailedError and its kin, or control flow."""
        where = prefix or workflow.id
        value = check(value, workflow.input, where=f"the input of {where}")
        try:
            for entry in workflow.entries:
                value = await self._entry(entry, value, prefix)
        except Bailed as bailed:
            return decode(bailed.data, workflow.output, where=f"the value {where} bailed out with")
        return value

    async def _entry(self, entry: Entry, value: Any, prefix: str) -> Any:
        match entry:
            case Then(node=node):
                return await self._node(node, prefix + node.id, value)
            case Map(function=function):
                return self._ask(prefix + entry.id, function, value)
            case Loop():
                return await self._loop(entry, value, prefix)
            case ForEach():
                return await self._foreach(entry, value, prefix)
            case Parallel():
                return await self._parallel(entry.nodes, value, prefix, entry.limit)
            case Branch():
                return await self._branch(entry, value, prefix)
            case Sleep():
                await self._effects.sleep(prefix + entry.id, lambda now: self._wake_at(entry, value, now))
                return value
            case WaitFor():
                return await self._effects.wait_for(prefix + entry.id, entry)
            case Authored(catalogue=catalogue):
                defined = defined_workflow(value, catalogue)
                self._effects.state.declare(defined.state)
                return await self.walk(defined, value.value, prefix=prefix)

    async def _node(self, node: Step[Any, Any] | Workflow[Any, Any], path: str, value: Any) -> Any:
        value = self._effects.given(node, path, value)
        if isinstance(node, Step):
            if _late.get() and not self._effects.begun(path):
                raise Suspended  # whatever ended the others says how this ends, too
            return await self._effects.step(node, path, value)
        with self._effects.nested(node, path):
            return await self.walk(node, value, prefix=f"{path}/")

    def _ask(self, path: str | None, function: Callable[..., Any], *known: Any) -> Any:
        """Call a pure function of the graph with as much as it takes: what is `known`, then the run's state. `path`: where it decides; None
        where what it gives is recorded anyway.
        """
        if isinstance(function, Condition | Projection):
            value, count = (*known, None)[:2]
            looks = _beside.get() and any(each.root == "state" for each in function.paths)
            scope = Scope(value, (self._state(path) if looks else self._effects.state).values, count)
            return function.holds(scope) if isinstance(function, Condition) else function.make(scope)
        wanted = _arity(function)
        return function(*known[:wanted]) if wanted <= len(known) else function(*known, self._state(path).model())

    def _state(self, path: str | None) -> State:
        """Walked again, arms may be told of what they set in another order: what one of them decided by the state must not change with it."""
        return self._effects.state if path is None or not _beside.get() else self._effects.state_at(path)

    async def _loop(self, entry: Loop, value: Any, prefix: str) -> Any:
        path = prefix + entry.id
        begun, value = self._effects.loop_begun(path, entry) or (0, value)
        for count in range(begun + 1, entry.max_iterations + 1):
            value = await self._node(entry.node, f"{path}#{count}", value)
            if bool(self._ask(f"{path}#{count}", entry.condition, value, count)) is not entry.wanted:
                return value
            self._effects.loop_goes_on(path, entry, count, value)
        raise IterationLimitError(f"loop {prefix}{entry.id} ran {entry.max_iterations} times and is not done")

    async def _foreach(self, entry: ForEach, value: Any, prefix: str) -> list[Any]:
        items = list(value)
        path = prefix + entry.id
        calls = [self._call(entry.node, f"{path}[{n}]", item) for n, item in enumerate(items)]
        return await self._settle(calls, entry.concurrency, watched=path)

    async def _parallel(self, nodes: Sequence[Any], value: Any, prefix: str, limit: int | None) -> dict[str, Any]:
        calls = [self._call(node, prefix + node.id, value) for node in nodes]
        outputs = await self._settle(calls, limit or len(calls))
        return {node.id: output for node, output in zip(nodes, outputs, strict=True)}

    async def _branch(self, entry: Branch, value: Any, prefix: str) -> Any:
        path = prefix + entry.id
        held = (node for condition, node in entry.arms if self._ask(path, condition, value))
        # Those after the first that holds are not asked: they may count on what it has ruled out.
        chosen = list(held) if entry.mode == "all" else list(islice(held, 1))
        if not chosen and entry.otherwise is not None:
            chosen = [entry.otherwise]
        if not chosen:
            raise NoBranchError(f"branch {path}: no condition held and it has no otherwise")
        if entry.mode == "all":
            return await self._parallel(chosen, value, prefix, None)
        return await self._node(chosen[0], prefix + chosen[0].id, value)

    def _call(self, node: Any, path: str, value: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: self._node(node, path, value)

    async def _settle(
        self, calls: Sequence[Callable[[], Awaitable[Any]]], limit: int, *, watched: str | None = None
    ) -> list[Any]:
        """Run all, at most `limit` at a time, and wait for every one; then the worst thing that happened, or the outputs.

        Those that have not begun when one fails begin no step any more; what they had begun in an earlier walk is walked again, or it could not be undone.
        """
        gate = asyncio.Semaphore(max(limit, 1)) if limit < len(calls) else nullcontext()
        left, over = len(calls), False

        async def arm(call: Callable[[], Awaitable[Any]], give_up: Callable[[], None]) -> Any:
            nonlocal left, over
            if len(calls) > 1:  # in a task of its own
                _beside.set(True)
            try:
                async with gate:
                    if over:
                        _late.set(True)
                    output = await call()
            except Suspended:
                raise
            except BaseException:
                over = True
                give_up()
                raise
            left -= 1
            if watched is not None:
                await self._effects.progress(watched, done=len(calls) - left, total=len(calls))
            await asyncio.sleep(0)  # arms that finish in the same turn of the loop are told of together
            await self._effects.arm_done(left=left)
            return output

        with self._effects.arms() as give_up:
            if len(calls) <= 1:
                return [await arm(call, give_up) for call in calls]
            outcomes = await asyncio.gather(*(arm(call, give_up) for call in calls), return_exceptions=True)
        return _worst(outcomes)

    def _wake_at(self, entry: Sleep, value: Any, now: datetime) -> datetime:
        """When a sleep that begins now is over. Raises InputError for what is no time, so that the run fails and says so."""
        at = entry.seconds if entry.until is None else entry.until
        found = self._ask(None, at, value) if callable(at) else at
        if entry.until is not None:
            until: datetime = check(found, AwareDatetime, where=f"the time of {entry.id}")
            return until
        seconds: float = check(found, SleepSeconds, where=f"the seconds of {entry.id}")
        return now + timedelta(seconds=seconds)


def _worst(outcomes: list[Any]) -> list[Any]:
    """Losing the run or leaving it goes first, then a failure, a cancel, an early end, and a suspension with the earliest time."""
    raised = [each for each in outcomes if isinstance(each, BaseException)]
    if not raised:
        return outcomes
    waiting = [each for each in raised if isinstance(each, Suspended)]
    flows = [each for each in raised if isinstance(each, ControlFlow) and not isinstance(each, Suspended | Bailed)]
    failures = [each for each in raised if not isinstance(each, ControlFlow)]
    lost = [each for each in flows if not isinstance(each, Cancelled)]
    for worst in (*lost, *failures, *flows, *(each for each in raised if isinstance(each, Bailed))):
        raise worst
    times = [each.until for each in waiting if each.until is not None]
    looks = [each.seen for each in waiting if each.seen is not None]
    raise Suspended(min(times, default=None), seen=min(looks, default=None))


@lru_cache(maxsize=1024)
def _arity(function: Callable[..., Any]) -> int:
    """How many positional arguments a pure function of the graph takes."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-ins have no signature
        return 1
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        each.kind in positional and (each.default is each.empty or index == 0) for index, each in enumerate(parameters)
    )
