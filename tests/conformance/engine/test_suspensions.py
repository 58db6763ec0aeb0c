"""Steps that ask and wait for an answer: alone, several times, in arms, loops, items and nested workflows."""

import asyncio
from datetime import date
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from tests.conformance.engine.steps import READ, boom, double, increment
from tests.conformance.engines import Boot, in_state, until
from workflows import Effect, Engine, Interrupted, Run, RunState, StepContext, step, workflow
from workflows.errors import AlreadyResumedError, InputError, RunFailedError, StateError


class Verdict(BaseModel):
    approved: bool
    by: str
    until: date | None = None


@step(effect=READ)
async def ask(n: int, ctx: StepContext) -> int:
    return n + await ctx.suspend({"n": n}, resume=int)


@step(effect=READ)
async def ask_twice(n: int, ctx: StepContext) -> int:
    first = await ctx.suspend("first", resume=int)
    second = await ctx.suspend("second", resume=int)
    return n + 10 * first + second


@step(effect=READ)
async def judge(n: int, ctx: StepContext) -> str:
    verdict = await ctx.suspend({"n": n}, resume=Verdict)
    return f"{verdict.by}: {verdict.approved}"


async def waits_at(run: Run[Any], *paths: str) -> None:
    async def there() -> bool:
        return sorted(each.path for each in await run.suspensions()) == sorted(paths)

    await until(there)


async def waits_for(run: Run[Any], path: str, number: int) -> None:
    async def there() -> bool:
        return [(each.path, each.number) for each in await run.suspensions()] == [(path, number)]

    await until(there)


async def asleep(engine: Engine, run: Run[Any]) -> None:
    await in_state(engine, run.id, RunState.SUSPENDED)


class TestOneStep:
    async def test_two_suspensions_of_one_step_are_answered_one_after_the_other(self, boot: Boot) -> None:
        flow = workflow("w").then(ask_twice).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await waits_for(run, "ask-twice", 0)
            assert [each.payload for each in await run.suspensions()] == ["first"]
            await run.resume(2)
            await waits_for(run, "ask-twice", 1)
            assert [each.payload for each in await run.suspensions()] == ["second"]
            await run.resume(3)
            assert await run.result(timeout=10) == 24

    async def test_a_late_copy_of_the_first_answer_is_no_answer_to_the_second_question(self, boot: Boot) -> None:
        flow = workflow("w").then(ask_twice).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            await waits_for(run, "ask-twice", 0)
            await run.resume(2, path="ask-twice", number=0)
            await waits_for(run, "ask-twice", 1)
            await run.resume(2, path="ask-twice", number=0)
            with pytest.raises(AlreadyResumedError):
                await run.resume(9, path="ask-twice", number=0)
            await waits_for(run, "ask-twice", 1)
            await run.resume(5, number=1)
            assert await run.result(timeout=10) == 25

    async def test_another_worker_takes_the_answer(self, boot: Boot) -> None:
        flow = workflow("w").then(double).then(ask_twice).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await waits_for(run, "ask-twice", 0)
            await run.resume(1)
            await waits_for(run, "ask-twice", 1)
        async with boot(flow) as engine:
            again = await engine.run(run.id)
            await again.resume(2)
            assert await again.result(timeout=10) == 15

    async def test_an_answer_that_does_not_fit_is_refused_at_the_door_and_the_question_stays(self, boot: Boot) -> None:
        flow = workflow("w").then(judge).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await waits_at(run, "judge")
            with pytest.raises(InputError, match=r"judge.*approved"):
                await run.resume({"by": "U1"})
            await run.resume(Verdict(approved=True, by="U1"))
            assert await run.result(timeout=10) == "U1: True"

    async def test_an_answer_only_the_type_itself_can_refuse_is_refused_by_the_step(self, boot: Boot) -> None:
        """JSON schema lets any string pass for a date; the run says why it did not take it, and asks on."""
        flow = workflow("w").then(judge).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await waits_at(run, "judge")
            await run.resume({"approved": True, "by": "U1", "until": "the day after tomorrow"})

            async def refused() -> bool:
                return [each.refusals for each in await run.suspensions()] == [1]

            await until(refused)
            (waiting,) = await run.suspensions()
            assert waiting.refused is not None
            assert "until" in waiting.refused
            await run.resume({"approved": False, "by": "U2", "until": "2026-12-01"})
            assert await run.result(timeout=10) == "U2: False"

    async def test_an_irreversible_step_may_ask_before_it_acts(self, boot: Boot) -> None:
        spent: list[int] = []

        @step(effect=Effect.IRREVERSIBLE)
        async def pay(n: int, ctx: StepContext) -> int | Interrupted:
            amount = await ctx.suspend({"max": n}, resume=int)
            spent.append(amount)
            return amount

        flow = workflow("w").then(pay).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 100)
            await waits_at(run, "pay")
            await engine.signal(run.id, "something-else", 1)
            await asleep(engine, run)
            await run.resume(40)
            assert await run.result(timeout=10) == 40
            assert spent == [40]

    async def test_five_answers_at_once_have_one_winner_and_its_repeat_is_accepted(self, boot: Boot) -> None:
        flow = workflow("w").then(ask_twice).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            for number in (0, 1):
                await waits_for(run, "ask-twice", number)
                outcomes = await asyncio.gather(
                    *(run.resume(n, path="ask-twice", number=number) for n in range(5)), return_exceptions=True
                )
                assert sum(outcome is None for outcome in outcomes) == 1, outcomes
                assert sum(isinstance(outcome, AlreadyResumedError) for outcome in outcomes) == 4, outcomes
                winner = outcomes.index(None)
                await run.resume(winner, path="ask-twice", number=number)

    async def test_another_tenant_can_neither_see_nor_answer(self, boot: Boot) -> None:
        flow = workflow("w").then(ask).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, tenant="T1")
            await waits_at(run, "ask")
            stranger: Run[Any] = Run(engine.execution.runs, engine.pubsub, run.id, tenant="T2")
            with pytest.raises(StateError):
                await stranger.suspensions()
            with pytest.raises(StateError):
                await stranger.resume(1, path="ask")
            await run.resume(1)
            assert await run.result(timeout=10) == 2

    async def test_an_ended_run_takes_no_answer(self, boot: Boot) -> None:
        flow = workflow("w").then(ask).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await waits_at(run, "ask")
            await run.cancel()
            await in_state(engine, run.id, RunState.CANCELLED)
            with pytest.raises(StateError, match="has ended"):
                await run.resume(1, path="ask")


