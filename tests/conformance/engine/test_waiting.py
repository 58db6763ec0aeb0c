"""Sleeps, waits for signals, and suspensions."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, Order, double, increment
from tests.conformance.engines import Boot, in_state, move_clock, until
from workflows import (
    RunFailedError,
    RunState,
    StepContext,
    step,
    workflow,
)
from workflows.errors import (
    AlreadyResumedError,
    StateError,
)


class TestWaiting:
    async def test_a_sleeping_run_is_held_by_nobody_and_wakes_on_time(self, boot: Boot) -> None:
        flow = workflow("w").then(double).sleep(3600).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await move_clock(engine, timedelta(hours=2))
            assert await run.result(timeout=10) == 3

    async def test_a_signal_does_not_change_a_sleep(self, boot: Boot) -> None:
        flow = workflow("w").then(double).sleep(3600).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            before = [record for record in await run.steps() if record.path.endswith("@until")]
            await engine.signal(run.id, "hello")
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert [record for record in await run.steps() if record.path.endswith("@until")] == before
            await move_clock(engine, timedelta(hours=2))
            assert await run.result(timeout=10) == 2

    async def test_sleep_until_wakes_at_its_time_and_not_before(self, boot: Boot) -> None:
        async def at(n: int, ctx: StepContext) -> datetime:
            return await ctx.now() + timedelta(hours=n)

        flow = (
            workflow("w").then(step(id="at", effect=READ)(at)).sleep_until(lambda at: at).map(lambda at: 1).then(double)
        ).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 3)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await move_clock(engine, timedelta(hours=2))
            await engine.signal(run.id, "hello")  # which makes it look
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert [record.path for record in await run.steps() if record.status == "ok"] == ["at"]
            await move_clock(engine, timedelta(hours=4))
            assert await run.result(timeout=10) == 2

    async def test_a_time_that_is_past_is_not_waited_for(self, boot: Boot) -> None:
        flow = workflow("w").sleep_until(datetime(2020, 1, 1, tzinfo=UTC)).then(double).commit()
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 1)).result(timeout=10) == 2

    async def test_a_time_without_a_zone_fails_the_run_and_says_so(self, boot: Boot) -> None:
        flow = workflow("w").sleep_until(lambda n: datetime(2100, 1, 1)).then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            with pytest.raises(RunFailedError, match=r"the time of sleep-0.*timezone"):
                await run.result(timeout=10)

    async def test_wait_for_takes_the_signals_payload(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", Order).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.signal(run.id, "go", {"item": "tent", "amount": 1})
            assert await run.result(timeout=10) == Order(item="tent", amount=1)

    async def test_its_time_out_is_recorded(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", int, timeout=60, otherwise=-1).then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await move_clock(engine, timedelta(minutes=2))
            assert await run.result(timeout=10) == -2
            assert {record.path: record.status for record in await run.steps()}["wait-go-0"] == "skipped"

    async def test_a_step_can_suspend_and_be_resumed_once(self, boot: Boot) -> None:
        @step(effect=READ)
        async def ask(n: int, ctx: StepContext) -> int:
            return n + await ctx.suspend({"question": n}, resume=int)

        flow = workflow("w").then(ask).then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert [(each.path, each.payload) for each in await run.suspensions()] == [("ask", {"question": 1})]
            await run.resume(4)
            assert await run.result(timeout=10) == 10
            await run.resume(4, path="ask")  # the same answer again is a repeat
            with pytest.raises(AlreadyResumedError):
                await run.resume(5, path="ask")
            with pytest.raises(StateError, match="nothing"):
                await run.resume(5, path="no-such-step")

    async def test_two_arms_suspend_and_are_resumed_in_any_order(self, boot: Boot) -> None:
        async def ask(n: int, ctx: StepContext) -> int:
            return n + await ctx.suspend({}, resume=int)

        a, b = step(id="a", effect=READ)(ask), step(id="b", effect=READ)(ask)
        flow = workflow("w").then(double).parallel(a, b).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await run.resume(20, path="b")
            await until(lambda: _waiting(run, {"a"}))
            await run.resume(10, path="a")
            assert await run.result(timeout=10) == {"a": 12, "b": 22}

    async def test_racing_resumes_have_one_winner(self, boot: Boot) -> None:
        @step(effect=READ)
        async def ask(n: int, ctx: StepContext) -> int:
            return await ctx.suspend({}, resume=int)

        flow = workflow("w").then(ask).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            outcomes = await asyncio.gather(*(run.resume(n) for n in range(5)), return_exceptions=True)
            assert sum(outcome is None for outcome in outcomes) == 1, outcomes
            assert all(isinstance(outcome, StateError) for outcome in outcomes if outcome is not None)
            winner = next(n for n, outcome in enumerate(outcomes) if outcome is None)
            assert await run.result(timeout=10) == winner


async def _waiting(run: Any, paths: set[str]) -> bool:
    return {each.path for each in await run.suspensions()} == paths
