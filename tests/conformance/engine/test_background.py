"""Background runs and schedules."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, double
from tests.conformance.engines import Boot, move_clock, until
from workflows import (
    Engine,
    RunState,
    StepContext,
    step,
    workflow,
)


class TestBackground:
    async def test_a_child_run_wakes_its_parents_thread_with_the_result(self, boot: Boot) -> None:
        child = workflow("child").then(double).commit()

        @step(effect=READ)
        async def begin(value: None, ctx: StepContext) -> str:
            await ctx.signals.drain("message")
            return ctx.dispatch(child, 21)

        parent = workflow("parent").then(begin).wait_for("task", dict[str, Any]).commit()
        async with boot(parent, child) as engine:
            outcome = await engine.signal_with_start(parent, tenant="T1", key="thread", name="message", dedup_key="m")
            result = await (await engine.run(outcome.run_id, tenant="T1")).result(timeout=10)
            assert result["state"] == "done"
            assert await (await engine.run(result["run_id"], tenant="T1")).result(timeout=10) == 42

    @pytest.mark.store_only("schedules are rows of a store, fired by its clock")
    async def test_a_schedule_fires_once_with_several_clocks(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow, clock=True) as one, boot(flow, clock=True) as two:
            await one.schedule("nightly", flow, 4, spec="0 3 * * *", tz="Europe/Berlin", tenant="T1")
            await move_clock(one, timedelta(days=1, minutes=1))
            await until(lambda: _done(one, "T1"))
            await asyncio.gather(one.clock.sweep(), two.clock.sweep())
            assert len(await two.runs(tenant="T1")) == 1
            await move_clock(one, timedelta(0))


async def _done(engine: Engine, tenant: str) -> list[Any]:
    return await engine.runs(tenant=tenant, states=[RunState.DONE])


class TestRunsWithoutAKey:
    async def test_a_child_wakes_the_run_that_dispatched_it(self, boot: Boot) -> None:
        """So that a background run may itself dispatch and wait."""
        leaf = workflow("leaf").then(double).commit()

        @step(effect=READ)
        async def begin(n: int, ctx: StepContext) -> str:
            return ctx.dispatch(leaf, n)

        @step(effect=READ)
        async def state(told: dict[str, Any]) -> str:
            return str(told["state"])

        middle = workflow("middle").then(begin).wait_for("task", dict[str, Any]).then(state).commit()

        @step(effect=READ)
        async def delegate(n: int, ctx: StepContext) -> str:
            return ctx.dispatch(middle, n)

        root = workflow("root").then(delegate).wait_for("task", dict[str, Any]).then(state).commit()
        async with boot(root, middle, leaf) as engine:
            assert await (await engine.start(root, 21)).result(timeout=20) == "done"

    async def test_one_that_ends_before_it_looks_leaves_no_dead_letter(self, boot: Boot) -> None:
        """It was told of its child's end and did not ask; a moment later nobody would have told it."""
        child, gate = workflow("child").then(double).commit(), asyncio.Event()

        @step(effect=READ)
        async def begin(n: int, ctx: StepContext) -> str:
            return ctx.dispatch(child, n)

        @step(effect=READ)
        async def go_on(run_id: str) -> str:
            await gate.wait()
            return run_id

        flow = workflow("w").then(begin).then(go_on).commit()
        async with boot(flow, child) as engine:
            run = await engine.start(flow, 1)
            (row,) = await until(lambda: engine.runs(tenant="default", workflow="child", states=[RunState.DONE]))
            gate.set()
            assert await run.result(timeout=10) == row.run_id
            assert await engine.dead_letters.signals(tenant="default") == []