class TestEverywhere:
    async def test_arms_over_several_rounds_in_any_order(self, boot: Boot) -> None:
        a, b = ask_twice.named("a"), ask_twice.named("b")
        flow = workflow("w").then(double).parallel(a, b, double.named("c")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            await waits_at(run, "a", "b")
            await run.resume(1, path="b")
            await until(lambda: _numbers(run, {"a": 0, "b": 1}))
            await run.resume(2, path="b")
            await waits_at(run, "a")
            await run.resume(3, path="a")
            await waits_for(run, "a", 1)
            await run.resume(4, path="a")
            assert await run.result(timeout=10) == {"a": 34, "b": 12, "c": 0}

    async def test_which_of_several_must_be_said(self, boot: Boot) -> None:
        flow = workflow("w").then(double).parallel(ask.named("a"), ask.named("b")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            await waits_at(run, "a", "b")
            with pytest.raises(StateError, match=r"\['a', 'b'\].*path="):
                await run.resume(1)

    async def test_both_answers_at_once(self, boot: Boot) -> None:
        flow = workflow("w").then(double).parallel(ask.named("a"), ask.named("b")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            await waits_at(run, "a", "b")
            await asyncio.gather(run.resume(1, path="a"), run.resume(2, path="b"))
            assert await run.result(timeout=10) == {"a": 1, "b": 2}

    async def test_items_of_a_list(self, boot: Boot) -> None:
        flow = workflow("w").map(lambda n: list(range(n))).foreach(ask, concurrency=3).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 3)
            await waits_at(run, "ask[0]", "ask[1]", "ask[2]")
            for n in (2, 0, 1):
                await run.resume(100 * n, path=f"ask[{n}]")
            assert await run.result(timeout=10) == [0, 101, 202]

    async def test_one_item_after_another(self, boot: Boot) -> None:
        flow = workflow("w").map(lambda n: list(range(n))).foreach(ask).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 2)
            for n in range(2):
                await until(partial(_asks, run, f"ask[{n}]"))
                await run.resume(7, path=f"ask[{n}]")
            assert await run.result(timeout=10) == [7, 8]

    async def test_each_round_of_a_loop(self, boot: Boot) -> None:
        flow = workflow("w").dowhile(ask, lambda n: n < 6, max_iterations=5).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            for count in (1, 2, 3):
                await waits_at(run, f"ask#{count}")
                await run.resume(2)
            assert await run.result(timeout=10) == 6

    async def test_in_a_nested_and_a_doubly_nested_workflow(self, boot: Boot) -> None:
        inner = workflow("inner").then(ask).commit()
        middle = workflow("middle").then(double).then(inner).commit()
        flow = workflow("outer").then(ask.named("first")).then(middle).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await waits_at(run, "first")
            await run.resume(1)
            await waits_at(run, "middle/inner/ask")
            await run.resume(10)
            assert await run.result(timeout=10) == 14

    async def test_a_suspended_arm_does_not_run_the_finished_ones_again(self, boot: Boot) -> None:
        ran: list[int] = []

        @step(effect=READ)
        async def once(n: int) -> int:
            ran.append(n)
            return n

        flow = workflow("w").then(double).parallel(ask, once).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await waits_at(run, "ask")
            await asleep(engine, run)
            await run.resume(1)
            assert await run.result(timeout=10) == {"ask": 3, "once": 2}
            assert ran == [2]

    async def test_a_failing_arm_fails_the_run_although_another_waits(self, boot: Boot) -> None:
        @step(effect=READ)
        async def fail(n: int) -> int:
            raise ValueError("no")

        flow = workflow("w").then(double).parallel(ask, fail).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.FAILED)


