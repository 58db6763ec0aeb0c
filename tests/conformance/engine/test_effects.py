"""What recovery does with a step that was cut off, by its effect."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom
from tests.conformance.engines import Boot, in_state, kill, move_clock
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


class TestEffects:
    async def test_an_irreversible_step_cut_off_is_not_run_again(self, boot: Boot) -> None:
        started, calls = asyncio.Event(), []

        @step(effect=Effect.IRREVERSIBLE)
        async def spend(n: int) -> int | Interrupted:
            calls.append(n)
            started.set()
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(spend).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 5)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                assert await (await second.run(run.id)).result(timeout=10) == Interrupted()
        assert calls == [5]

    async def test_one_that_cannot_say_interrupted_fails_instead(self, boot: Boot) -> None:
        started = asyncio.Event()

        @step
        async def undeclared(n: int) -> int:
            started.set()
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(undeclared).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 5)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                with pytest.raises(RunFailedError, match="outcome unknown"):
                    await (await second.run(run.id)).result(timeout=10)

    async def test_a_read_step_cut_off_is_run_again_and_finished_ones_are_not(self, boot: Boot) -> None:
        started, calls = asyncio.Event(), []

        @step(effect=READ)
        async def before(n: int) -> int:
            calls.append("before")
            return n

        @step(effect=READ)
        async def reading(n: int) -> int:
            calls.append("reading")
            if len(calls) == 2:
                started.set()
                await asyncio.Event().wait()
            return n + 1

        flow = workflow("w").then(before).then(reading).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 1)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                assert await (await second.run(run.id)).result(timeout=10) == 2
        assert calls == ["before", "reading", "reading"]

    @pytest.mark.parametrize("happened", [True, False])
    async def test_a_reconcile_step_looks_in_the_outside_world_first(self, boot: Boot, *, happened: bool) -> None:
        started, calls = asyncio.Event(), list[int]()
        world: dict[str, int] = {}

        async def look(key: str, value: int, ctx: StepContext) -> int | None:
            return world.get(key)

        @step(effect=Effect.RECONCILE, reconcile=look)
        async def post(n: int, ctx: StepContext) -> int:
            calls.append(n)
            if len(calls) == 1:
                if happened:
                    world[ctx.idempotency_key] = 42
                started.set()
                await asyncio.Event().wait()
            return 43

        flow = workflow("w").then(post).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 1)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                assert await (await second.run(run.id)).result(timeout=10) == (42 if happened else 43)
        assert len(calls) == (1 if happened else 2)

    @pytest.mark.parametrize("wait_s", [0.01, 5.0])
    async def test_a_reconcile_step_looks_before_it_is_tried_again(self, boot: Boot, wait_s: float) -> None:
        calls, looks = list[str](), list[str]()
        world: dict[str, int] = {}

        async def look(key: str, value: int, ctx: StepContext) -> int | None:
            looks.append(key)
            return world.get(key)

        @step(effect=Effect.RECONCILE, reconcile=look, retry=Retry(times=3, base=wait_s, cap=wait_s))
        async def post(n: int, ctx: StepContext) -> int:
            calls.append(ctx.idempotency_key)
            world[ctx.idempotency_key] = 42
            raise ConnectionError("the reply was lost")

        flow = workflow("w").then(post).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            assert await run.result(timeout=20) == 42
        assert len(calls) == len(looks) == 1

    async def test_what_proves_that_nothing_was_begun_needs_no_look(self, boot: Boot) -> None:
        calls, looks = list[int](), list[str]()

        async def look(key: str, value: int, ctx: StepContext) -> int | None:
            looks.append(key)
            return None

        @step(
            effect=Effect.RECONCILE,
            reconcile=look,
            retry=Retry(times=3, base=0.01, not_started=(ConnectionRefusedError,)),
        )
        async def post(n: int) -> int:
            calls.append(n)
            if len(calls) == 1:
                raise ConnectionRefusedError
            return n

        flow = workflow("w").then(post).commit()
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 1)).result(timeout=10) == 1
        assert (len(calls), looks) == (2, [])

    async def test_looking_has_the_time_limit_of_a_try(self, boot: Boot) -> None:
        started = asyncio.Event()

        async def look(key: str, value: int, ctx: StepContext) -> int | None:
            await asyncio.Event().wait()
            return None

        @step(effect=Effect.RECONCILE, reconcile=look, timeout=1.5)
        async def post(n: int) -> int:
            started.set()
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(post).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 1)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                with pytest.raises(RunFailedError, match="took longer"):
                    await (await second.run(run.id)).result(timeout=10)

    async def test_a_time_out_after_the_start_is_interrupted_not_failed(self, boot: Boot) -> None:
        @step(effect=Effect.IRREVERSIBLE, timeout=0.02)
        async def spend(n: int) -> int | Interrupted:
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(spend).commit()
        async with boot(flow) as engine:
            result = await (await engine.start(flow, 1)).result(timeout=10)
            assert isinstance(result, Interrupted)

    async def test_what_has_been_noted_is_known_to_the_next_try(self, boot: Boot) -> None:
        started, seen = asyncio.Event(), []

        @step(effect=READ)
        async def noting(n: int, ctx: StepContext) -> int:
            seen.append(ctx.noted("half"))
            if len(seen) == 1:
                await ctx.note("half", {"way": 1})
                started.set()
                await asyncio.Event().wait()
            return n

        flow = workflow("w").then(noting).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 1)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                await (await second.run(run.id)).result(timeout=10)
        assert seen == [None, {"way": 1}]

    async def test_a_compensation_that_is_run_again_has_the_same_idempotency_key(self, boot: Boot) -> None:
        started, keys = asyncio.Event(), []

        async def refund(n: int, ctx: StepContext) -> None:
            keys.append(ctx.idempotency_key)
            if len(keys) == 1:
                started.set()
                await asyncio.Event().wait()

        pay = step(id="pay", effect=Effect.IDEMPOTENT, compensate=refund)(_plus_one)
        flow = workflow("w").then(pay).then(boom).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 0)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                with pytest.raises(RunFailedError, match="no 1"):
                    await (await second.run(run.id)).result(timeout=10)
        assert len(keys) == 2
        assert len(set(keys)) == 1

    async def test_completed_steps_are_compensated_in_reverse_when_the_run_fails(self, boot: Boot) -> None:
        undone = []

        async def undo(n: int) -> None:
            undone.append(n)

        one = step(id="one", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        two = step(id="two", effect=Effect.IDEMPOTENT, compensate=undo)(_plus_one)
        flow = workflow("w").then(one).then(two).then(boom).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            with pytest.raises(RunFailedError, match="no 2"):
                await run.result(timeout=10)
            assert undone == [2, 1]
            assert [record.path for record in await run.steps()] == ["one", "two", "boom", "two!undo", "one!undo"]


async def _plus_one(n: int) -> int:
    return n + 1


async def test_a_note_under_a_name_of_the_engines_own_is_refused(boot: Boot) -> None:
    """A note called "intent" would else read as a step that was cut off."""

    @step(effect=READ)
    async def meddle(n: int, ctx: StepContext) -> int:
        await ctx.note("intent", n)
        return n

    flow = workflow("w").then(meddle).commit()
    async with boot(flow) as engine:
        with pytest.raises(RunFailedError, match="'intent'"):
            await (await engine.start(flow, 1)).result(timeout=10)


@pytest.mark.parametrize("looks_at", ["fence", "attempt"])
async def test_a_pure_step_that_looks_at_which_try_it_is_in_is_recorded(boot: Boot, looks_at: str) -> None:
    """It would compute something else when it is walked again, and take the run down another branch."""

    @step(effect=Effect.PURE)
    async def which(n: int, ctx: StepContext) -> int:
        result: int = getattr(ctx, looks_at)
        return result

    did: list[str] = []

    @step
    async def one(n: int) -> Any:
        did.append("one")
        return 1

    @step
    async def another(n: int) -> Any:
        did.append("another")
        return 2

    flow = workflow("w").then(which).branch((lambda n: n == 1, one), otherwise=another).wait_for("go", int).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        await in_state(engine, run.id, RunState.SUSPENDED)
        before = did.copy()
        await engine.signal(run.id, "go", 1)
        await run.result(timeout=10)
        assert "which" in [record.path for record in await run.steps()]
    assert (len(did), did) == (1, before)


async def test_an_idempotent_step_never_shows_two_values_under_one_key(boot: Boot) -> None:
    """What its input was made from is committed before it begins: whoever knows the key has the first value for ever."""
    started, seen = asyncio.Event(), list[tuple[str, str]]()

    @step(effect=Effect.PURE)
    async def stamp(n: int, ctx: StepContext) -> str:
        return (await ctx.now()).isoformat()

    @step(effect=Effect.IDEMPOTENT)
    async def post(at: str, ctx: StepContext) -> str:
        seen.append((ctx.idempotency_key, at))
        if len(seen) == 1:
            started.set()
            await asyncio.Event().wait()
        return at

    flow = workflow("w").then(stamp).then(post).commit()
    async with boot(flow) as first:
        run = await first.start(flow, 1)
        await started.wait()
        await kill(first)
        await move_clock(first, timedelta(minutes=1))
        async with boot(flow, lease_s=0.2) as second:
            result = await (await second.run(run.id)).result(timeout=10)
    assert len(seen) == 2
    assert {(key, at) for key, at in seen} == {(seen[0][0], result)}


class Panic(BaseException):
    """What extensions raise that are written in Rust."""


@pytest.mark.store_only("Temporal's own worker takes what is no exception for its end")
@pytest.mark.parametrize("looped", [False, True], ids=["in a step", "in a condition"])
async def test_what_is_no_exception_fails_the_run_once(boot: Boot, *, looped: bool) -> None:
    """Its task would end without a word, and the run would be given back and taken up again for ever."""
    calls, undone = list[int](), list[int]()

    async def undo(n: int) -> None:
        undone.append(n)

    @step(effect=Effect.IDEMPOTENT, compensate=undo)
    async def pay(n: int) -> int:
        return n

    @step(effect=READ)
    async def panics(n: int) -> int:
        calls.append(n)
        if looped:
            return n
        raise Panic("at the disco")

    def condition(n: int) -> bool:
        raise Panic("at the disco")

    begun = workflow("w").then(pay)
    flow = (begun.dowhile(panics, condition, max_iterations=2) if looped else begun.then(panics)).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        with pytest.raises(RunFailedError, match="at the disco"):
            await run.result(timeout=10)
    assert calls == [1]
    assert undone == ([] if looped else [1])
