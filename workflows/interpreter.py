"""Walks a committed graph on an execution. Finished work is read back from its records, so walking it again does nothing twice."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from workflows.errors import ControlFlow, IterationLimitError, NoBranchError, Suspended
from workflows.execution import Execution, Suspension
from workflows.graph import Branch, Entry, ForEach, Loop, Map, Parallel, Sleep, Then, WaitFor, Workflow
from workflows.runner import StepRunner
from workflows.step import Step
from workflows.storage.base import Record, Status
from workflows.tracing import Tracer
from workflows.values import check, decode


class Interpreter:
    """Runs one execution of one workflow. Everything it decides is a function of the records and the input."""

    def __init__(self, execution: Execution, tracer: Tracer, runner: StepRunner) -> None:
        self._execution = execution
        self._tracer = tracer
        self._runner = runner

    async def walk(self, workflow: Workflow[Any, Any], value: Any, *, prefix: str = "") -> Any:
        """The output of `workflow` on `value`. Raises StepFailedError and its kin, or control flow."""
        value = check(value, workflow.input, where=f"the input of {prefix or workflow.id}")
        for entry in workflow.entries:
            value = await self._entry(entry, value, prefix)
        return value

    async def _entry(self, entry: Entry, value: Any, prefix: str) -> Any:
        match entry:
            case Then(node=node):
                return await self._node(node, prefix + node.id, value)
            case Map(function=function):
                return function(value)
            case Loop():
                return await self._loop(entry, value, prefix)
            case ForEach():
                return await self._foreach(entry, value, prefix)
            case Parallel():
                return await self._parallel(entry.nodes, value, prefix, entry.limit)
            case Branch():
                return await self._branch(entry, value, prefix)
            case Sleep():
                return await self._sleep(entry, value, prefix)
            case WaitFor():
                return await self._wait_for(entry, prefix)

    async def _node(self, node: Step[Any, Any] | Workflow[Any, Any], path: str, value: Any) -> Any:
        if isinstance(node, Step):
            return await self._runner.run(node, path, value)
        with self._tracer.span(node.id, kind="workflow", path=path):
            return await self.walk(node, value, prefix=f"{path}/")

    async def _loop(self, entry: Loop, value: Any, prefix: str) -> Any:
        wants_count = len(inspect.signature(entry.condition).parameters) > 1
        for count in range(1, entry.max_iterations + 1):
            value = await self._node(entry.node, f"{prefix}{entry.id}#{count}", value)
            again = entry.condition(value, count) if wants_count else entry.condition(value)
            if bool(again) is not entry.wanted:
                return value
        raise IterationLimitError(f"loop {prefix}{entry.id} ran {entry.max_iterations} times and is not done")

    async def _foreach(self, entry: ForEach, value: Any, prefix: str) -> list[Any]:
        items = list(value)
        calls = [self._call(entry.node, f"{prefix}{entry.id}[{n}]", item) for n, item in enumerate(items)]
        return await self._settle(calls, entry.concurrency)

    async def _parallel(self, nodes: Sequence[Any], value: Any, prefix: str, limit: int | None) -> dict[str, Any]:
        calls = [self._call(node, prefix + node.id, value) for node in nodes]
        outputs = await self._settle(calls, limit or len(calls))
        return {node.id: output for node, output in zip(nodes, outputs, strict=True)}

    async def _branch(self, entry: Branch, value: Any, prefix: str) -> Any:
        chosen = [node for condition, node in entry.arms if condition(value)] or (
            [entry.otherwise] if entry.otherwise else []
        )
        if not chosen:
            raise NoBranchError(f"branch {prefix}{entry.id}: no condition held and it has no otherwise")
        if entry.mode == "all":
            return await self._parallel(chosen, value, prefix, None)
        return await self._node(chosen[0], prefix + chosen[0].id, value)

    def _call(self, node: Any, path: str, value: Any) -> Callable[[], Awaitable[Any]]:
        return lambda: self._node(node, path, value)

    async def _settle(self, calls: Sequence[Callable[[], Awaitable[Any]]], limit: int) -> list[Any]:
        """Run all, at most `limit` at a time, and wait for every one; then the worst thing that happened, or the outputs."""
        if len(calls) == 1:
            return [await calls[0]()]
        gate = asyncio.Semaphore(max(limit, 1))
        left = len(calls)

        async def arm(call: Callable[[], Awaitable[Any]]) -> Any:
            nonlocal left
            async with gate:
                output = await call()
            left -= 1
            await asyncio.sleep(0)  # arms that finish in the same turn of the loop share one write
            if left:
                await self._execution.recorder.flush()  # the others may take long
            return output

        outcomes = await asyncio.gather(*map(arm, calls), return_exceptions=True)
        return self._worst(outcomes)

    @staticmethod
    def _worst(outcomes: list[Any]) -> list[Any]:
        """Losing the run or leaving it goes first, then a failure, then a suspension with the earliest time."""
        raised = [each for each in outcomes if isinstance(each, BaseException)]
        for each in raised:
            if isinstance(each, ControlFlow) and not isinstance(each, Suspended):
                raise each
        for each in raised:
            if not isinstance(each, Suspended):
                raise each
        if raised:
            suspended = [each for each in raised if isinstance(each, Suspension)]
            times = [each.until for each in suspended if each.until is not None]
            looks = [each.seen for each in suspended if each.seen is not None]
            raise Suspension(min(times, default=None), seen=min(looks, default=None))
        return outcomes

    async def _sleep(self, entry: Sleep, value: Any, prefix: str) -> Any:
        path = prefix + entry.id
        if path in self._execution.records:
            return value
        due = await self._deadline(path, lambda now: self._wake_at(entry, value, now))
        if due > await self._execution.store.now():
            raise Suspension(due)
        self._execution.record(Record(path, Status.OK))
        return value

    @staticmethod
    def _wake_at(entry: Sleep, value: Any, now: datetime) -> datetime:
        if entry.until is not None:
            return entry.until(value) if callable(entry.until) else entry.until
        seconds = entry.seconds(value) if callable(entry.seconds) else entry.seconds
        return now + timedelta(seconds=seconds or 0)

    async def _deadline(self, path: str, at: Callable[[datetime], datetime]) -> datetime:
        """The time recorded at `path@until`; recorded now if there is none. Woken early, a run reads it again: it never moves."""
        record = self._execution.records.get(f"{path}@until")
        if record is None:
            due = at(await self._execution.store.now())
            record = Record(f"{path}@until", Status.UNTIL, f'"{due.isoformat()}"'.encode())
            self._execution.record(record)
            await self._execution.recorder.flush()
        moment: datetime = decode(record.output, datetime, where=record.path)
        return moment

    async def _wait_for(self, entry: WaitFor, prefix: str) -> Any:
        path = prefix + entry.id
        if (record := self._execution.records.get(path)) is not None:
            return (
                entry.otherwise if record.status is Status.SKIPPED else decode(record.output, entry.schema, where=path)
            )
        with self._tracer.span(entry.name, kind="wait", path=path):
            await self._execution.boundary()
            signal, seen = await self._execution.take_first(entry.name)
            if signal is not None:
                output = decode(signal.payload, entry.schema, where=f"the signal {entry.name!r} at {path}")
                record = Record(path, Status.OK, signal.payload)
                self._execution.records[path] = record
                self._execution.recorder.add(record, consumed=[signal.seq])
                return output
            return await self._timed_out(entry, path, seen)

    async def _timed_out(self, entry: WaitFor, path: str, seen: int) -> Any:
        if entry.timeout_s is None:
            raise Suspension(seen=seen)
        due = await self._deadline(path, lambda now: now + timedelta(seconds=entry.timeout_s or 0))
        if due > await self._execution.store.now():
            raise Suspension(due, seen=seen)
        self._execution.record(Record(path, Status.SKIPPED))
        return entry.otherwise
