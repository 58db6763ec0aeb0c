"""Parallel arms, and items of a list."""

import asyncio

import pytest

from tests.conformance.engine.steps import READ, boom, double
from tests.conformance.engines import Boot, until
from workflows import (
    Effect,
    RunFailedError,
    StepContext,
    step,
    workflow,
)


class TestParallelAndForeach:
    async def test_parallel_arms_run_at_once_and_come_back_by_id(self, boot: Boot) -> None:
        gate = asyncio.Barrier(2)

        @step(effect=READ)
        async def left(n: int) -> int:
            await gate.wait()
            return n + 1

        @step(effect=READ)
        async def right(n: int) -> int:
            await gate.wait()
            return n - 1

        flow = workflow("w").then(double).parallel(left, right).commit()
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 5)).result(timeout=10) == {"left": 11, "right": 9}

    async def test_one_failure_fails_the_entry_after_the_others_have_settled(self, boot: Boot) -> None:
        finished = []

        @step(effect=READ)
        async def slow(n: int) -> int:
            await asyncio.sleep(0.05)
            finished.append(n)
            return n

        flow = workflow("w").then(double).parallel(boom, slow).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            with pytest.raises(RunFailedError):
                await run.result(timeout=10)
            assert finished == [2]
            assert {record.path: record.status for record in await run.steps()}["slow"] == "ok"

    @pytest.mark.parametrize("at_once", [1, 2])
    async def test_items_that_had_not_begun_when_one_fails_do_not_begin(self, boot: Boot, at_once: int) -> None:
        begun, undone = list[int](), list[int]()

        async def undo(n: int, output: int) -> None:
            undone.append(n)

        @step(effect=Effect.IDEMPOTENT, compensate=undo)
        async def each(n: int) -> int:
            begun.append(n)
            if n == 3:
                raise ValueError("no")
            return n

        flow = workflow("w").map(lambda n: list(range(n))).foreach(each, concurrency=at_once).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 20)
            with pytest.raises(RunFailedError, match="no"):
                await run.result(timeout=10)
        assert max(begun) <= 3 + at_once
        assert sorted(undone) == sorted(set(begun) - {3})

    async def test_foreach_keeps_the_order_and_bounds_concurrency(self, boot: Boot) -> None:
        running = peak = 0

        @step(effect=READ)
        async def each(n: int) -> int:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0.01 * (5 - n))
            running -= 1
            return n * n

        @step(effect=READ)
        async def upto(n: int) -> list[int]:
            return list(range(n))

        flow = workflow("w").then(upto).foreach(each, concurrency=2).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 5)
            assert await run.result(timeout=10) == [0, 1, 4, 9, 16]
            assert peak == 2
            assert {record.path for record in await run.steps()} == {"upto", *(f"each[{n}]" for n in range(5))}
            assert await (await engine.start(flow, 0)).result(timeout=10) == []


class TestLimit:
    """`parallel(limit=…)`: never more arms at once."""

    async def test_no_more_arms_run_at_once_and_all_run(self, boot: Boot) -> None:
        running, peak, full = 0, 0, asyncio.Event()

        async def arm(n: int) -> int:
            nonlocal running, peak
            running += 1
            peak = max(peak, running)
            if running == 2:
                full.set()
            await full.wait()
            await asyncio.sleep(0)
            running -= 1
            return n

        arms = [step(id=f"arm-{number}", effect=READ)(arm) for number in range(5)]
        flow = workflow("w").then(double).parallel(*arms, limit=2).commit()
        async with boot(flow) as engine:
            output = await (await engine.start(flow, 1)).result(timeout=10)
            assert output == {f"arm-{number}": 2 for number in range(5)}
            assert peak == 2

    async def test_arms_within_an_arm_take_no_place_of_their_own(self, boot: Boot) -> None:
        """The limit counts the arms of its own entry; a nested workflow is one of them."""
        gate = asyncio.Barrier(2)

        async def arm(n: int) -> int:
            await gate.wait()
            return n

        inner = workflow("inner").parallel(step(id="a", effect=READ)(arm), step(id="b", effect=READ)(arm)).commit()
        flow = workflow("w").parallel(inner, double, limit=1).commit()
        async with boot(flow) as engine:
            output = await (await engine.start(flow, 1)).result(timeout=10)
            assert output == {"inner": {"a": 1, "b": 1}, "double": 2}

    @pytest.mark.store_only("an arm that waits in Temporal keeps its place")
    async def test_an_arm_that_waits_for_an_answer_gives_its_place_up(self, boot: Boot) -> None:
        async def asks(n: int, ctx: StepContext) -> int:
            return n + await ctx.suspend({}, resume=int)

        arms = [step(id=f"arm-{number}", effect=READ)(asks) for number in range(3)]
        flow = workflow("w").parallel(*arms, limit=1).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)

            async def all_asked() -> bool:
                return len(await run.suspensions()) == 3

            await until(all_asked)
            for number in (2, 0, 1):
                await run.resume(10 * number, path=f"arm-{number}")
            assert await run.result(timeout=10) == {"arm-0": 1, "arm-1": 11, "arm-2": 21}
