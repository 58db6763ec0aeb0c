"""Finishing early with a value."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.conformance.engine.steps import READ, boom, double
from tests.conformance.engines import Boot, idle, in_state, kill, until
from workflows import Effect, RunFailedError, RunState, StepContext, step, workflow


class Report(BaseModel):
    rows: int


@step(effect=READ)
async def stop_at_ten(n: int, ctx: StepContext) -> int:
    if n >= 10:
        ctx.bail(n)
    return n


@step(effect=READ)
async def increment_or_stop(n: int, ctx: StepContext) -> int:
    if n >= 10:
        ctx.bail(n)
    return n + 1


async def test_the_steps_after_it_do_not_run_and_the_value_is_the_runs(boot: Boot) -> None:
    flow = workflow("w").then(stop_at_ten).then(boom).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 12)).result(timeout=10) == 12
        with pytest.raises(RunFailedError):
            await (await engine.start(flow, 3)).result(timeout=10)


async def test_in_a_nested_workflow_it_ends_that_one_alone(boot: Boot) -> None:
    inner = workflow("inner").then(stop_at_ten).then(boom).commit()
    flow = workflow("w").then(inner).then(double).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 12)).result(timeout=10) == 24


async def test_in_a_loop_it_ends_the_workflow_the_loop_is_in(boot: Boot) -> None:
    counting = workflow("counting").dowhile(increment_or_stop, lambda n: True, max_iterations=20).then(boom).commit()
    flow = workflow("w").then(counting).then(double).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 0)).result(timeout=10) == 20


async def test_an_arm_that_bails_ends_the_workflow_once_the_others_have_settled(boot: Boot) -> None:
    ran: list[int] = []

    @step(effect=READ)
    async def other(n: int) -> int:
        ran.append(n)
        return n

    flow = workflow("w").then(double).parallel(stop_at_ten, other).then(boom_of_arms).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 6)).result(timeout=10) == 12
        assert ran == [12]


@step(effect=READ)
async def boom_of_arms(arms: dict[str, Any]) -> int:
    raise ValueError("never reached")


async def test_a_failing_arm_beats_one_that_bails(boot: Boot) -> None:
    flow = workflow("w").then(double).parallel(stop_at_ten, boom).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 6)
        await in_state(engine, run.id, RunState.FAILED)


async def test_an_arm_that_bails_does_not_wait_for_one_that_is_suspended(boot: Boot) -> None:
    waiting = workflow("waiting").wait_for("go", int).commit()
    flow = workflow("w").then(double).parallel(stop_at_ten, waiting).then(boom_of_arms).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 6)).result(timeout=10) == 12


async def test_a_value_of_the_wrong_type_fails_the_run(boot: Boot) -> None:
    @step(effect=READ)
    async def wrong(n: int, ctx: StepContext) -> Report:
        ctx.bail({"rows": "many"})

    flow = workflow("w").then(wrong).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        with pytest.raises(RunFailedError, match="rows"):
            await run.result(timeout=10)


async def test_a_model_crosses_storage(boot: Boot) -> None:
    @step(effect=READ)
    async def early(n: int, ctx: StepContext) -> Report:
        ctx.bail(Report(rows=n))

    flow = workflow("w").then(early).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 3)).result(timeout=10) == Report(rows=3)


async def test_it_is_a_record_that_a_later_worker_reads_back(boot: Boot) -> None:
    """Killed between the record and the end, the run ends with the same value and the step does not run again."""
    ran: list[int] = []

    @step(effect=Effect.IDEMPOTENT)
    async def early(n: int, ctx: StepContext) -> int:
        ran.append(n)
        ctx.bail(n + 1)

    inner = workflow("inner").then(early).commit()
    gate = workflow("gate").wait_for("go", int).commit()
    flow = workflow("w").then(double).parallel(inner, gate).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await in_state(engine, run.id, RunState.SUSPENDED)
        assert {record.path: record.status for record in await run.steps()}["inner/early"] == "bailed"
        await kill(engine)
    async with boot(flow) as engine:
        await engine.signal(run.id, "go", 5)
        again = await engine.run(run.id)
        assert await again.result(timeout=20) == {"inner": 3, "gate": 5}
        assert ran == [2]
        await until(lambda: idle(engine))
