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
