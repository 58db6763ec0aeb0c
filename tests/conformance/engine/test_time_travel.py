"""Forks: another run from a point of an ended one, which itself is never changed."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom, double, increment
from tests.conformance.engines import Boot, in_state, kill, move_clock, until
from workflows import Effect, Run, RunFailedError, RunState, StepContext, step, workflow
from workflows.errors import InputError, StateError

pytestmark = pytest.mark.store_only("time travel, pausing and redriving work on the records of a store")


class Till:
    """Counts what was charged and refunded."""

    def __init__(self) -> None:
        self.charged: list[int] = []
        self.refunded: list[int] = []

    async def charge(self, n: int) -> int:
        self.charged.append(n)
        return n

    async def refund(self, n: int) -> None:
        self.refunded.append(n)

    def step(self, effect: Effect = Effect.IRREVERSIBLE) -> Any:
        return step(id="charge", effect=effect, compensate=self.refund)(self.charge)


async def steps_of(run: Run[Any]) -> list[str]:
    return [record.path for record in await run.steps() if not set(record.path) & set("!~@")]


async def asks(run: Run[Any], path: str) -> bool:
    return [each.path for each in await run.suspensions()] == [path]


async def test_it_goes_on_from_before_the_step_with_another_input(boot: Boot) -> None:
    flow = workflow("w").then(double).then(increment).then(double.named("again")).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        assert await run.result(timeout=10) == 6
        before = await run.steps()
        fork = await run.time_travel("increment", input=10)
        assert await fork.result(timeout=10) == 22
        assert await run.result() == 6
        assert await run.steps() == before
        row = await fork.row()
        assert (row.forked_from, row.forked_seq, row.key) == (run.id, 2, None)


async def test_without_another_input_it_runs_the_same_again(boot: Boot) -> None:
    seen: list[int] = []

    @step(effect=READ)
    async def look(n: int) -> int:
        seen.append(n)
        return n + len(seen)

    flow = workflow("w").then(double).then(look).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 5)
        assert await run.result(timeout=10) == 11
        assert await (await run.time_travel("look")).result(timeout=10) == 12
        assert seen == [10, 10]


async def test_from_the_very_start_with_another_input(boot: Boot) -> None:
    flow = workflow("w").then(double).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await run.result(timeout=10)
        assert await (await run.time_travel(input=7)).result(timeout=10) == 14


async def test_into_a_loop_a_nested_workflow_and_an_item(boot: Boot) -> None:
    inner = workflow("inner").then(increment).commit()
    flow = (
        workflow("w").dowhile(inner, lambda n: n < 3, max_iterations=10).map(lambda n: [n, n]).foreach(double).commit()
    )
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        assert await run.result(timeout=10) == [6, 6]
        assert await (await run.time_travel("inner#3/increment", input=9)).result(timeout=10) == [20, 20]
        assert await (await run.time_travel("inner#3", input=1)).result(timeout=10) == [6, 6]
        assert await (await run.time_travel("double[1]", input=50)).result(timeout=10) == [6, 100]


async def test_a_failed_run_is_taken_up_from_before_its_failure(boot: Boot) -> None:
    flow = workflow("w").then(double).then(boom.named("check")).commit()
    mended = workflow("w").then(double).then(increment.named("check")).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        with pytest.raises(RunFailedError):
            await run.result(timeout=10)
    async with boot(mended) as engine:
        fork = await (await engine.run(run.id)).time_travel("check")
        assert await fork.result(timeout=10) == 3


class TestEffects:
    async def test_what_happened_on_the_same_input_does_not_happen_again(self, boot: Boot) -> None:
        till = Till()
        flow = workflow("w").then(double).then(till.step()).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 2)
            assert await run.result(timeout=10) == 5
            fork = await run.time_travel("double", input=2)
            assert await fork.result(timeout=10) == 5
            assert till.charged == [4]

    async def test_on_another_input_an_operator_decides_to_run_it(self, boot: Boot) -> None:
        till = Till()
        flow = workflow("w").then(double).then(till.step()).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 2)
            await run.result(timeout=10)
            fork = await run.time_travel("double", input=3)
            await until(lambda: asks(fork, "charge!fork"))
            assert till.charged == [4]
            await fork.resume({"action": "run"})
            assert await fork.result(timeout=10) == 7
            assert till.charged == [4, 6]

    async def test_or_to_use_a_result_of_their_own(self, boot: Boot) -> None:
        till = Till()
        flow = workflow("w").then(double).then(till.step()).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 2)
            await run.result(timeout=10)
            fork = await run.time_travel("double", input=3)
            await until(lambda: asks(fork, "charge!fork"))
            with pytest.raises(InputError):
                await fork.resume({"action": "perhaps"})
            await fork.resume({"action": "use", "output": 100})
            assert await fork.result(timeout=10) == 101
            assert till.charged == [4]

    async def test_what_was_undone_is_not_taken_for_done(self, boot: Boot) -> None:
        till = Till()
        flow = workflow("w").then(till.step()).then(boom).commit()
        mended = workflow("w").then(till.step()).then(increment.named("boom")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 5)
            await in_state(engine, run.id, RunState.FAILED)
            assert (till.charged, till.refunded) == ([5], [5])
        async with boot(mended) as engine:
            fork = await (await engine.run(run.id)).time_travel("boom")
            await until(lambda: asks(fork, "charge!fork"))
            await fork.resume({"action": "run"})
            assert await fork.result(timeout=10) == 6
            assert till.charged == [5, 5]

    async def test_a_fork_that_fails_undoes_only_what_it_did_itself(self, boot: Boot) -> None:
        till = Till()
        flow = workflow("w").then(till.step()).then(double).commit()
        broken = workflow("w").then(till.step()).then(boom.named("double")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 5)
            await run.result(timeout=10)
        async with boot(broken) as engine:
            for path in ("double", "charge"):  # the record is copied, then taken from the source
                fork = await (await engine.run(run.id)).time_travel(path)
                await in_state(engine, fork.id, RunState.FAILED)
            assert (till.charged, till.refunded) == ([5], [])

    async def test_signals_used_after_the_cut_are_unread_in_the_fork(self, boot: Boot) -> None:
        @step(effect=READ)
        async def drain(n: int, ctx: StepContext) -> list[str]:
            return [signal.payload.decode() for signal in await ctx.signals.drain("note") if signal.payload]

        flow = workflow("w").wait_for("go", int).then(double).then(drain).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.signal(run.id, "note", "hello")
            await engine.signal(run.id, "go", 1)
            assert await run.result(timeout=10) == ['"hello"']
            assert await (await run.time_travel("double")).result(timeout=10) == ['"hello"']
            assert await (await run.time_travel()).result(timeout=10) == ['"hello"']

    async def test_a_fork_of_a_fork_asks_the_operator_again(self, boot: Boot) -> None:
        """What was decided for one value says nothing about another."""
        till = Till()
        flow = workflow("w").then(double).then(till.step()).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await run.result(timeout=10)
            first = await run.time_travel("double", input=2)
            await until(lambda: asks(first, "charge!fork"))
            await first.resume({"action": "run"})
            assert await first.result(timeout=10) == 4
            second = await first.time_travel("double", input=50)
            await until(lambda: asks(second, "charge!fork"))
            assert till.charged == [2, 4]

    async def test_a_fork_of_a_run_that_failed_in_a_map_asks(self, boot: Boot) -> None:
        """The run never came to the step behind it; that it is new makes it no less of an effect."""

        def positive(n: int) -> int:
            if n <= 0:
                raise ValueError("not positive")
            return n

        till = Till()
        flow = workflow("w").then(double).map(positive).then(till.step()).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            await in_state(engine, run.id, RunState.FAILED)
            fork = await run.time_travel("double", input=2)
            await until(lambda: asks(fork, "charge!fork"))
            assert till.charged == []
            await fork.resume({"action": "run"})
            assert await fork.result(timeout=10) == 4

    async def test_a_decision_that_does_not_fit_is_refused_and_the_question_stays(self, boot: Boot) -> None:
        till = Till()
        flow = workflow("w").then(double).then(till.step(Effect.IDEMPOTENT)).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await run.result(timeout=10)
            fork = await run.time_travel("double", input=1000)
            await until(lambda: asks(fork, "charge!fork"))
            with pytest.raises(InputError):
                await fork.resume({"action": "use", "output": "no number"})
            assert await asks(fork, "charge!fork")
            await fork.resume({"action": "use", "output": 5})
            assert await fork.result(timeout=10) == 5
            assert till.charged == [2]

    async def test_one_that_is_taken_from_the_source_keeps_the_state_it_set(self, boot: Boot) -> None:
        @step(effect=Effect.IDEMPOTENT)
        async def book(n: int, ctx: StepContext) -> int:
            ctx.set_state(booked=n)
            return n

        flow = workflow("w").then(double).then(book).map(lambda n, state: state.get("booked")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            assert await run.result(timeout=10) == 2
            fork = await run.time_travel("double")
            assert await fork.result(timeout=10) == 2
            assert (await fork.state_at()).state == {"booked": 2}


class TestAnEffectOfUnknownOutcome:
    """It began in the source, which died before it was recorded."""

    async def _forked(self, boot: Boot, *, then: Any) -> None:
        entered, ran = asyncio.Event(), list[int]()

        @step
        async def charge(n: int) -> Any:
            ran.append(n)
            if len(ran) == 1:
                entered.set()
                await asyncio.Event().wait()
            return n

        @step(effect=READ)
        async def other(n: int) -> int:
            await entered.wait()
            return n

        flow = workflow("w").parallel(charge, workflow("arm").then(other).then(other.named("and")).commit()).commit()
        async with boot(flow) as first:
            run = await first.start(flow, 1)
            await until(lambda: _recorded(run, "arm/and"))
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            await first.store.reap()
            await first.store.register("lost", host="h", deployment="", lease=timedelta(minutes=1))
            (row,) = await first.store.claim("lost", queues=["default"], workflows=[("w", "1")], limit=1)
            await first.store.end(run.id, row.fence, RunState.DEAD, inbox_seen=row.inbox_seq, successor_id="s")
            async with boot(flow) as second:
                await then(await (await second.run(run.id)).time_travel("arm/other", input=5), ran)

    async def test_an_operator_is_told_that_it_began(self, boot: Boot) -> None:
        async def told(fork: Run[Any], ran: list[int]) -> None:
            await until(lambda: asks(fork, "charge!fork"))
            (question,) = await fork.suspensions()
            assert question.payload["source"]["status"] != "never reached"
            assert ran == [1]

        await self._forked(boot, then=told)

    async def test_and_told_to_run_it_the_fork_runs_it(self, boot: Boot) -> None:
        async def run_it(fork: Run[Any], ran: list[int]) -> None:
            await until(lambda: asks(fork, "charge!fork"))
            await fork.resume({"action": "run"})
            assert await fork.result(timeout=10) == {"charge": 1, "arm": 5}
            assert ran == [1, 1]

        await self._forked(boot, then=run_it)


class TestAnswers:
    """An answer was given to a question about one value; a fork has another."""

    async def test_those_to_an_effect_are_not_given_to_its_fork(self, boot: Boot) -> None:
        paid: list[int] = []

        @step
        async def pay(n: int, ctx: StepContext) -> Any:
            if await ctx.suspend({"pay": n}, resume=bool):
                paid.append(n)
            return n

        flow = workflow("w").then(double).then(pay).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await until(lambda: asks(run, "pay"))
            await run.resume(True)
            await run.result(timeout=10)
            fork = await run.time_travel("double", input=1000)
            await until(lambda: asks(fork, "pay!fork"))
            await fork.resume({"action": "run"})
            await until(lambda: asks(fork, "pay"))
            assert [each.payload for each in await fork.suspensions()] == [{"pay": 2000}]
            assert paid == [2]
            await fork.resume(False)
            assert await fork.result(timeout=10) == 2000
            assert paid == [2]

    async def test_nor_those_to_a_step_that_reads(self, boot: Boot) -> None:
        @step(effect=READ)
        async def approve(n: int, ctx: StepContext) -> int:
            return n if await ctx.suspend({"spend": n}, resume=bool) else 0

        flow = workflow("w").then(double).then(approve).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await until(lambda: asks(run, "approve"))
            await run.resume(True)
            assert await run.result(timeout=10) == 2
            fork = await run.time_travel("double", input=1000)
            await until(lambda: asks(fork, "approve"))
            assert [each.payload for each in await fork.suspensions()] == [{"spend": 2000}]
            await fork.resume(False)
            assert await fork.result(timeout=10) == 0


async def test_a_fork_of_a_fork_keeps_the_input_the_first_was_given(boot: Boot) -> None:
    seen: list[int] = []

    @step(effect=READ)
    async def look(n: int) -> int:
        seen.append(n)
        return n

    flow = workflow("w").then(double).then(look).then(increment).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        assert await run.result(timeout=10) == 3
        first = await run.time_travel("look", input=100)
        assert await first.result(timeout=10) == 101
        assert await (await first.time_travel("look")).result(timeout=10) == 101
        assert await (await first.time_travel("increment")).result(timeout=10) == 101
    assert seen == [2, 100, 100]


async def test_a_pure_step_without_a_record_is_computed_again_whatever_it_told(boot: Boot) -> None:
    @step(effect=Effect.PURE)
    async def chatty(n: int, ctx: StepContext) -> int:
        await ctx.emit("token", text="x")
        ctx.log.debug("told")
        return n + ctx.random().randrange(1) + int(ctx.cancelled)

    till = Till()
    flow = workflow("w").then(chatty).then(double).then(till.step()).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 2)
        assert await run.result(timeout=10) == 4
        assert await (await run.time_travel("double", input=2)).result(timeout=10) == 4
        assert till.charged == [4]


class TestRefusals:
    async def test_a_live_run(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", int).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            with pytest.raises(StateError, match="only an ended run"):
                await run.time_travel()

    async def test_a_step_it_never_came_to(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await run.result(timeout=10)
            with pytest.raises(StateError, match=r"never came to 'nowhere'.*double"):
                await run.time_travel("nowhere")

    async def test_an_input_of_the_wrong_type(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await run.result(timeout=10)
            with pytest.raises(InputError, match="the input of double"):
                await run.time_travel("double", input="many")

    async def test_another_tenants_run(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, tenant="T1")
            await run.result(timeout=10)
            stranger: Run[Any] = Run(engine.execution.runs, engine.pubsub, run.id, tenant="T2")
            with pytest.raises(StateError):
                await stranger.time_travel()


class TestOneStepAtATime:
    async def test_a_paused_run_takes_one_step_for_each_it_is_told_to(self, boot: Boot) -> None:
        flow = workflow("w").then(double).then(increment).then(double.named("again")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, paused=True)
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert await steps_of(run) == []
            await run.step_once(timeout=10)
            assert await steps_of(run) == ["double"]
            await run.step_once(timeout=10)
            assert await steps_of(run) == ["double", "increment"]
            await run.step_once(timeout=10)
            assert await run.result(timeout=10) == 6

    async def test_it_may_be_let_go(self, boot: Boot) -> None:
        flow = workflow("w").then(double).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, paused=True)
            await run.step_once(timeout=10)
            await run.go_on()
            assert await run.result(timeout=10) == 3

    async def test_a_fork_may_be_paused(self, boot: Boot) -> None:
        flow = workflow("w").then(double).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await run.result(timeout=10)
            fork = await run.time_travel("increment", input=5, paused=True)
            await in_state(engine, fork.id, RunState.SUSPENDED)
            await fork.step_once(timeout=10)
            assert await fork.result(timeout=10) == 6

    async def test_a_pure_step_is_a_step(self, boot: Boot) -> None:
        @step(effect=Effect.PURE)
        async def pure(n: int) -> int:
            return n + 1

        flow = workflow("w").then(pure).then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, paused=True)
            await run.step_once(timeout=10)
            assert "double" not in await steps_of(run)
            await run.step_once(timeout=10)
            assert await run.result(timeout=10) == 4

    async def test_it_returns_when_the_step_asks(self, boot: Boot) -> None:
        @step(effect=READ)
        async def ask(n: int, ctx: StepContext) -> int:
            return n + await ctx.suspend("?", resume=int)

        flow = workflow("w").then(ask).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, paused=True)
            await run.step_once(timeout=10)
            assert await asks(run, "ask")

    async def test_arms_take_turns(self, boot: Boot) -> None:
        flow = workflow("w").parallel(double.named("a"), double.named("b")).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, paused=True)
            await run.step_once(timeout=10)
            assert len(await steps_of(run)) == 1
            await run.step_once(timeout=10)
            assert await run.result(timeout=10) == {"a": 2, "b": 2}

    async def test_a_run_that_is_not_paused_says_so(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", int).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            with pytest.raises(StateError, match="paused=True"):
                await run.step_once()


class TestRedrive:
    async def _dead(self, boot: Boot, *, key: str | None) -> tuple[Any, Run[Any]]:
        flow = workflow("w", max_attempts=1).then(double).then(increment).commit()
        async with boot(flow, worker=False) as engine:
            run = await engine.start(flow, 1, key=key)
            await engine.store.register("lost", host="h", deployment="", lease=timedelta(seconds=-1))
            (row,) = await engine.store.claim("lost", queues=["default"], workflows=[("w", "1")], limit=1)
            (dead,) = (await engine.store.reap()).dead
            ended = await engine.store.end(
                row.run_id, dead.fence, RunState.DEAD, inbox_seen=dead.inbox_seq, successor_id="s"
            )
            assert ended.ended
        return flow, run

    async def test_a_dead_run_goes_on_from_its_last_record(self, boot: Boot) -> None:
        flow, run = await self._dead(boot, key=None)
        async with boot(flow) as engine:
            again = await engine.run(run.id)
            with pytest.raises(RunFailedError, match="dead"):
                await again.result(timeout=5)
            await again.redrive()
            assert await again.result(timeout=10) == 3
            with pytest.raises(StateError, match="done, not dead"):
                await again.redrive()

    async def test_one_that_was_asked_to_stop_before_it_died_can_be_asked_again(self, boot: Boot) -> None:
        flow = workflow("w", max_attempts=1).wait_for("go", int).commit()
        async with boot(flow, worker=False) as engine:
            run = await engine.start(flow, None)
            await engine.store.register("lost", host="h", deployment="", lease=timedelta(seconds=-1))
            await engine.store.claim("lost", queues=["default"], workflows=[("w", "1")], limit=1)
            assert await run.cancel()
            (dead,) = (await engine.store.reap()).dead
            seen = (await run.row()).inbox_seq
            await engine.store.end(run.id, dead.fence, RunState.DEAD, inbox_seen=seen, successor_id="s")
            await run.redrive()
        async with boot(flow) as engine:
            again = await engine.run(run.id)
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert await again.cancel()
            with pytest.raises(RunFailedError, match="cancelled"):
                await again.result(timeout=10)

    async def test_it_is_refused_while_its_thread_has_a_live_run_and_names_it(self, boot: Boot) -> None:
        flow, run = await self._dead(boot, key="thread")
        async with boot(flow, worker=False) as engine:
            live = await engine.start(flow, 5, key="thread")
            with pytest.raises(StateError, match=live.id):
                await (await engine.run(run.id)).redrive()

    async def test_two_operators_at_once_put_it_back_once(self, boot: Boot) -> None:
        flow, run = await self._dead(boot, key="thread")
        async with boot(flow, worker=False) as engine:
            again = await engine.run(run.id)
            outcomes = await asyncio.gather(*(again.redrive() for _ in range(4)), return_exceptions=True)
            assert sum(outcome is None for outcome in outcomes) == 1, outcomes

    async def test_one_that_fails_then_is_told_of_again(self, boot: Boot) -> None:
        """The run ended a second time, and otherwise than the first."""
        entered, told = asyncio.Event(), list[str]()

        @step(effect=READ)
        async def tell(end: dict[str, Any]) -> int:
            told.append(end["state"])
            return 1

        @step(effect=READ)
        async def work(n: int) -> int:
            if not entered.is_set():
                entered.set()
                await asyncio.Event().wait()
            raise ValueError("no")

        notice = workflow("notice").then(tell).commit()
        flow = workflow("w", on_failure="notice", max_attempts=1).then(work).commit()
        async with boot(flow, notice) as first:
            run = await first.start(flow, 1)
            await entered.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(flow, notice, lease_s=0.2) as second:
                await until(lambda: _told(told, ["dead"]))
                await (await second.run(run.id)).redrive()
                await until(lambda: _told(told, ["dead", "failed"]))


async def _told(told: list[str], wanted: list[str]) -> bool:
    return told == wanted


async def _recorded(run: Run[Any], path: str) -> bool:
    return path in [record.path for record in await run.steps()]


class TestSnapshots:
    async def test_the_state_at_a_record_is_the_fold_up_to_it(self, boot: Boot) -> None:
        @step(effect=READ)
        async def note(n: int, ctx: StepContext) -> int:
            ctx.set_state(n=n)
            return n

        flow = workflow("w").then(double).then(note).wait_for("go", int).then(boom).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 2)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.signal(run.id, "go", 9)
            await in_state(engine, run.id, RunState.FAILED)
            first = await run.state_at(1)
            assert (first.seq, first.outputs, first.state) == (1, {"double": 4}, {})
            last = await run.state_at()
            assert last.outputs == {"double": 4, "note": 4, "wait-go-2": 9}
            assert last.state == {"n": 4}
            assert last.failures["boom"]["message"] == "no 9"
            assert (await run.state_at(0)).outputs == {}
