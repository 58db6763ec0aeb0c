"""Messages to a run: in order, once, and never lost."""

import asyncio
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom
from tests.conformance.engines import Boot, dead_letters, in_state, until
from workflows import (
    Effect,
    Engine,
    RunState,
    StepContext,
    Workflow,
    step,
    workflow,
)
from workflows.errors import InputError


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
                assert await engine.execution.runs.inbox(run.id) == []

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
            letters = await until(lambda: dead_letters(engine, "T1"))
            assert [letter.signal.dedup_key for letter in letters] == ["poison"]


async def _done(engine: Engine, tenant: str) -> list[Any]:
    return await engine.runs(tenant=tenant, states=[RunState.DONE])


class TestRunsStartedWithAValue:
    async def test_an_unread_message_becomes_a_dead_letter_and_starts_no_run_without_a_value(self, boot: Boot) -> None:
        gate = asyncio.Event()

        @step(effect=READ)
        async def fail(n: int) -> int:
            await gate.wait()
            raise ValueError(f"no {n}")

        flow = workflow("w").then(fail).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, key="z")
            await engine.signal(run.id, "note", "hello")
            gate.set()
            await in_state(engine, run.id, RunState.FAILED)
            assert [each.id for each in await _all(engine)] == [run.id]
            assert [letter.signal.payload for letter in await dead_letters(engine, "default")] == [b'"hello"']

    async def test_its_end_is_told_to_a_parent_only_while_that_lives(self, boot: Boot) -> None:
        @step(effect=READ)
        async def child_step(n: int) -> int:
            return n

        child = workflow("child").wait_for("go", int).then(child_step).commit()

        @step(effect=READ)
        async def send(n: int, ctx: StepContext) -> str:
            return ctx.dispatch(child, None)

        flow = workflow("w").then(send).commit()
        async with boot(flow, child) as engine:
            run = await engine.start(flow, 1, key="z")
            child_id = await run.result(timeout=10)
            await engine.signal(child_id, "go", 5)
            assert await (await engine.run(child_id)).result(timeout=10) == 5
            assert {each.id for each in await _all(engine)} == {run.id, child_id}


async def _all(engine: Engine) -> list[Any]:
    rows = await engine.runs(tenant="default")
    return [await engine.run(row.run_id) for row in rows]


async def test_a_name_of_the_engines_own_is_refused(boot: Boot) -> None:
    """It would be accepted, and neither read nor carried over nor kept as a dead letter."""
    flow = workflow("w").wait_for("go", int).commit()
    async with boot(flow, worker=False) as engine:
        run = await engine.start(flow, None)
        with pytest.raises(InputError, match=r"\$price"):
            await engine.signal(run.id, "$price", 1)
        with pytest.raises(InputError, match=r"\$price"):
            await engine.signal_with_start(flow, tenant="default", key="k", name="$price", dedup_key="d", payload=1)
        with pytest.raises(InputError, match=r"\$cancel"):  # or no cancel would ever reach the run
            await engine.signal(run.id, "price", 1, dedup_key="$cancel")
        assert [each.run_id for each in await engine.runs(tenant="default")] == [run.id]
