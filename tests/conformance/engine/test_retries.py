"""Tries, time limits and long waits between tries."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ
from tests.conformance.engines import Boot, in_state, move_clock
from workflows import (
    Retry,
    RunFailedError,
    RunState,
    StepContext,
    step,
    workflow,
)


class TestRetries:
    async def test_a_failing_step_is_tried_again(self, boot: Boot) -> None:
        tries = []

        @step(effect=READ, retry=Retry(times=3, base=0.001))
        async def flaky(n: int, ctx: StepContext) -> int:
            tries.append((ctx.attempt, ctx.idempotency_key))
            if len(tries) < 3:
                raise ConnectionError("away")
            return n

        flow = workflow("w").then(flaky).commit()
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 1)).result(timeout=10) == 1
        assert [attempt for attempt, _ in tries] == [1, 2, 3]
        assert len({key for _, key in tries}) == 1

    async def test_a_non_retryable_error_fails_at_once(self, boot: Boot) -> None:
        tries = []

        @step(effect=READ, retry=Retry(times=3, base=0.001, non_retryable=(ValueError,)))
        async def wrong(n: int) -> int:
            tries.append(n)
            raise ValueError("never")

        flow = workflow("w").then(wrong).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError):
                await (await engine.start(flow, 1)).result(timeout=10)
        assert tries == [1]

    async def test_a_long_wait_suspends_the_run_and_still_counts(self, boot: Boot) -> None:
        tries = []

        class Busy(Exception):
            retry_after_s = 600

        @step(effect=READ, retry=Retry(times=1))
        async def limited(n: int, ctx: StepContext) -> int:
            tries.append(ctx.attempt)
            raise Busy("later")

        flow = workflow("w").then(limited).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await move_clock(engine, timedelta(minutes=11))
            with pytest.raises(RunFailedError, match="Busy"):
                await run.result(timeout=10)
        assert tries == [1, 2]

    async def test_a_step_that_takes_too_long_is_stopped(self, boot: Boot) -> None:
        @step(effect=READ, timeout=0.02)
        async def stuck(n: int) -> int:
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(stuck).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match="TimeoutError"):
                await (await engine.start(flow, 1)).result(timeout=10)

    async def test_a_failure_to_start_is_tried_again_also_if_it_is_a_kind_of_timeout(self, boot: Boot) -> None:
        """Clients' connect timeouts are TimeoutErrors; the step's own time limit, after the start, is another matter."""
        ran = []

        class ConnectTimeout(TimeoutError):
            pass

        @step(retry=Retry(times=2, base=0.001, not_started=(ConnectTimeout,)))
        async def charge(n: int) -> Any:
            ran.append(n)
            if len(ran) == 1:
                raise ConnectTimeout("no connection")
            return n

        flow = workflow("w").then(charge).commit()
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 1)).result(timeout=10) == 1
        assert ran == [1, 1]

    async def test_one_that_never_starts_fails_and_is_not_left_open(self, boot: Boot) -> None:
        """Nothing happened, so nothing is unknown."""

        @step(retry=Retry(times=1, base=0.001, not_started=(ConnectionRefusedError, TimeoutError)))
        async def charge(n: int) -> Any:
            raise TimeoutError("no connection")

        flow = workflow("w").then(charge).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            with pytest.raises(RunFailedError, match="TimeoutError: no connection"):
                await run.result(timeout=10)
            assert [record.status for record in await run.steps() if record.path == "charge"] == ["failed"]
