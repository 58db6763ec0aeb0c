"""Asking a run to stop."""

import asyncio

from tests.conformance.engine.steps import READ, boom
from tests.conformance.engines import Boot, in_state
from workflows import (
    Effect,
    RunState,
    step,
    workflow,
)


class TestCancel:
    async def test_a_suspended_run_is_cancelled_at_once(self, boot: Boot) -> None:
        flow = workflow("w").sleep(3600).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert await run.cancel()
            await in_state(engine, run.id, RunState.CANCELLED)
            assert await run.cancel()  # asking again is a repeat

    async def test_a_step_that_would_be_run_again_anyway_is_interrupted(self, boot: Boot) -> None:
        entered = asyncio.Event()

        @step(effect=READ)
        async def stuck(n: int) -> int:
            entered.set()
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(stuck).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await entered.wait()
            await run.cancel()
            await in_state(engine, run.id, RunState.CANCELLED)

    async def test_what_cannot_be_undone_is_awaited_to_its_end(self, boot: Boot) -> None:
        entered, gate, done = asyncio.Event(), asyncio.Event(), []

        @step(effect=Effect.IRREVERSIBLE)
        async def spend(n: int) -> int:
            entered.set()
            await gate.wait()
            done.append(n)
            return n

        flow = workflow("w").then(spend).then(boom).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await entered.wait()
            await run.cancel()
            gate.set()
            await in_state(engine, run.id, RunState.CANCELLED)
            assert done == [1]
            assert [record.path for record in await run.steps()] == ["spend!intent", "spend"]
