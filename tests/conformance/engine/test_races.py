"""What comes between two steps, and what must not be lost there."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom, double, increment
from tests.conformance.engines import Boot, in_state, kill, leave, move_clock, until
from workflows import (
    Effect,
    Interrupted,
    Retry,
    RunFailedError,
    RunState,
    StepContext,
    step,
    workflow,
)


class TestInterleavings:
    @pytest.mark.parametrize("kind", ["resume", "signal"])
    async def test_an_answer_to_one_arm_while_another_works_is_not_slept_through(self, boot: Boot, kind: str) -> None:
        entered, gate = asyncio.Event(), asyncio.Event()

        @step(effect=READ)
        async def ask(n: int, ctx: StepContext) -> int:
            return await ctx.suspend({}, resume=int)

        @step(effect=READ)
        async def slow(n: int) -> int:
            entered.set()
            await gate.wait()
            return n

        waiting: Any = ask if kind == "resume" else workflow("waiting").wait_for("go", int).commit()
        working = workflow("working").then(slow).then(increment).commit()
        flow = workflow("w").then(double).parallel(waiting, working).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await entered.wait()
            if kind == "resume":
                await until(lambda: _waiting(run, {"ask"}))
                await run.resume(7, path="ask")
            else:
                await engine.signal(run.id, "go", 7)
            gate.set()
            assert (await run.result(timeout=10))[waiting.id] == 7

    @pytest.mark.store_only("the reply of SUSPEND is late")
    async def test_a_task_that_let_go_of_a_run_does_not_evict_the_one_that_holds_it_now(self, boot: Boot) -> None:
        """The reply of SUSPEND is late; a signal wakes the run, and this very worker claims it before the reply is here."""

        @step(effect=Effect.IRREVERSIBLE)
        async def long(n: int) -> int | Interrupted:
            await asyncio.sleep(1.5)
            return n

        flow = workflow("w").wait_for("go", int).then(long).commit()
        async with boot(flow, lease_s=0.6) as engine:
            suspend = engine.store.suspend

            async def late(*arguments: Any, **options: Any) -> bool:
                let_go: bool = await suspend(*arguments, **options)
                await asyncio.sleep(0.4)
                return let_go

            engine.store.suspend = late
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.signal(run.id, "go", 7)
            assert await run.result(timeout=15) == 7

    async def test_a_step_that_cancels_itself_fails_like_any_other(self, boot: Boot) -> None:
        calls: list[int] = []

        @step(effect=READ, retry=Retry(times=1, base=0.001))
        async def leaking(n: int) -> int:
            calls.append(n)
            raise asyncio.CancelledError

        flow = workflow("w").then(leaking).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match="cancelled itself"):
                await (await engine.start(flow, 1)).result(timeout=10)
        assert len(calls) == 2

    async def test_signals_a_failed_try_had_taken_are_there_for_the_next(self, boot: Boot) -> None:
        tries: list[list[str]] = []

        @step(effect=READ, retry=Retry(times=1, base=0.001))
        async def taking(value: None, ctx: StepContext) -> list[str]:
            tries.append([signal.dedup_key for signal in await ctx.signals.drain("message")])
            if len(tries) == 1:
                raise ConnectionError("away")
            return tries[-1]

        flow = workflow("w").then(taking).commit()
        async with boot(flow) as engine:
            outcome = await engine.signal_with_start(flow, tenant="T1", key="thread", name="message", dedup_key="m")
            assert await (await engine.run(outcome.run_id, tenant="T1")).result(timeout=10) == ["m"]
            assert tries == [["m"], ["m"]]
            assert await engine.execution.runs.inbox(outcome.run_id) == []

    async def test_a_cancel_does_not_stop_what_undoes_a_failed_run(self, boot: Boot) -> None:
        entered, gate, undone = asyncio.Event(), asyncio.Event(), list[int]()

        async def undo(n: int) -> None:
            if not undone:
                entered.set()
                await gate.wait()
            undone.append(n)

        one = step(id="one", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        two = step(id="two", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        flow = workflow("w").then(one).then(two).then(boom).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            await entered.wait()
            await run.cancel()
            gate.set()
            await in_state(engine, run.id, RunState.FAILED)
            assert undone == [2, 1]

    async def test_a_cancel_between_two_tries_ends_the_run(self, boot: Boot) -> None:
        tried = asyncio.Event()

        @step(effect=READ, retry=Retry(times=50, base=4, cap=4))
        async def away(n: int) -> int:
            tried.set()
            raise ConnectionError("away")

        flow = workflow("w").then(away).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await tried.wait()
            await run.cancel()
            await in_state(engine, run.id, RunState.CANCELLED)

    async def test_what_undoes_a_run_goes_on_after_a_restart_also_when_no_step_had_failed(self, boot: Boot) -> None:
        entered, undone = asyncio.Event(), list[int]()

        async def undo(n: int) -> None:
            if not entered.is_set():
                entered.set()
                await asyncio.Event().wait()
            undone.append(n)

        one = step(id="one", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        two = step(id="two", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        flow = workflow("w").then(one).then(two).map(lambda n: n // 0).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 0)
            await entered.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, worker=False) as web:
                await web.cancel(run.id)
            async with boot(flow, lease_s=0.2) as second:
                await in_state(second, run.id, RunState.FAILED)
        assert undone == [2, 1]

    async def test_a_leaving_worker_hands_a_compensation_over(self, boot: Boot) -> None:
        entered, gate, undone = asyncio.Event(), asyncio.Event(), []

        async def undo(n: int) -> None:
            entered.set()
            await gate.wait()
            undone.append(n)

        one = step(id="one", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        two = step(id="two", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        flow = workflow("w").then(one).then(two).then(boom).commit()
        async with boot(flow) as leaving:
            run = await leaving.start(flow, 0)
            await entered.wait()
            stopping = asyncio.create_task(leave(leaving))
            await asyncio.sleep(0)
            gate.set()
            await stopping
            async with boot(flow) as taking:
                await in_state(taking, run.id, RunState.FAILED)
        assert undone == [2, 1]


async def _plus_one(n: int) -> int:
    return n + 1


async def _waiting(run: Any, paths: set[str]) -> bool:
    return {each.path for each in await run.suspensions()} == paths
