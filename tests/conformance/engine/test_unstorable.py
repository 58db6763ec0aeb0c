"""What can't be stored, or could not be read again: it is refused where it comes in, and nothing else is lost over it."""

from typing import Any

import pytest

from tests.conformance.engine.steps import READ, double
from tests.conformance.engines import Boot, until
from workflows import Effect, InputError, RunFailedError, StepContext, step, workflow


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


DEEP = nested(220)
"""The writer of JSON takes 255 levels, its parser 200."""


@step(effect=READ)
async def gives_too_deep(n: int) -> Any:
    return DEEP


@step(effect=READ)
async def bails_too_deep(n: int, ctx: StepContext) -> int:
    ctx.bail(DEEP)


@step(effect=READ)
async def notes_too_deep(n: int, ctx: StepContext) -> int:
    await ctx.note("found", DEEP)
    return n


@step(effect=READ)
async def notes_under_no_name(n: int, ctx: StepContext) -> int:
    await ctx.note("fo\0und", n)
    return n


@step(effect=READ)
async def asks_too_deep(n: int, ctx: StepContext) -> int:
    answer: int = await ctx.suspend(DEEP, resume=int)
    return answer


@step(effect=READ)
async def says_half_a_pair(n: int) -> int:
    raise ValueError("no file named \ud800")


@step(effect=READ)
async def keeps_half_a_pair(n: int, ctx: StepContext) -> int:
    ctx.set_state(name="\ud800")
    return n


class TestSteps:
    @pytest.mark.store_only("Temporal carries values and failures in a form of its own")
    @pytest.mark.parametrize(
        "fault",
        [
            gives_too_deep,
            bails_too_deep,
            notes_too_deep,
            notes_under_no_name,
            asks_too_deep,
            says_half_a_pair,
            keeps_half_a_pair,
        ],
        ids=lambda each: each.id,
    )
    async def test_it_fails_by_it_and_what_was_done_is_undone(self, boot: Boot, fault: Any) -> None:
        undone = list[int]()

        async def undo(n: int) -> None:
            undone.append(n)

        @step(effect=Effect.IDEMPOTENT, compensate=undo)
        async def pay(n: int) -> int:
            return n

        flow = workflow("w").then(pay).then(fault).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            with pytest.raises(RunFailedError):
                await run.result(timeout=10)
            assert list((await run.state_at()).failures) == [fault.id]
        assert undone == [1]


@pytest.mark.store_only("Temporal carries values in a form of its own")
async def test_an_answer_that_could_not_be_read_is_refused_and_the_question_stays(boot: Boot) -> None:
    @step(effect=READ)
    async def ask(n: int, ctx: StepContext) -> Any:
        return await ctx.suspend("?", resume=Any)

    flow = workflow("w").then(ask).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await until(run.suspensions)
        with pytest.raises(InputError):
            await run.resume(DEEP)
        await run.resume(nested(150))
        assert await run.result(timeout=10) == nested(150)


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", "x" * 1001], ids=["NUL", "half a pair", "too long"])
async def test_an_id_or_key_that_no_store_takes_is_refused(boot: Boot, bad: str) -> None:
    flow = workflow("w").then(double).wait_for("go", int).commit()
    async with boot(flow, worker=False) as engine:
        run = await engine.start(flow, 1)
        for at in ({"tenant": bad}, {"key": bad}, {"run_id": bad}):
            with pytest.raises(InputError, match="no id or key"):
                await engine.start(flow, 1, **at)
        for name, dedup_key in ((bad, "d"), ("go", bad)):
            with pytest.raises(InputError, match="no id or key"):
                await engine.signal(run.id, name, 1, dedup_key=dedup_key)
        assert [each.run_id for each in await engine.runs(tenant="default")] == [run.id]


async def test_a_note_under_a_name_that_no_store_takes_is_refused_where_it_is_given(boot: Boot) -> None:
    flow = workflow("w").then(notes_under_no_name).commit()
    async with boot(flow) as engine:
        with pytest.raises(RunFailedError, match="no id or key"):
            await (await engine.start(flow, 1)).result(timeout=10)
