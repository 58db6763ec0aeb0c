"""Asking a run to stop while it is deep in something: nested workflows, arms, items, rounds. It stops there, what had finished stays, and
nothing that follows begins.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.engine.steps import READ
from tests.conformance.engines import Boot, in_state, until
from workflows import RunState, StepContext, Workflow, step, workflow

Flow = Workflow[Any, Any]
Shape = Callable[[Any, Any], Any]
"""Puts a node, and one that ends by itself, into a workflow."""


@step(effect=READ)
async def listed(n: int) -> list[int]:
    return [n, n, n]


def _nested(node: Any, other: Any, *, depth: int = 1) -> Flow:
    inner = workflow(f"inner-{depth}").then(other.named(f"before-{depth}")).then(node).commit()
    for level in range(depth - 1, 0, -1):
        inner = workflow(f"inner-{level}").then(inner).commit()
    return inner


SHAPES: dict[str, Shape] = {
    "nested": lambda node, other: workflow("w").then(_nested(node, other)),
    "doubly nested": lambda node, other: workflow("w").then(_nested(node, other, depth=2)),
    "an arm": lambda node, other: workflow("w").parallel(other, node).map(lambda both: 1),
    "an arm of several branches": lambda node, other: (
        workflow("w").branch((lambda n: True, other), (lambda n: True, node), mode="all").map(lambda both: 1)
    ),
    "an item": lambda node, other: workflow("w").then(listed).foreach(node, concurrency=2).map(len),
    "a round": lambda node, other: workflow("w").then(other).dowhile(node, lambda n: True, max_iterations=9),
    "a workflow in a round": lambda node, other: workflow("w").dountil(
        _nested(node, other), lambda n: False, max_iterations=9
    ),
    "a workflow in an item in an arm": lambda node, other: (
        workflow("w")
        .parallel(other, workflow("items").then(listed).foreach(_nested(node, other)).commit())
        .map(lambda both: 1)
    ),
}


class Ran:
    """What steps have begun and ended."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    def step(self, name: str) -> Any:
        """A step that ends at once."""

        async def ends(n: int, ctx: StepContext) -> int:
            self.begun.append(ctx.path)
            self.ended.append(ctx.path)
            return n

        return step(id=name, effect=READ)(ends)

    def stuck(self) -> Any:
        """A step that says that it has begun, and does not end."""

        async def stuck(n: int, ctx: StepContext) -> int:
            self.begun.append(ctx.path)
            await asyncio.Event().wait()
            return n

        return step(id="stuck", effect=READ)(stuck)

    def asks(self) -> Any:
        """A step that lets go until it is answered."""

        async def stuck(n: int, ctx: StepContext) -> int:
            self.begun.append(ctx.path)
            return await ctx.suspend({}, resume=int)

        return step(id="stuck", effect=READ)(stuck)


@pytest.fixture
def ran() -> Ran:
    return Ran()


async def _stopped(engine: Any, run: Any, ran: Ran) -> None:
    before = list(ran.begun)
    assert await run.cancel()
    await in_state(engine, run.id, RunState.CANCELLED)
    assert ran.begun == before, "a step began after the run was asked to stop"
    recorded = {record.path for record in await run.steps() if record.status == "ok"}
    assert {path for path in ran.ended if not path.startswith("after")} <= recorded
    assert not any("stuck" in path for path in recorded)


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_step_within_is_cut_off_and_nothing_follows(boot: Boot, ran: Ran, shape: str) -> None:
    flow = SHAPES[shape](ran.stuck(), ran.step("other")).then(ran.step("after")).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)

        async def begun() -> bool:
            at_once = (
                2 if shape == "an item" else 1
            )  # both were begun by one decision, and one process may be quicker than the other
            others = shape == "an item" or bool(ran.ended)
            return others and sum("stuck" in path for path in ran.begun) == at_once

        await until(begun)
        await _stopped(engine, run, ran)


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_run_that_waits_within_is_cancelled_and_nothing_follows(boot: Boot, ran: Ran, shape: str) -> None:
    flow = SHAPES[shape](ran.asks(), ran.step("other")).then(ran.step("after")).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await in_state(engine, run.id, RunState.SUSPENDED)
        assert await run.suspensions()
        await _stopped(engine, run, ran)


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_run_that_sleeps_within_is_cancelled_and_nothing_follows(boot: Boot, ran: Ran, shape: str) -> None:
    naps = workflow("stuck").sleep(3600).then(ran.step("woken")).commit()
    flow = SHAPES[shape](naps, ran.step("other")).then(ran.step("after")).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await in_state(engine, run.id, RunState.SUSPENDED)
        await _stopped(engine, run, ran)
