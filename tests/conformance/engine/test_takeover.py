"""Workers that leave, stand still and die."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom, double
from tests.conformance.engines import Boot, in_state, kill, leave, move_clock, until
from workflows import (
    Effect,
    Engine,
    RunFailedError,
    RunState,
    step,
    workflow,
)


class TestTakeover:
    async def test_a_leaving_worker_hands_its_run_over_at_the_next_boundary(self, boot: Boot) -> None:
        entered, gate, calls = asyncio.Event(), asyncio.Event(), []

        @step(effect=READ)
        async def first(n: int) -> int:
            calls.append("first")
            entered.set()
            await gate.wait()
            return n

        @step(effect=READ)
        async def second(n: int) -> int:
            calls.append("second")
            return n + 1

        flow = workflow("w").then(first).then(second).commit()
        async with boot(flow, lease_s=60) as leaving:
            run = await leaving.start(flow, 1)
            await entered.wait()
            stopping = asyncio.create_task(leave(leaving))
            await asyncio.sleep(0)
            gate.set()
            await stopping
            async with boot(flow, lease_s=60) as taking:
                assert await (await taking.run(run.id)).result(timeout=10) == 2
        assert calls == ["first", "second"]

    @pytest.mark.store_only("the attempts of a claim")
    async def test_handing_over_counts_as_no_attempt(self, boot: Boot) -> None:
        entered = asyncio.Event()

        @step(effect=READ)
        async def work(n: int) -> int:
            entered.set()
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(work).commit()
        async with boot(flow, lease_s=60, grace_s=0.05) as leaving:
            run = await leaving.start(flow, 1)
            await entered.wait()
            await leave(leaving)
            row = await leaving.store.run(run.id)
            assert (row.state, row.attempts) == (RunState.READY, 0)

    async def test_a_failed_run_taken_over_goes_backwards_only_also_in_its_other_arms(self, boot: Boot) -> None:
        entered, undone, calls = asyncio.Event(), list[int](), list[str]()

        async def undo(n: int) -> None:
            undone.append(n)

        async def plus(n: int) -> int:
            return n + 1

        @step(effect=Effect.READ)
        async def never_done(n: int) -> int:
            calls.append("never done")
            entered.set()
            await asyncio.Event().wait()
            return n

        paid = step(id="paid", effect=Effect.IDEMPOTENT, compensate=undo)(plus)
        beside = workflow("beside").then(paid).then(never_done).sleep(60).commit()
        flow = workflow("w").then(double).parallel(boom, beside).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 1)
            await entered.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                with pytest.raises(RunFailedError, match="no 2"):
                    await (await second.run(run.id)).result(timeout=10)
        assert calls == ["never done"]
        assert undone == [3]

    @pytest.mark.store_only("the fence of a claim")
    async def test_a_paused_owner_that_revives_writes_nothing(self, boot: Boot) -> None:
        entered, gate, calls = asyncio.Event(), asyncio.Event(), []

        @step(effect=READ)
        async def work(n: int) -> int:
            calls.append(n)
            if len(calls) == 1:
                entered.set()
                await gate.wait()
                return -1
            return 7

        flow = workflow("w").then(work).commit()
        async with boot(flow, lease_s=2 * 3600, beat_s=3600) as paused:  # which it does not live to renew
            run = await paused.start(flow, 1)
            await entered.wait()
            await move_clock(paused, timedelta(hours=3))
            async with boot(flow, lease_s=0.2) as taking:
                assert await (await taking.run(run.id)).result(timeout=10) == 7
                gate.set()
                await until(lambda: _empty(paused))
                assert [record.output for record in await (await taking.run(run.id)).steps()] == [b"7"]

    async def test_a_run_that_keeps_killing_its_worker_is_dead_and_says_so(self, boot: Boot) -> None:
        told, entered = list[Any](), list[int]()

        @step(effect=READ)
        async def tell(failed: dict[str, Any]) -> None:
            told.append(failed)

        @step(effect=READ)
        async def deadly(n: int) -> int:
            entered.append(n)
            await asyncio.Event().wait()
            return n

        notice = workflow("notice", max_attempts=3).then(tell).commit()
        flow = workflow("w", on_failure="notice", max_attempts=2).then(deadly).commit()
        async with boot(flow, notice, worker=False) as web:
            run = await web.start(flow, 1)
            for attempt in (1, 2):
                async with boot(flow, notice, lease_s=0.2) as engine:
                    await until(partial(_entered, entered, attempt))
                    await kill(engine)
                await move_clock(web, timedelta(minutes=attempt))
            async with boot(flow, notice, lease_s=0.2) as engine:
                await in_state(engine, run.id, RunState.DEAD)
                await until(lambda: _truth(told))
                (row,) = await engine.runs(tenant="default", workflow="notice")
        assert (told[0]["run_id"], told[0]["state"]) == (run.id, "dead")
        assert row.max_attempts == 3


async def _entered(entered: list[int], times: int) -> bool:
    return len(entered) == times


async def _truth(value: Any) -> bool:
    return bool(value)


async def _empty(engine: Engine) -> bool:
    assert engine.worker is not None
    return not engine.worker._held
