"""Runs in Temporal as those see them who ask: their ids and keys, lists and pages, tenants, and ends that others brought about."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, double, increment
from tests.conformance.engines import Boot, dead_letters, in_state, until
from tests.temporal.attending import execution_of
from workflows import Effect, Engine, RunFailedError, RunState, StepContext, Workflow, step, workflow
from workflows.definition.registry import Registry
from workflows.errors import InputError, NoExecutorError, RunNotFoundError, WorkflowError
from workflows.pubsub import MemoryPubSub
from workflows.storage import MemoryStore
from workflows.storage.base import StoreUnavailableError
from workflows.temporal import TemporalExecution
from workflows.temporal.ids import address, run_id_of, run_name, workflow_id
from workflows.temporal.messages import RunFacts
from workflows.tracing import Tracer

waiting = workflow("waiting").wait_for("go", int).commit()


@step(effect=Effect.PURE)
async def collect(value: None, ctx: StepContext) -> list[str]:
    return [signal.dedup_key for signal in await ctx.signals.drain("message")]


class TestNames:
    @pytest.mark.parametrize("key", ["a", "a/b", "a@b", "a:b", "ключ", "%2F", " "])
    def test_a_key_of_any_kind_has_a_name_of_its_own(self, key: str) -> None:
        facts = RunFacts(tenant="T/1", workflow="w", version="1", key=key, run_id="")
        run_id = run_id_of(facts, "0197")
        assert address("fleet", run_id) == (workflow_id("fleet", facts), "0197")
        assert address("fleet", run_name(facts)) == (workflow_id("fleet", facts), None)
        assert run_name(facts).count("/") == 2

    def test_tenants_do_not_share_names(self) -> None:
        one = RunFacts(tenant="a", workflow="b/c", version="1", key="d", run_id="")
        other = RunFacts(tenant="a/b", workflow="c", version="1", key="d", run_id="")
        assert run_name(one) != run_name(other)

    async def test_a_key_that_is_too_long_is_refused(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            with pytest.raises(InputError, match="900"):
                await engine.start(waiting, None, key="k" * 1000)

    async def test_a_run_has_the_id_it_was_given(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            run = await engine.start(waiting, None, run_id="0197-mine")
            again = await engine.start(waiting, None, run_id="0197-mine")
            assert run.id == again.id == "0197-mine"
            assert (await (await engine.run("0197-mine")).row()).run_id == "0197-mine"

    async def test_runs_of_one_key_are_told_apart(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            first = await engine.start(waiting, None, key="k")
            await engine.signal(first.id, "go", 1)
            assert await first.result(timeout=20) == 1
            second = await engine.start(waiting, None, key="k")
            assert second.id != first.id
            await engine.signal(first.id, "go", 2)
            await in_state(engine, second.id, RunState.SUSPENDED)
            await engine.signal(second.id, "go", 3)
            assert (await first.result(), await second.result(timeout=20)) == (1, 3)

    async def test_a_fleet_sees_no_run_of_another(self, temporal_address: str, temporal_fleet: str) -> None:
        async def engine(fleet: str) -> Engine:
            execution = TemporalExecution(temporal_address, fleet=fleet, heartbeat_s=1)
            made = Engine(store=MemoryStore(), pubsub=MemoryPubSub(), workflows=[waiting], execution=execution)
            await made.open()
            return made

        one, other = await engine(temporal_fleet), await engine(f"{temporal_fleet}-b")
        try:
            run = await one.start(waiting, None, key="k")
            assert (await other.start(waiting, None, key="k")).id != run.id
            await until(partial(_counted, one, 1))
            await until(partial(_counted, other, 1))
            with pytest.raises(RunNotFoundError):
                await other.run(run.id)
        finally:
            await one.close()
            await other.close()

    @pytest.mark.parametrize("fleet", ["", "a:b", "a/b"])
    def test_a_fleet_has_a_name(self, fleet: str) -> None:
        with pytest.raises(ValueError, match="fleet"):
            TemporalExecution(fleet=fleet)


async def _counted(engine: Engine, count: int) -> bool:
    return len(await engine.runs(tenant="default")) == count


class TestTenants:
    async def test_another_tenant_can_do_nothing_with_a_run(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            for key in (None, "k"):
                run = await engine.start(waiting, None, tenant="T1", key=key)
                await in_state(engine, run.id, RunState.SUSPENDED, tenant="T1")
                assert await engine.execution.runs.run(run.id, tenant="T2") is None
                assert (await engine.signal(run.id, "go", 1, tenant="T2")).run_id is None
                with pytest.raises(RunNotFoundError):
                    await engine.cancel(run.id, tenant="T2")
                assert await run.status() is RunState.SUSPENDED
            assert await engine.runs(tenant="T2") == []
            assert await engine.runs(tenant="T1' OR RunTenant = 'T1") == []

    @pytest.mark.parametrize("tenant", ["O'Neill", 'a"b', "a\\b", "a\\'b", "%", "тенант"])
    async def test_any_tenant_can_list_its_own(self, boot: Boot, tenant: str) -> None:
        async with boot(waiting) as engine:
            run = await engine.start(waiting, None, tenant=tenant, key="k'")
            (row,) = await until(lambda: engine.runs(tenant=tenant, key="k'"))
            assert (row.run_id, row.tenant, row.key) == (run.id, tenant, "k'")


class TestLists:
    async def test_runs_are_listed_newest_first_by_pages_and_filters(self, boot: Boot) -> None:
        short = workflow("short").then(double).commit()
        async with boot(short, waiting) as engine:
            done = [(await engine.start(short, n, tenant="T1")).id for n in range(3)]
            open_ = [(await engine.start(waiting, None, tenant="T1", key=f"k{n}")).id for n in range(4)]
            newest_first = [*reversed(open_), *reversed(done)]
            await until(partial(_settled, engine, done=3, suspended=4))
            assert [row.run_id for row in await engine.runs(tenant="T1")] == newest_first
            page = await engine.runs(tenant="T1", limit=3)
            rest = await engine.runs(tenant="T1", limit=10, before=page[-1].cursor)
            assert [row.run_id for row in (*page, *rest)] == newest_first
            assert [row.run_id for row in await engine.runs(tenant="T1", key="k2")] == [open_[2]]
            listed = await engine.runs(tenant="T1", workflow="short", states=[RunState.DONE])
            assert [(row.run_id, row.input, row.output) for row in listed] == [
                (run_id, str(n).encode(), str(2 * n).encode()) for n, run_id in reversed(list(enumerate(done)))
            ]
            assert await engine.runs(tenant="T1", workflow="short", states=[RunState.SUSPENDED]) == []
            with pytest.raises(InputError, match="no cursor"):
                await engine.runs(tenant="T1", before="0197-nobody's")


async def _settled(engine: Engine, *, done: int, suspended: int) -> bool:
    rows = await engine.runs(tenant="T1")
    counts = {state: sum(row.state is state for row in rows) for state in RunState}
    listed = await engine.runs(tenant="T1", states=[RunState.DONE, RunState.SUSPENDED])
    return (counts[RunState.DONE], counts[RunState.SUSPENDED]) == (done, suspended) and len(listed) == done + suspended


class TestEvents:
    async def test_an_event_is_known_after_its_run_has_ended(self, boot: Boot) -> None:
        flow = workflow("echo").then(collect).commit()
        async with boot(flow) as engine:
            first = await engine.signal_with_start(flow, tenant="T1", key="k", name="message", dedup_key="m")
            assert first.started
            assert await (await engine.run(str(first.run_id), tenant="T1")).result(timeout=20) == ["m"]
            again = await engine.signal_with_start(flow, tenant="T1", key="k", name="message", dedup_key="m")
            assert (again.duplicate, again.run_id) == (True, None)
            other = await engine.signal_with_start(flow, tenant="T2", key="k", name="message", dedup_key="m")
            assert not other.duplicate

    async def test_one_of_many_copies_at_once_is_taken_in(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            outcomes = await asyncio.gather(
                *(engine.signal_with_start(waiting, tenant="T1", key="k", name="note", dedup_key="m") for _ in range(8))
            )
            assert sum(not each.duplicate for each in outcomes) == 1
            run_id = next(str(each.run_id) for each in outcomes if each.run_id)
            await in_state(engine, run_id, RunState.SUSPENDED, tenant="T1")
            assert [each.dedup_key for each in await engine.execution.runs.inbox(run_id)] == ["m"]

    async def test_two_arms_that_drain_at_once_share_no_message(self, boot: Boot) -> None:
        async def drained(n: int, ctx: StepContext) -> list[str]:
            return [signal.dedup_key for signal in await ctx.signals.drain("message")]

        arms = [step(id=name, effect=READ)(drained) for name in ("a", "b", "c")]
        flow = workflow("w").wait_for("go", int).parallel(*arms).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, None)
            for n in range(5):
                await engine.signal(run.id, "message", n, dedup_key=f"m{n}")
            await engine.signal(run.id, "go", 1)
            taken = await run.result(timeout=20)
            assert sorted(key for keys in taken.values() for key in keys) == [f"m{n}" for n in range(5)]
            assert await engine.execution.runs.inbox(run.id) == []

    async def test_an_unread_message_outlives_a_cancelled_run(self, boot: Boot) -> None:
        gate = asyncio.Event()

        @step(effect=READ)
        async def first(value: None, ctx: StepContext) -> list[str]:
            if not gate.is_set():
                gate.set()
                await asyncio.Event().wait()
            return [signal.dedup_key for signal in await ctx.signals.drain("message")]

        flow = workflow("w").then(first).commit()
        async with boot(flow) as engine:
            said = await engine.signal_with_start(flow, tenant="T1", key="k", name="message", dedup_key="m")
            await gate.wait()
            await engine.cancel(str(said.run_id), tenant="T1")
            await in_state(engine, str(said.run_id), RunState.CANCELLED, tenant="T1")
            successor = await until(partial(_other, engine, said.run_id))
            assert await (await engine.run(successor, tenant="T1")).result(timeout=20) == ["m"]
            (carried,) = [row for row in await engine.runs(tenant="T1") if row.run_id == successor]
            assert carried.trace_id == successor

    async def test_messages_without_an_heir_are_dead_letters(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            run = await engine.start(waiting, None, tenant="T1")
            await engine.signal(run.id, "note", "for nobody", tenant="T1", dedup_key="n")
            await engine.signal(run.id, "go", 1, tenant="T1")
            assert await run.result(timeout=20) == 1
            (letter,) = await until(lambda: dead_letters(engine, "T1"))
            assert (letter.run_id, letter.signal.payload) == (run.id, b'"for nobody"')
            assert await dead_letters(engine, "T2") == []


async def _other(engine: Engine, run_id: str | None) -> str | None:
    return next((row.run_id for row in await engine.runs(tenant="T1") if row.run_id != run_id), None)


class TestSizes:
    big = "x" * 2_000_000

    async def test_what_is_too_large_is_refused_before_it_is_sent(self, boot: Boot) -> None:
        flow = workflow("w").then(_length).commit()
        text = workflow("text").wait_for("go", str).commit()
        async with boot(flow, text) as engine:
            with pytest.raises(InputError, match="the input of w is 2000"):
                await engine.start(flow, self.big)
            run = await engine.start(text, None)
            with pytest.raises(InputError, match="the signal 'go' is 2000"):
                await engine.signal(run.id, "go", self.big)

    async def test_a_step_that_gives_too_much_fails_and_says_so(self, boot: Boot) -> None:
        flow = workflow("w").then(_repeated).then(_length).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 2_000_000)
            with pytest.raises(RunFailedError, match="what step repeated gives is 2000"):
                await run.result(timeout=20)

    async def test_so_does_a_run_that_gathers_too_much(self, boot: Boot) -> None:
        arms = [_repeated.named(name) for name in ("a", "b", "c")]
        flow = workflow("w").map(lambda n: n).parallel(*arms).then(_together).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 900_000)
            with pytest.raises(RunFailedError, match="the input of step together"):
                await run.result(timeout=20)

    async def test_a_run_of_too_many_steps_fails_and_says_so(self, boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("workflows.temporal.steps.MAX_EVENTS", 40)
        undone: list[int] = []

        async def undo(n: int) -> None:
            undone.append(n)

        counted = step(id="counted", effect=Effect.IDEMPOTENT, compensate=undo)(_plus)
        flow = workflow("w").dowhile(counted, lambda n: True, max_iterations=100).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            with pytest.raises(RunFailedError, match="TooLongError"):
                await run.result(timeout=20)
            assert undone == list(range(len(undone), 0, -1))
            assert undone

    async def test_many_records_are_read_by_pages(self, boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("workflows.temporal.journal.PAGE_CHARS", 1_000)
        flow = workflow("w").dowhile(increment, lambda n: n < 12, max_iterations=20).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 0)
            assert await run.result(timeout=20) == 12
            assert [record.path for record in await run.steps()] == [f"increment#{n}" for n in range(1, 13)]


@step(effect=READ)
async def _length(text: str) -> int:
    return len(text)


@step(id="repeated", effect=READ)
async def _repeated(n: int) -> str:
    return "x" * n


@step(id="together", effect=READ)
async def _together(found: dict[str, Any]) -> int:
    return len(found)


async def _plus(n: int) -> int:
    return n + 1


class TestOthers:
    async def test_what_an_operator_terminates_is_cancelled(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            run = await engine.start(waiting, None)
            await in_state(engine, run.id, RunState.SUSPENDED)
            workflow_, execution = address(execution_of(engine)._fleet, run.id)
            await execution_of(engine).client.get_workflow_handle(workflow_, run_id=execution).terminate("by hand")
            with pytest.raises(RunFailedError, match="cancelled"):
                await run.result(timeout=20)
            (row,) = await until(lambda: engine.runs(tenant="default", states=[RunState.CANCELLED]))
            assert row.run_id == run.id
            assert await engine.runs(tenant="default", states=[RunState.SUSPENDED]) == []

    async def test_a_step_that_takes_long_is_not_given_up_while_its_process_lives(self, boot: Boot) -> None:
        calls, loop = list[int](), asyncio.get_running_loop()

        @step(effect=READ)
        async def long(n: int) -> int:
            calls.append(n)
            end = loop.time() + 3  # three times the silence after which a step is lost
            await until(lambda: _past(end), every_s=0.1)
            return n

        flow = workflow("w").then(long).commit()
        async with boot(flow, lease_s=1) as engine:
            assert await (await engine.start(flow, 7)).result(timeout=20) == 7
        assert calls == [7]

    async def test_a_workflow_nobody_here_knows_is_not_begun(self, boot: Boot) -> None:
        async with boot(waiting) as engine:
            with pytest.raises(NoExecutorError, match="give it to the engine"):
                await engine.start(workflow("stranger").then(double).commit(), 1)

    async def test_a_run_waits_for_a_process_that_knows_its_version(self, boot: Boot) -> None:
        old, new = (workflow("w", version=version).then(node).commit() for version, node in (("1", double), ("2", increment)))  # fmt: skip
        async with boot(old, worker=False) as web:
            run = await web.start(old, 10)
            async with boot(new) as engine:
                assert await (await engine.start(new, 10)).result(timeout=20) == 11
                assert await run.status() is RunState.READY
            async with boot(old, new):
                assert await run.result(timeout=20) == 20

    async def test_without_a_worker_a_run_can_be_seen_and_not_asked(
        self, boot: Boot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("workflows.temporal.asking.TRIES", 1)
        async with boot(waiting, worker=False) as web:
            run = await web.start(waiting, None)
            assert await run.status() is RunState.READY
            assert (await web.signal(run.id, "go", 1)).run_id == run.id
            with pytest.raises(StoreUnavailableError):
                await run.steps()
            async with boot(waiting):
                assert await run.result(timeout=20) == 1

    async def test_a_server_that_is_away_is_said_to_be(self) -> None:
        execution = TemporalExecution("127.0.0.1:1")
        with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1"):
            await execution.open(Registry([waiting]), pubsub=MemoryPubSub(), tracer=Tracer())

    async def test_a_namespace_that_is_not_there_is_said_to_be(self, temporal_address: str) -> None:
        execution = TemporalExecution(temporal_address, namespace="nowhere")
        with pytest.raises(WorkflowError, match="nowhere"):
            await execution.open(Registry([waiting]), pubsub=MemoryPubSub(), tracer=Tracer())


async def _past(end: float) -> bool:
    return asyncio.get_running_loop().time() > end


class TestTelling:
    async def test_a_runs_spans_are_one_trace(self, temporal_address: str, temporal_fleet: str) -> None:
        spans: list[Any] = []

        class Sink:
            def put(self, span: Any) -> None:
                spans.append(span)

        flow: Workflow[Any, Any] = workflow("w").then(double).then(increment).commit()
        execution = TemporalExecution(temporal_address, fleet=temporal_fleet, heartbeat_s=1)
        engine = Engine(
            store=MemoryStore(), pubsub=MemoryPubSub(), workflows=[flow], execution=execution, spans=Sink()
        )  # fmt: skip
        async with engine:
            run = await engine.start(flow, 1, tenant="T1")
            assert await run.result(timeout=20) == 3
            await until(partial(_found, spans, "w"))
        assert {span.name: (span.tenant, span.trace_id, span.run_id) for span in spans} == dict.fromkeys(
            ("w", "double", "increment"), ("T1", run.id, run.id)
        )
        (whole,) = [span for span in spans if span.name == "w"]
        assert {span.parent_id for span in spans if span is not whole} == {whole.span_id}
        assert whole.attributes["state"] == "done"

    async def test_progress_is_told_live(self, boot: Boot) -> None:
        @step(effect=READ)
        async def upto(n: int) -> list[int]:
            await started.wait()
            return list(range(n))

        started, told = asyncio.Event(), list[tuple[int, int]]()
        flow = workflow("w").then(upto).foreach(double, concurrency=2).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 4)

            async def hear(event: Any) -> None:
                if event.type == "progress":
                    told.append((event.data["done"], event.data["total"]))

            await engine.pubsub.subscribe(f"default:run:{run.id}", hear)
            started.set()
            assert await run.result(timeout=20) == [0, 2, 4, 6]
        assert [done for done, _ in told] == [1, 2, 3, 4]
        assert {total for _, total in told} == {4}


async def _found(spans: list[Any], name: str) -> bool:
    return any(span.name == name for span in spans)
