"""What the engine promises of every operation: one suite, every store."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from tests.conformance.engines import Boot, in_state, kill, until
from workflows import (
    Effect,
    Engine,
    Interrupted,
    Retry,
    RunFailedError,
    RunState,
    StepContext,
    Workflow,
    step,
    workflow,
)
from workflows.errors import (
    AlreadyResumedError,
    BoundaryError,
    DefinitionError,
    InputError,
    IterationLimitError,
    RunNotFoundError,
    StateError,
)

READ = Effect.READ


class Order(BaseModel):
    item: str
    amount: int


@step(effect=READ)
async def double(n: int) -> int:
    return n * 2


@step(effect=READ)
async def increment(n: int) -> int:
    return n + 1


@step(effect=READ)
async def boom(n: int) -> int:
    raise ValueError(f"no {n}")


class TestSequence:
    async def test_steps_run_in_order_and_the_result_is_typed(self, boot: Boot) -> None:
        flow = workflow("w").then(double).then(increment).map(lambda n: n * 10).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 3)
            assert await run.result(timeout=10) == 70
            assert [record.path for record in await run.steps()] == ["double", "increment"]

    async def test_a_nested_workflow_has_records_of_its_own(self, boot: Boot) -> None:
        inner = workflow("inner").then(double).then(increment).commit()
        outer = workflow("outer").then(increment).then(inner).commit()
        async with boot(outer) as engine:
            run = await engine.start(outer, 1)
            assert await run.result(timeout=10) == 5
            assert [record.path for record in await run.steps()] == ["increment", "inner/double", "inner/increment"]

    async def test_pydantic_models_cross_boundaries_and_storage(self, boot: Boot) -> None:
        @step(effect=READ)
        async def price(order: Order) -> Order:
            return order.model_copy(update={"amount": order.amount * 2})

        flow = workflow("w").then(price).commit()
        async with boot(flow) as engine:
            assert await (await engine.start(flow, Order(item="tent", amount=2))).result(timeout=10) == Order(
                item="tent", amount=4
            )

    async def test_a_wrong_input_is_refused_before_anything_is_stored(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow) as engine:
            with pytest.raises(InputError, match="int"):
                await engine.start(flow, "three")
            assert await engine.runs(tenant="default") == []

    async def test_a_wrong_output_fails_the_run_and_names_the_step(self, boot: Boot) -> None:
        @step(effect=READ)
        async def lies(n: int) -> int:
            return "no number"  # type: ignore[return-value]

        flow = workflow("w").then(lies).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match="lies"):
                await (await engine.start(flow, 1)).result(timeout=10)

    async def test_a_failure_is_stored_as_a_value_without_a_traceback(self, boot: Boot) -> None:
        flow = workflow("w").then(boom).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 7)
            with pytest.raises(RunFailedError, match="ValueError: no 7"):
                await run.result(timeout=10)
            (record,) = await run.steps()
            assert record.error is not None
            assert (record.error["type"], record.error["message"]) == ("ValueError", "no 7")
            assert "Traceback" not in str(record.error)

    async def test_the_same_key_is_one_live_run(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", int).commit()
        async with boot(flow) as engine:
            first, second = await engine.start(flow, None, key="k"), await engine.start(flow, None, key="k")
            assert first.id == second.id

    async def test_another_tenants_run_is_not_found(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, tenant="T1")
            with pytest.raises(RunNotFoundError):
                await engine.run(run.id, tenant="T2")


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


class TestBranchAndLoops:
    async def test_the_first_true_arm_runs(self, boot: Boot) -> None:
        flow = (
            workflow("w")
            .then(double)
            .branch((lambda n: n > 5, increment), (lambda n: n > 1, boom), otherwise=double.named("again"))
            .commit()
        )
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 3)).result(timeout=10) == 7
            assert await (await engine.start(flow, 0)).result(timeout=10) == 0

    async def test_mode_all_runs_every_true_arm(self, boot: Boot) -> None:
        flow = (
            workflow("w")
            .then(double)
            .branch((lambda n: n > 1, increment), (lambda n: n > 2, double.named("twice")), mode="all")
            .commit()
        )
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 2)).result(timeout=10) == {"increment": 5, "twice": 8}

    async def test_no_arm_and_no_otherwise_is_a_clear_error(self, boot: Boot) -> None:
        flow = workflow("w").then(double).branch((lambda n: n > 99, increment)).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match="no condition held"):
                await (await engine.start(flow, 1)).result(timeout=10)

    async def test_dowhile_runs_at_least_once_and_counts(self, boot: Boot) -> None:
        flow = workflow("w").dowhile(increment, lambda n, count: count < 3, max_iterations=9).commit()
        once = workflow("o").dountil(increment, _always, max_iterations=9).commit()
        async with boot(flow, once) as engine:
            run = await engine.start(flow, 0)
            assert await run.result(timeout=10) == 3
            assert [record.path for record in await run.steps()] == ["increment#1", "increment#2", "increment#3"]
            assert await (await engine.start(once, 0)).result(timeout=10) == 1

    async def test_passing_the_bound_is_an_error_with_a_name(self, boot: Boot) -> None:
        flow = workflow("w").dowhile(increment, _always, max_iterations=3).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match=IterationLimitError.__name__):
                await (await engine.start(flow, 0)).result(timeout=10)


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
            await engine.store.set_clock_offset(timedelta(minutes=11))
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
            await first.store.set_clock_offset(timedelta(minutes=1))
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
            await first.store.set_clock_offset(timedelta(minutes=1))
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
            await first.store.set_clock_offset(timedelta(minutes=1))
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
            await first.store.set_clock_offset(timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                assert await (await second.run(run.id)).result(timeout=10) == (42 if happened else 43)
        assert len(calls) == (1 if happened else 2)

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
            await first.store.set_clock_offset(timedelta(minutes=1))
            async with boot(flow, lease_s=0.2) as second:
                await (await second.run(run.id)).result(timeout=10)
        assert seen == [None, {"way": 1}]

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


def _always(n: int) -> bool:
    return True


async def _plus_one(n: int) -> int:
    return n + 1


class TestWaiting:
    async def test_a_sleeping_run_is_held_by_nobody_and_wakes_on_time(self, boot: Boot) -> None:
        flow = workflow("w").then(double).sleep(3600).then(increment).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.store.set_clock_offset(timedelta(hours=2))
            assert await run.result(timeout=10) == 3

    async def test_a_signal_does_not_change_a_sleep(self, boot: Boot) -> None:
        flow = workflow("w").then(double).sleep(3600).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            before = [record for record in await run.steps() if record.path.endswith("@until")]
            await engine.signal(run.id, "hello")
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert [record for record in await run.steps() if record.path.endswith("@until")] == before
            await engine.store.set_clock_offset(timedelta(hours=2))
            assert await run.result(timeout=10) == 2

    async def test_wait_for_takes_the_signals_payload(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", Order).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.signal(run.id, "go", {"item": "tent", "amount": 1})
            assert await run.result(timeout=10) == Order(item="tent", amount=1)

    async def test_its_time_out_is_recorded(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", int, timeout=60, otherwise=-1).then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.store.set_clock_offset(timedelta(minutes=2))
            assert await run.result(timeout=10) == -2
            assert {record.path: record.status for record in await run.steps()}["wait-go-0"] == "skipped"

    async def test_a_step_can_suspend_and_be_resumed_once(self, boot: Boot) -> None:
        @step(effect=READ)
        async def ask(n: int, ctx: StepContext) -> int:
            return n + await ctx.suspend({"question": n}, resume=int)

        flow = workflow("w").then(ask).then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert [(each.path, each.payload) for each in await run.suspensions()] == [("ask", {"question": 1})]
            await run.resume(4)
            assert await run.result(timeout=10) == 10
            await run.resume(4, path="ask")  # the same answer again is a repeat
            with pytest.raises(AlreadyResumedError):
                await run.resume(5, path="ask")
            with pytest.raises(StateError, match="nothing"):
                await run.resume(5, path="no-such-step")

    async def test_two_arms_suspend_and_are_resumed_in_any_order(self, boot: Boot) -> None:
        async def ask(n: int, ctx: StepContext) -> int:
            return n + await ctx.suspend({}, resume=int)

        a, b = step(id="a", effect=READ)(ask), step(id="b", effect=READ)(ask)
        flow = workflow("w").then(double).parallel(a, b).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await run.resume(20, path="b")
            await until(lambda: _waiting(run, {"a"}))
            await run.resume(10, path="a")
            assert await run.result(timeout=10) == {"a": 12, "b": 22}

    async def test_racing_resumes_have_one_winner(self, boot: Boot) -> None:
        @step(effect=READ)
        async def ask(n: int, ctx: StepContext) -> int:
            return await ctx.suspend({}, resume=int)

        flow = workflow("w").then(ask).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await in_state(engine, run.id, RunState.SUSPENDED)
            outcomes = await asyncio.gather(*(run.resume(n) for n in range(5)), return_exceptions=True)
            assert sum(outcome is None for outcome in outcomes) == 1, outcomes
            assert all(isinstance(outcome, StateError) for outcome in outcomes if outcome is not None)
            winner = next(n for n, outcome in enumerate(outcomes) if outcome is None)
            assert await run.result(timeout=10) == winner


async def _waiting(run: Any, paths: set[str]) -> bool:
    return {each.path for each in await run.suspensions()} == paths


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
            assert await engine.store.inbox(outcome.run_id) == []

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
            await first.store.set_clock_offset(timedelta(minutes=1))
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
            stopping = asyncio.create_task(leaving.worker.stop())
            await asyncio.sleep(0)
            gate.set()
            await stopping
            async with boot(flow) as taking:
                await in_state(taking, run.id, RunState.FAILED)
        assert undone == [2, 1]


class TestSignals:
    def echo(self, gate: asyncio.Event | None = None) -> Workflow[Any, Any]:
        @step(effect=Effect.PURE)
        async def collect(value: None, ctx: StepContext) -> list[str]:
            if gate is not None:
                await gate.wait()
            return [signal.dedup_key for signal in await ctx.signals.drain("message")]

        return workflow("echo").then(collect).commit()

    async def say(self, engine: Engine, flow: Workflow[Any, Any], text: str) -> Any:
        return await engine.signal_with_start(
            flow, tenant="T1", key="thread", name="message", dedup_key=text, payload=text
        )

    async def test_messages_are_taken_in_order_and_used_once(self, boot: Boot) -> None:
        flow = self.echo()
        async with boot(flow, worker=False) as web:
            outcomes = [await self.say(web, flow, f"m{n}") for n in range(3)]
            assert (await self.say(web, flow, "m1")).duplicate
            async with boot(flow) as engine:
                run = await engine.run(outcomes[0].run_id, tenant="T1")
                assert await run.result(timeout=10) == ["m0", "m1", "m2"]
                assert await engine.store.inbox(run.id) == []

    async def test_a_drain_sees_what_arrived_during_the_step_before(self, boot: Boot) -> None:
        gate, entered = asyncio.Event(), asyncio.Event()

        async def drained(texts: list[str] | None, ctx: StepContext) -> list[str]:
            return [*(texts or []), *[signal.dedup_key for signal in await ctx.signals.drain("message")]]

        @step(effect=READ)
        async def working(texts: list[str]) -> list[str]:
            entered.set()
            await gate.wait()
            return texts

        before, after = step(id="before", effect=Effect.PURE)(drained), step(id="after", effect=Effect.PURE)(drained)
        flow = workflow("w").then(before).then(working).then(after).commit()
        async with boot(flow) as engine:
            first = await self.say(engine, flow, "early")
            await entered.wait()
            await self.say(engine, flow, "meanwhile")
            gate.set()
            assert await (await engine.run(first.run_id, tenant="T1")).result(timeout=10) == ["early", "meanwhile"]

    async def test_a_message_that_slips_in_at_the_end_gets_a_run_of_its_own(self, boot: Boot) -> None:
        gate, entered = asyncio.Event(), asyncio.Event()

        @step(effect=Effect.PURE)
        async def collect(value: None, ctx: StepContext) -> list[str]:
            return [signal.dedup_key for signal in await ctx.signals.drain("message")]

        @step(effect=READ)
        async def answer(texts: list[str]) -> list[str]:
            entered.set()
            await gate.wait()
            return texts

        flow = workflow("w").then(collect).then(answer).commit()
        async with boot(flow) as engine:
            first = await self.say(engine, flow, "early")
            await entered.wait()
            late = await self.say(engine, flow, "late")
            assert late.run_id == first.run_id
            gate.set()
            assert await (await engine.run(first.run_id, tenant="T1")).result(timeout=10) == ["early"]
            rows = await engine.runs(tenant="T1")
            (successor,) = [row.run_id for row in rows if row.run_id != first.run_id]
            assert await (await engine.run(successor, tenant="T1")).result(timeout=10) == ["late"]

    async def test_a_message_to_a_failing_run_is_handed_to_the_next(self, boot: Boot) -> None:
        attempts = []

        @step(effect=READ)
        async def once(value: None, ctx: StepContext) -> list[str]:
            attempts.append(ctx.run_id)
            if len(attempts) == 1:
                raise ValueError("broken")
            return [signal.dedup_key for signal in await ctx.signals.drain("message")]

        flow = workflow("w").then(once).commit()
        async with boot(flow) as engine:
            await self.say(engine, flow, "hello")
            await until(lambda: _done(engine, "T1"))
            (done,) = await engine.runs(tenant="T1", states=[RunState.DONE])
            assert await (await engine.run(done.run_id, tenant="T1")).result(timeout=10) == ["hello"]

    async def test_a_message_two_runs_died_on_is_a_dead_letter(self, boot: Boot) -> None:
        flow = workflow("w").map(lambda value: 1).then(boom).commit()
        async with boot(flow) as engine:
            await self.say(engine, flow, "poison")
            letters = await until(lambda: engine.store.dead_signals(tenant="T1"))
            assert [letter.signal.dedup_key for letter in letters] == ["poison"]


async def _done(engine: Engine, tenant: str) -> list[Any]:
    return await engine.runs(tenant=tenant, states=[RunState.DONE])


class TestCancel:
    async def test_a_suspended_run_is_cancelled_at_once(self, boot: Boot) -> None:
        flow = workflow("w").sleep(3600).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            assert await run.cancel()
            await in_state(engine, run.id, RunState.CANCELLED)
            assert await run.cancel()  # asking again is a repeat

    async def test_a_step_that_would_be_run_again_anyway_is_interrupted(self, boot: Boot) -> None:
        entered = asyncio.Event()

        @step(effect=READ)
        async def stuck(n: int) -> int:
            entered.set()
            await asyncio.Event().wait()
            return n

        flow = workflow("w").then(stuck).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await entered.wait()
            await run.cancel()
            await in_state(engine, run.id, RunState.CANCELLED)

    async def test_what_cannot_be_undone_is_awaited_to_its_end(self, boot: Boot) -> None:
        entered, gate, done = asyncio.Event(), asyncio.Event(), []

        @step(effect=Effect.IRREVERSIBLE)
        async def spend(n: int) -> int:
            entered.set()
            await gate.wait()
            done.append(n)
            return n

        flow = workflow("w").then(spend).then(boom).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1)
            await entered.wait()
            await run.cancel()
            gate.set()
            await in_state(engine, run.id, RunState.CANCELLED)
            assert done == [1]
            assert [record.path for record in await run.steps()] == ["spend!intent", "spend"]


class TestTakeover:
    async def test_a_leaving_worker_hands_its_run_over_at_the_next_boundary(self, boot: Boot) -> None:
        entered, gate, calls = asyncio.Event(), asyncio.Event(), []

        @step(effect=READ)
        async def first(n: int) -> int:
            calls.append("first")
            entered.set()
            await gate.wait()
            return n

        @step(effect=READ)
        async def second(n: int) -> int:
            calls.append("second")
            return n + 1

        flow = workflow("w").then(first).then(second).commit()
        async with boot(flow, lease_s=60) as leaving:
            run = await leaving.start(flow, 1)
            await entered.wait()
            stopping = asyncio.create_task(leaving.worker.stop())
            await asyncio.sleep(0)
            gate.set()
            await stopping
            row = await leaving.store.run(run.id)
            assert (row.state, row.attempts) == (RunState.READY, 0)
            async with boot(flow, lease_s=60) as taking:
                assert await (await taking.run(run.id)).result(timeout=10) == 2
        assert calls == ["first", "second"]

    async def test_a_paused_owner_that_revives_writes_nothing(self, boot: Boot) -> None:
        entered, gate, calls = asyncio.Event(), asyncio.Event(), []

        @step(effect=READ)
        async def work(n: int) -> int:
            calls.append(n)
            if len(calls) == 1:
                entered.set()
                await gate.wait()
                return -1
            return 7

        flow = workflow("w").then(work).commit()
        async with boot(flow, beat_s=3600) as paused:
            run = await paused.start(flow, 1)
            await entered.wait()
            await paused.store.set_clock_offset(timedelta(minutes=5))
            async with boot(flow, lease_s=0.2) as taking:
                assert await (await taking.run(run.id)).result(timeout=10) == 7
                gate.set()
                await until(lambda: _empty(paused))
                assert [record.output for record in await (await taking.run(run.id)).steps()] == [b"7"]

    async def test_a_run_that_keeps_killing_its_worker_is_dead_and_says_so(self, boot: Boot) -> None:
        told: list[Any] = []

        @step(effect=READ)
        async def tell(failed: dict[str, Any]) -> None:
            told.append(failed)

        @step(effect=READ)
        async def deadly(n: int) -> int:
            await asyncio.Event().wait()
            return n

        notice = workflow("notice").then(tell).commit()
        flow = workflow("w", on_failure="notice", max_attempts=2).then(deadly).commit()
        async with boot(flow, notice, worker=False) as web:
            run = await web.start(flow, 1)
            for attempt in (1, 2):
                async with boot(flow, notice, lease_s=0.2) as engine:
                    await until(partial(_attempted, web, run.id, attempt))
                    await kill(engine)
                await web.store.set_clock_offset(timedelta(minutes=attempt))
            async with boot(flow, notice, lease_s=0.2) as engine:
                await in_state(engine, run.id, RunState.DEAD)
                await until(lambda: _truth(told))
        assert (told[0]["run_id"], told[0]["state"]) == (run.id, "dead")


async def _attempted(engine: Engine, run_id: str, attempt: int) -> bool:
    row = await engine.store.run(run_id)
    return row is not None and row.attempts == attempt


async def _truth(value: Any) -> bool:
    return bool(value)


async def _empty(engine: Engine) -> bool:
    assert engine.worker is not None
    return not engine.worker._held


class TestBackground:
    async def test_a_child_run_wakes_its_parents_thread_with_the_result(self, boot: Boot) -> None:
        child = workflow("child").then(double).commit()

        @step(effect=READ)
        async def begin(value: None, ctx: StepContext) -> str:
            await ctx.signals.drain("message")
            return ctx.dispatch(child, 21)

        parent = workflow("parent").then(begin).wait_for("task", dict[str, Any]).commit()
        async with boot(parent, child) as engine:
            outcome = await engine.signal_with_start(parent, tenant="T1", key="thread", name="message", dedup_key="m")
            result = await (await engine.run(outcome.run_id, tenant="T1")).result(timeout=10)
            assert result["state"] == "done"
            assert await (await engine.run(result["run_id"], tenant="T1")).result(timeout=10) == 42

    async def test_a_schedule_fires_once_with_several_clocks(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow, clock=True) as one, boot(flow, clock=True) as two:
            await one.schedule("nightly", flow, 4, spec="0 3 * * *", tz="Europe/Berlin", tenant="T1")
            await one.store.set_clock_offset(timedelta(days=1, minutes=1))
            await until(lambda: _done(one, "T1"))
            await asyncio.gather(one.clock.sweep(), two.clock.sweep())
            assert len(await two.runs(tenant="T1")) == 1
            await one.store.set_clock_offset(timedelta(0))


class TestDefinitions:
    def test_a_type_mismatch_names_both_steps_and_both_types(self) -> None:
        @step(effect=READ)
        async def shout(text: str) -> str:
            return text

        with pytest.raises(BoundaryError, match=r"'double' gives int, but 'shout' takes str"):
            workflow("w").then(double).then(shout).commit()  # type: ignore[arg-type]

    def test_ids_are_unique(self) -> None:
        with pytest.raises(DefinitionError, match="two entries called 'double'"):
            workflow("w").then(double).then(double).commit()

    def test_a_retry_of_what_cannot_be_undone_is_refused(self) -> None:
        @step(retry=Retry())
        async def spend(n: int) -> int:
            return n

        with pytest.raises(DefinitionError, match="not_started"):
            workflow("w").then(spend).commit()

    def test_an_empty_workflow_is_refused(self) -> None:
        with pytest.raises(DefinitionError, match="no entries"):
            workflow("w").commit()

    def test_a_step_must_be_async(self) -> None:
        with pytest.raises(DefinitionError, match="async"):
            step(lambda n: n)
