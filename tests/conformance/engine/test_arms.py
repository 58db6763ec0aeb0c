"""Parallel arms, and items of a list."""

import asyncio

import pytest

from tests.conformance.engine.steps import READ, boom, double
from tests.conformance.engines import Boot
from workflows import (
    RunFailedError,
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