class TestSignalsThatDoNotFit:
    async def test_a_waiting_run_refuses_them_and_waits_on(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", int).then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await asleep(engine, run)
            await engine.signal(run.id, "go", {"not": "a number"})

            async def refused() -> bool:
                return any(record.path.startswith("wait-go-0!refused") for record in await run.steps())

            await until(refused)
            await engine.signal(run.id, "go", 4)
            assert await run.result(timeout=10) == 8


class TakenMeanwhile:
    """Reads of storage whose reader is slow: until it has the inbox, the run has taken what was in there."""

    def __init__(self, runs: Any) -> None:
        self._runs = runs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def inbox(self, run_id: str) -> Any:
        async def taken() -> bool:
            return not await self._runs.inbox(run_id)

        await until(taken)
        return await self._runs.inbox(run_id)


@pytest.mark.store_only("its records and its inbox are two reads of a store")
async def test_a_question_that_was_answered_is_not_shown_as_open(boot: Boot) -> None:
    """Also when the run takes the answer between the reads of who looks."""
    flow = workflow("w").then(ask).then(double).wait_for("never", int).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await waits_at(run, "ask")
        await asleep(engine, run)
        looking: Run[Any] = Run(TakenMeanwhile(engine.execution.runs), engine.pubsub, run.id, tenant="default")
        await run.resume(1)
        assert await looking.suspensions() == []


async def _numbers(run: Run[Any], wanted: dict[str, int]) -> bool:
    return {each.path: each.number for each in await run.suspensions()} == wanted


async def _asks(run: Run[Any], path: str) -> bool:
    return path in {each.path for each in await run.suspensions()}


async def test_a_run_that_ended_while_an_arm_waited_asks_for_nothing_any_more(boot: Boot) -> None:
    @step(effect=READ)
    async def ask(n: int, ctx: StepContext) -> int:
        answer: int = await ctx.suspend("?", resume=int)
        return answer

    flow = workflow("w").parallel(ask, boom).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        with pytest.raises(RunFailedError):
            await run.result(timeout=10)
        assert await run.suspensions() == []
        with pytest.raises(StateError):
            await run.resume(1, path="ask")


@pytest.mark.store_only("an activity asks one thing and is over")
async def test_what_a_step_asks_at_once_is_asked_one_after_the_other(boot: Boot) -> None:
    """Only the last question of a step is open: of two that were open at once, the first could never be answered."""

    @step(effect=READ)
    async def ask(n: int, ctx: StepContext) -> list[int]:
        return list(await asyncio.gather(ctx.suspend("a", resume=int), ctx.suspend("b", resume=int)))

    flow = workflow("w").then(ask).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        for number, question in enumerate("ab"):
            await until(partial(_open_is, run, question))
            await run.resume(number, number=number)
        assert await run.result(timeout=10) == [0, 1]


async def _open_is(run: Run[Any], question: str) -> bool:
    return [each.payload for each in await run.suspensions()] == [question]
