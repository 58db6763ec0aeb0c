"""Workflows written at run time: runs like any other, on every store."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, Order, boom, double, increment
from tests.conformance.engines import Boot, in_state, kill, move_clock, until
from workflows import Catalogue, Effect, Interrupted, RunFailedError, RunState, SpecError, StepContext, step, workflow
from workflows.definition.authored import Definition, authored
from workflows.errors import InputError, NoExecutorError


@step(effect=READ)
async def ask(n: int, ctx: StepContext) -> int:
    return n + await ctx.suspend({"about": n}, resume=int)


@step(effect=READ)
async def count(n: int, ctx: StepContext) -> int:
    ctx.set_state(tries=ctx.state.get("tries", 0) + 1)
    return n


@step(effect=READ)
async def finish(n: int, ctx: StepContext) -> int:
    ctx.bail(n * 100)


CATALOGUE = Catalogue(double, increment, boom, ask, count, finish, types={"order": Order})


def spec(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "written", "entries": list(entries), **more}


def then(name: str, **more: Any) -> dict[str, Any]:
    return {"op": "then", "step": name, **more}


class TestAuthored:
    async def test_its_records_have_the_paths_of_what_it_defines(self, boot: Boot) -> None:
        inner = {"id": "inner", "entries": [{"op": "foreach", "step": "increment", "concurrency": 2}]}
        written = spec(
            then("double"),
            {"op": "map", "to": [{"path": "value"}, 1]},
            {"op": "then", "workflow": inner},
            {"op": "map", "to": {"path": "value[0]"}},
            {
                "op": "dountil",
                "step": "double",
                "id": "grow",
                "when": {"gt": [{"path": "value"}, 20]},
                "max_iterations": 9,
            },
        )
        async with boot(catalogue=CATALOGUE) as engine:
            run = await engine.author(written, 3, tenant="T1")
            assert await run.result(timeout=10) == 28
            paths = [record.path for record in await run.steps()]
            assert sorted(paths) == sorted(["double", "inner/increment[0]", "inner/increment[1]", "grow#1", "grow#2"])
            row = await run.row()
            assert (row.workflow, row.version, row.tenant) == ("authored", "1", "T1")

    async def test_what_does_not_hold_is_refused_before_anything_is_stored(self, boot: Boot) -> None:
        async with boot(catalogue=CATALOGUE) as engine:
            with pytest.raises(SpecError, match=r"entries\[1\].step: there is no step 'tripel'"):
                await engine.author(spec(then("double"), then("tripel")), 3)
            with pytest.raises(InputError, match="int"):
                await engine.author(spec(then("double")), "three")
            with pytest.raises(SpecError, match="on_failure: a workflow written at run time has that of `authored`"):
                await engine.author(spec(then("double"), on_failure="notice"), 3)
            assert await engine.runs(tenant="default") == []

    @pytest.mark.parametrize("what", [None, [], {5: 6}, "then"])
    async def test_what_is_no_spec_at_all_is_refused_too(self, boot: Boot, what: Any) -> None:
        async with boot(catalogue=CATALOGUE, worker=False) as engine:
            with pytest.raises((SpecError, InputError)):
                await engine.author(what, 1)

    async def test_without_a_catalogue_nothing_can_be_written(self, boot: Boot) -> None:
        async with boot() as engine:
            with pytest.raises(NoExecutorError, match="catalogue"):
                await engine.author(spec(then("double")), 3)

    async def test_a_definition_that_came_another_way_and_does_not_hold_fails_its_run(self, boot: Boot) -> None:
        async with boot(catalogue=CATALOGUE) as engine:
            runner = engine.workflow("authored")
            run = await engine.start(runner, Definition(spec=spec(then("tripel")), value=1))
            with pytest.raises(RunFailedError, match="no step 'tripel'"):
                await run.result(timeout=10)

    async def test_the_same_key_is_one_live_run(self, boot: Boot) -> None:
        waiting = spec({"op": "wait_for", "name": "go", "type": "integer"})
        async with boot(catalogue=CATALOGUE) as engine:
            first, second = [await engine.author(waiting, None, key="k") for _ in range(2)]
            assert first.id == second.id

    async def test_a_killed_one_goes_on_where_it_was(self, boot: Boot) -> None:
        started, calls = asyncio.Event(), list[str]()

        @step(effect=READ)
        async def before(n: int) -> int:
            calls.append("before")
            return n + 1

        @step(effect=READ)
        async def reading(n: int) -> int:
            calls.append("reading")
            if calls.count("reading") == 1:
                started.set()
                await asyncio.Event().wait()
            return n + 1

        catalogue = Catalogue(before, reading)
        async with boot(catalogue=catalogue) as first:
            run = await first.author(spec(then("before"), then("reading")), 1)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(catalogue=catalogue, lease_s=0.2) as second:
                assert await (await second.run(run.id)).result(timeout=10) == 3
        assert calls == ["before", "reading", "reading"]

    async def test_what_cannot_be_undone_is_not_done_again_after_a_kill(self, boot: Boot) -> None:
        started, calls = asyncio.Event(), list[int]()

        @step(effect=Effect.IRREVERSIBLE)
        async def spend(n: int) -> int | Interrupted:
            calls.append(n)
            started.set()
            await asyncio.Event().wait()
            return n

        catalogue = Catalogue(spend)
        async with boot(catalogue=catalogue) as first:
            run = await first.author(spec(then("spend")), 5)
            await started.wait()
            await kill(first)
            await move_clock(first, timedelta(minutes=1))
            async with boot(catalogue=catalogue, lease_s=0.2) as second:
                assert (await (await second.run(run.id)).result(timeout=10))["outcome"] == "unknown"
        assert calls == [5]

    async def test_it_suspends_and_another_process_resumes_it(self, boot: Boot) -> None:
        written = spec(
            then("double"),
            {"op": "parallel", "nodes": [{"step": "ask", "id": "a"}, {"step": "ask", "id": "b"}]},
            {"op": "map", "to": {"path": "value.a"}},
        )
        async with boot(catalogue=CATALOGUE) as first:
            run = await first.author(written, 1)
            await in_state(first, run.id, RunState.SUSPENDED)
        async with boot(catalogue=CATALOGUE) as second:
            again = await second.run(run.id)
            assert {each.path: each.payload for each in await again.suspensions()} == {
                "a": {"about": 2},
                "b": {"about": 2},
            }
            await again.resume(40, path="b")
            await again.resume(20, path="a")
            assert await again.result(timeout=10) == 22

    async def test_a_time_out_is_recorded(self, boot: Boot) -> None:
        written = spec(
            {"op": "wait_for", "name": "go", "type": {"named": "order"}, "timeout_s": 60, "otherwise": -1},
            {"op": "branch", "arms": [{"when": {"lt": [{"path": "value"}, 0]}, "workflow": {"id": "late", "entries": [
                {"op": "sleep", "seconds": 3600}, {"op": "map", "to": {"literal": "late"}}]}}]},
        )  # fmt: skip
        async with boot(catalogue=CATALOGUE) as engine:
            run = await engine.author(written, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await move_clock(engine, timedelta(minutes=2))
            await until(partial(_recorded, run, "late/sleep-0@until"))
            await in_state(engine, run.id, RunState.SUSPENDED)
            await move_clock(engine, timedelta(hours=2))
            assert await run.result(timeout=10) == "late"
            assert {record.path: record.status for record in await run.steps()}["wait-go-0"] == "skipped"

    async def test_a_signal_is_checked_against_the_type_it_names(self, boot: Boot) -> None:
        written = spec({"op": "wait_for", "name": "go", "type": {"named": "order"}})
        async with boot(catalogue=CATALOGUE) as engine:
            run = await engine.author(written, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            await engine.signal(run.id, "go", {"item": "tent"})
            await until(partial(_recorded, run, "wait-go-0!refused#1"))
            await engine.signal(run.id, "go", {"item": "tent", "amount": 1})
            assert await run.result(timeout=10) == {"item": "tent", "amount": 1}

    async def test_its_state_is_that_of_the_definition(self, boot: Boot) -> None:
        state = {"object": {"tries?": "integer"}}
        when = {"gte": [{"path": "state.tries"}, 3]}
        written = spec({"op": "dountil", "step": "count", "when": when, "max_iterations": 9}, state=state)
        async with boot(catalogue=CATALOGUE) as engine:
            run = await engine.author(written, 7)
            assert await run.result(timeout=10) == 7
            assert (await run.state_at()).state == {"tries": 3}
            refused = await engine.author({**written, "state": {"object": {"tries?": {"list": "string"}}}}, 7)
            with pytest.raises(RunFailedError, match="the state of the run"):
                await refused.result(timeout=10)

    async def test_it_can_finish_early(self, boot: Boot) -> None:
        async with boot(catalogue=CATALOGUE) as engine:
            run = await engine.author(spec(then("finish"), then("boom")), 3)
            assert await run.result(timeout=10) == 300

    async def test_what_it_did_is_undone_when_it_fails(self, boot: Boot) -> None:
        undone: list[int] = []

        async def undo(n: int) -> None:
            undone.append(n)

        @step(effect=Effect.IDEMPOTENT, compensate=undo)
        async def book(n: int) -> int:
            return n + 1

        async with boot(catalogue=Catalogue(book, boom)) as engine:
            run = await engine.author(spec(then("book"), then("book", id="again"), then("boom")), 0)
            with pytest.raises(RunFailedError, match="no 2"):
                await run.result(timeout=10)
        assert undone == [2, 1]

    async def test_a_workflow_of_the_catalogue_is_nested_by_name(self, boot: Boot) -> None:
        quadruple = workflow("quadruple").then(double).then(double.named("again")).commit()
        async with boot(catalogue=Catalogue(quadruple)) as engine:
            run = await engine.author(spec({"op": "then", "workflow": "quadruple"}), 2)
            assert await run.result(timeout=10) == 8
            assert [record.path for record in await run.steps()] == ["quadruple/double", "quadruple/again"]

    async def test_a_step_starts_one_in_the_background(self, boot: Boot) -> None:
        runner = authored(CATALOGUE)

        @step(effect=READ)
        async def begin(n: int, ctx: StepContext) -> str:
            return ctx.dispatch(runner, Definition(spec=spec(then("double")), value=n))

        flow = workflow("w").then(begin).commit()
        async with boot(flow, runner) as engine:
            run_id = await (await engine.start(flow, 4)).result(timeout=10)
            assert await (await engine.run(run_id)).result(timeout=10) == 8

    async def test_a_run_is_left_for_whoever_has_its_catalogue(self, boot: Boot) -> None:
        old, new = Catalogue(double), Catalogue(increment, version="2")
        async with boot(catalogue=old, worker=False) as web:
            run = await web.author(spec(then("double")), 4)
            async with boot(catalogue=new) as engine:
                probe = await engine.author(spec(then("increment")), 1)
                assert await probe.result(timeout=10) == 2
                assert await run.status() is RunState.READY
            async with boot(authored(old), catalogue=new):
                assert await run.result(timeout=10) == 8

    @pytest.mark.store_only("time travel forks the records of a store")
    async def test_time_travel_takes_it_from_one_of_its_steps(self, boot: Boot) -> None:
        async with boot(catalogue=CATALOGUE) as engine:
            run = await engine.author(spec(then("double"), then("increment")), 3)
            assert await run.result(timeout=10) == 7
            fork = await run.time_travel("increment", input=100)
            assert await fork.result(timeout=10) == 101
            with pytest.raises(InputError, match="int"):
                await run.time_travel("increment", input="many")


async def _recorded(run: Any, path: str) -> bool:
    return path in {record.path for record in await run.steps()}
