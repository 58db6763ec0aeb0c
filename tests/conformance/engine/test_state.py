"""Values that the steps of a run share."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from tests.conformance.engine.steps import READ, double
from tests.conformance.engines import Boot, in_state, until
from workflows import Effect, Retry, RunFailedError, RunState, StepContext, step, workflow


class Spent(BaseModel):
    total: int = 0
    last: str | None = None


@step(effect=READ)
async def spend(n: int, ctx: StepContext) -> int:
    ctx.set_state(total=ctx.state.total + n, last=ctx.path)
    return n


@step(effect=READ)
async def total(n: Any, ctx: StepContext) -> int:
    result: int = ctx.state.total
    return result


async def test_a_later_step_sees_what_an_earlier_one_set(boot: Boot) -> None:
    flow = workflow("w", state=Spent).then(spend).then(spend.named("again")).then(total).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 3)).result(timeout=10) == 6


async def test_it_survives_a_suspension_and_another_worker(boot: Boot) -> None:
    flow = workflow("w", state=Spent).then(spend).wait_for("go", int).then(spend.named("again")).then(total).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 3)
        await in_state(engine, run.id, RunState.SUSPENDED)
    async with boot(flow) as engine:
        await engine.signal(run.id, "go", 4)
        assert await (await engine.run(run.id)).result(timeout=10) == 7


async def test_it_is_committed_with_the_step_and_not_by_a_failed_try(boot: Boot) -> None:
    tries: list[int] = []

    @step(effect=READ, retry=Retry(times=2, base=0.01))
    async def fails_once(n: int, ctx: StepContext) -> int:
        ctx.set_state(total=ctx.state.total + 100)
        tries.append(n)
        if len(tries) == 1:
            raise ValueError("not yet")
        return n

    flow = workflow("w", state=Spent).then(fails_once).then(total).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 1)).result(timeout=10) == 100


async def test_a_value_that_does_not_fit_its_type_fails_the_step_and_names_the_field(boot: Boot) -> None:
    @step(effect=READ)
    async def wrong(n: int, ctx: StepContext) -> int:
        ctx.set_state(total="many")
        return n

    flow = workflow("w", state=Spent).then(wrong).commit()
    async with boot(flow) as engine:
        with pytest.raises(RunFailedError, match="total"):
            await (await engine.start(flow, 1)).result(timeout=10)


async def test_a_field_that_its_type_does_not_have_fails_the_step_and_is_named(boot: Boot) -> None:
    @step(effect=READ)
    async def wrong(n: int, ctx: StepContext) -> int:
        ctx.set_state(totel=3)
        return n

    flow = workflow("w", state=Spent).then(wrong).commit()
    async with boot(flow) as engine:
        with pytest.raises(RunFailedError, match="totel"):
            await (await engine.start(flow, 1)).result(timeout=10)


async def test_conditions_and_maps_may_ask_for_it(boot: Boot) -> None:
    def enough(n: int, count: int, state: Spent) -> bool:
        return state.total >= 9

    def with_total(n: int, state: Spent) -> int:
        return n * 1000 + state.total

    flow = workflow("w", state=Spent).dountil(spend, enough, max_iterations=10).map(with_total).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 4)).result(timeout=10) == 4012


async def test_without_a_type_it_is_a_mapping(boot: Boot) -> None:
    @step(effect=READ)
    async def put(n: int, ctx: StepContext) -> int:
        ctx.set_state(seen=[n], name="x")
        return n

    @step(effect=READ)
    async def look(n: int, ctx: StepContext) -> dict[str, Any]:
        return dict(ctx.state)

    flow = workflow("w").then(put).then(look).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 4)).result(timeout=10) == {"seen": [4], "name": "x"}


async def test_arms_that_set_one_key_leave_the_same_value_on_every_replay(boot: Boot) -> None:
    async def claim(n: int, ctx: StepContext) -> int:
        ctx.set_state(last=ctx.path)
        return n

    @step(effect=READ)
    async def who(arms: Mapping[str, Any], ctx: StepContext) -> str:
        return str(ctx.state.last)

    arms = [step(id=name, effect=READ)(claim) for name in "abc"]
    flow = workflow("w", state=Spent).then(double).parallel(*arms).then(who).wait_for("go", str).then(late).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await in_state(engine, run.id, RunState.SUSPENDED)
        first = (await run.state_at()).state["last"]
        assert first in "abc"
    async with boot(flow) as engine:
        await engine.signal(run.id, "go", "x")
        again = await engine.run(run.id)
        assert await again.result(timeout=10) == first


@step(effect=READ)
async def late(said: str, ctx: StepContext) -> str:
    return str(ctx.state.last)


async def test_a_nested_workflow_shares_the_runs_state(boot: Boot) -> None:
    inner = workflow("inner").then(spend).commit()
    flow = workflow("w", state=Spent).then(spend.named("own")).then(inner).then(total).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 5)).result(timeout=10) == 10


async def test_a_pure_steps_change_is_made_again_if_it_was_lost(boot: Boot) -> None:
    @step(effect=Effect.PURE)
    async def put(n: int, ctx: StepContext) -> int:
        ctx.set_state(total=n)
        return n

    flow = workflow("w", state=Spent).then(put).wait_for("go", int).then(total).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 8)
        await in_state(engine, run.id, RunState.SUSPENDED)
        await engine.signal(run.id, "go", 1)
        assert await run.result(timeout=10) == 8
        await until(lambda: _total(run, 8))


async def test_it_is_what_the_records_say_also_after_a_second_walk_in_the_same_claim(boot: Boot) -> None:
    """The first arm's change is committed last, and so it stays: a walk in the graph's order would leave the second's."""
    gate, entered, go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @step(effect=READ)
    async def a(n: int, ctx: StepContext) -> int:
        await gate.wait()
        ctx.set_state(last="a")
        return n

    @step(effect=READ)
    async def b(n: int, ctx: StepContext) -> int:
        ctx.set_state(last="b")
        return n

    @step(effect=READ)
    async def wait(arms: Mapping[str, Any]) -> int:
        entered.set()
        await go.wait()
        return 1

    flow = workflow("w", state=Spent).parallel(a, b).then(wait).map(lambda _, state: state.last).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await until(lambda: _recorded(run, "b"))
        gate.set()
        await entered.wait()
        await engine.signal(run.id, "hello")
        go.set()
        assert (await run.result(timeout=10), (await run.state_at()).state["last"]) == ("a", "a")


async def _recorded(run: Any, path: str) -> bool:
    return path in [record.path for record in await run.steps()]


async def _total(run: Any, wanted: int) -> bool:
    return bool((await run.state_at()).state.get("total") == wanted)
