"""Workers: what they claim, what they leave, what they hand over. One suite, every store."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.conftest import AnyStore
from tests.conformance.engines import Boot, in_state, kill, until
from workflows import Effect, Engine, RunState, StepContext, step, workflow
from workflows.storage import Update
from workflows.storage.base import SUSPECT_AFTER, NewRun, RunRow, Suspects
from workflows.storage.tables import RUNS
from workflows.workers.quarantine import Quarantine

WANTED: dict[str, Any] = {"queues": ["default"], "workflows": [("w", "1")]}


async def lease(store: AnyStore, *workers: str) -> None:
    for worker in workers:
        await store.register(worker, host="h", deployment="", lease=timedelta(hours=1))


async def insert(store: AnyStore, name: str, *, tries: int = 0, **changes: Any) -> str:
    """A run that `tries` workers have died with."""
    due = await store.now()
    await store.start(NewRun(name, "T1", "w", **changes, available_at=due + timedelta(hours=1)))
    died = {"attempts": tries, "fence": 2 * tries, "available_at": due}  # at once: no worker may see it half way there
    await store.write(Update(RUNS, {"tenant": "T1", "run_id": name}, died))
    return name


async def take(store: AnyStore, worker: str, suspects: Suspects, *, limit: int = 10) -> list[str]:
    rows: list[RunRow] = await store.claim(worker, limit=limit, suspects=suspects, **WANTED)
    return [row.run_id for row in rows]


class TestSuspects:
    """A run whose last two tries made no progress may be what killed its workers."""

    async def test_a_worker_with_other_runs_leaves_it(self, store: AnyStore) -> None:
        await lease(store, "A")
        await insert(store, "suspect", tries=SUSPECT_AFTER)
        await insert(store, "good")
        assert await take(store, "A", "no") == ["good"]
        assert await take(store, "A", "no") == []

    async def test_a_run_that_lost_one_worker_is_no_suspect(self, store: AnyStore) -> None:
        await lease(store, "A")
        await insert(store, "unlucky", tries=SUSPECT_AFTER - 1)
        assert await take(store, "A", "no") == ["unlucky"]

    async def test_first_in_line_it_is_taken_alone(self, store: AnyStore) -> None:
        await lease(store, "A", "B")
        await insert(store, "suspect", tries=SUSPECT_AFTER)
        await insert(store, "good")
        assert await take(store, "A", "head") == ["suspect"]
        assert await take(store, "B", "head") == ["good"]

    async def test_behind_others_it_waits_for_its_turn(self, store: AnyStore) -> None:
        await lease(store, "A")
        await insert(store, "suspect", tries=SUSPECT_AFTER)
        await store.start(NewRun("urgent", "T1", "w", priority=1))
        await store.start(NewRun("good", "T1", "w"))
        assert sorted(await take(store, "A", "head")) == ["good", "urgent"]

    async def test_two_are_taken_one_after_the_other(self, store: AnyStore) -> None:
        await lease(store, "A", "B")
        await insert(store, "one", tries=SUSPECT_AFTER)
        await insert(store, "two")
        await store.claim("A", limit=1, suspects="no", **WANTED)
        await store.abandon("A", "two", delay=timedelta(0))
        await store.claim("A", limit=1, suspects="no", **WANTED)
        await store.abandon("A", "two", delay=timedelta(0))
        assert len(await take(store, "A", "head")) == 1
        assert len(await take(store, "B", "head")) == 1

    async def test_only_a_suspect_is_taken_by_who_made_room_for_it(self, store: AnyStore) -> None:
        await lease(store, "A")
        await store.start(NewRun("urgent", "T1", "w", priority=1))
        assert await take(store, "A", "only") == []
        await store.claim("A", limit=1, **WANTED)
        await insert(store, "suspect", tries=SUSPECT_AFTER)
        await store.start(NewRun("another", "T1", "w", priority=1))
        assert await take(store, "A", "only") == ["suspect"]

    async def test_of_two_workers_that_want_it_one_gets_it(self, make_store: Callable[[], AnyStore]) -> None:
        stores = [make_store(), make_store()]
        for each in stores:
            await each.open()
        await lease(stores[0], "A", "B")
        await insert(stores[0], "suspect", tries=SUSPECT_AFTER)
        modes: list[Suspects] = ["head", "only", "no"]
        taken = await asyncio.gather(
            *(take(each, worker, mode) for mode in modes for each, worker in zip(stores, "AB", strict=True))
        )
        assert [each for rows in taken for each in rows] == ["suspect"]
        for each in stores:
            await each.close()

    async def test_one_that_waits_is_seen_with_how_long(self, store: AnyStore) -> None:
        await lease(store, "A")
        assert await store.waiting_suspect(**WANTED) is None
        await insert(store, "good")
        assert await store.waiting_suspect(**WANTED) is None
        assert await take(store, "A", "no") == ["good"]
        await insert(store, "suspect", tries=SUSPECT_AFTER)
        await store.set_clock_offset(timedelta(seconds=40))
        found = await store.waiting_suspect(**WANTED)
        assert found is not None
        assert found[0] == "suspect"
        assert timedelta(seconds=39) < found[1] < timedelta(seconds=60)
        assert await store.waiting_suspect(queues=["tasks"], workflows=[("w", "1")]) is None
        assert await store.waiting_suspect(queues=["default"], workflows=[("w", "2")]) is None
        assert await take(store, "A", "only") == ["suspect"]
        assert await store.waiting_suspect(**WANTED) is None

    async def test_progress_clears_it(self, boot: Boot) -> None:
        """A step that was recorded shows that the run does not kill its process at once."""
        passed = asyncio.Event()

        @step(effect=Effect.READ)
        async def first(n: int) -> int:
            return n

        @step(effect=Effect.READ)
        async def second(n: int) -> int:
            passed.set()
            return n

        flow = workflow("w").then(first).then(second).commit()
        async with boot(flow, worker=False) as web:
            await insert(web.store, "0199-suspect", tries=SUSPECT_AFTER, input=b"1")
            async with boot(flow) as engine:
                await passed.wait()
                await in_state(engine, "0199-suspect", RunState.DONE, tenant="T1")
                assert (await engine.store.run("0199-suspect")).attempts == 0


class Gates:
    """Steps that stand in a gate until they are let through; `inside` are the runs that stand there."""

    def __init__(self) -> None:
        self.inside: set[str] = set()
        self.passed: list[str] = []
        self.open = asyncio.Event()

    async def wait(self, ctx: StepContext) -> None:
        self.inside.add(ctx.run_id)
        try:
            await self.open.wait()
        finally:
            self.inside.discard(ctx.run_id)
        self.passed.append(ctx.run_id)


@pytest.fixture
def gates() -> Gates:
    return Gates()


@pytest.fixture
def gated(gates: Gates) -> Any:
    @step(effect=Effect.READ)
    async def work(n: int, ctx: StepContext) -> int:
        await gates.wait(ctx)
        return n

    return workflow("w").then(work).commit()


class TestAlone:
    async def test_while_a_suspect_runs_its_worker_takes_nothing_else(
        self, boot: Boot, gates: Gates, gated: Any
    ) -> None:
        async with boot(gated, worker=False) as web:
            await insert(web.store, "suspect", tries=SUSPECT_AFTER, input=b"1")
            async with boot(gated) as engine:
                await until(lambda: _inside(gates, {"suspect"}))
                run = await engine.start(gated, 1)
                await engine.worker._claim()
                assert await engine.worker._claim() == 0
                assert gates.inside == {"suspect"}
                gates.open.set()
                await run.result(timeout=10)
                await in_state(engine, "suspect", RunState.DONE, tenant="T1")

    async def test_a_busy_worker_makes_room_for_one_that_waits(self, boot: Boot, gates: Gates, gated: Any) -> None:
        """No worker of the fleet is ever empty: one hands its runs over at their next step boundary, and takes the suspect alone."""
        steps: list[Any] = []

        @step(effect=Effect.READ)
        async def tick(n: int) -> int:
            steps.append(n)
            await asyncio.sleep(0.01)
            return n + 1

        busy = workflow("busy").dountil(tick, lambda n: gates.open.is_set(), max_iterations=100_000).commit()
        async with boot(busy, gated) as engine:
            engine.worker._quarantine = Quarantine(engine.store, patience=timedelta(0), notice_s=0.1)
            runs = [await engine.start(busy, n * 1000) for n in range(3)]
            await until(lambda: _holds(engine, 3))
            await insert(engine.store, "suspect", tries=SUSPECT_AFTER, input=b"1")
            await until(lambda: _inside(gates, {"suspect"}))
            assert await _holds(engine, 1)
            gates.open.set()
            for run in runs:
                await run.result(timeout=10)
            await in_state(engine, "suspect", RunState.DONE, tenant="T1")


async def _inside(gates: Gates, runs: set[str]) -> bool:
    return gates.inside == runs


async def _stands(gates: Gates, run_id: str) -> bool:
    return run_id in gates.inside


async def _holds(engine: Engine, count: int) -> bool:
    assert engine.worker is not None
    return len(engine.worker._held) == count


class TestFairness:
    async def test_a_tenant_with_a_thousand_runs_leaves_room_for_another(
        self, boot: Boot, gates: Gates, gated: Any
    ) -> None:
        async with boot(gated, concurrency=4, tenant_concurrency=3) as engine:
            many = [await engine.start(gated, n, tenant="many") for n in range(12)]
            await until(lambda: _holds(engine, 3))
            few = await engine.start(gated, 1, tenant="few")
            await until(lambda: _holds(engine, 4))
            await until(lambda: _stands(gates, few.id))
            gates.open.set()
            for run in [few, *many]:
                await run.result(timeout=10)

    async def test_without_a_limit_one_tenant_may_fill_the_worker(self, boot: Boot, gates: Gates, gated: Any) -> None:
        async with boot(gated, concurrency=4) as engine:
            runs = [await engine.start(gated, n, tenant="many") for n in range(6)]
            await until(lambda: _holds(engine, 4))
            gates.open.set()
            for run in runs:
                await run.result(timeout=10)

    async def test_a_queue_that_is_full_does_not_hold_up_another(self, boot: Boot, gates: Gates, gated: Any) -> None:
        async with boot(gated, concurrency=4, queues={"default": 4, "tasks": 1}) as engine:
            for n in range(6):
                await engine.store.start(NewRun(f"task-{n}", "T1", "w", queue="tasks", input=b"1"))
            await until(lambda: _holds(engine, 1))
            run = await engine.start(gated, 1)
            await until(lambda: _holds(engine, 2))
            await until(lambda: _stands(gates, run.id))
            gates.open.set()
            for n in range(6):
                await in_state(engine, f"task-{n}", RunState.DONE, tenant="T1")

    async def test_a_queue_nobody_serves_is_left(self, boot: Boot, gated: Any) -> None:
        async with boot(gated) as engine:
            await engine.store.start(NewRun("gpu-1", "T1", "w", queue="gpu", input=b"1"))
            await engine.worker._claim()
            assert (await engine.store.run("gpu-1")).state is RunState.READY
            async with boot(gated, queues=["gpu"]):
                await in_state(engine, "gpu-1", RunState.RUNNING, tenant="T1")


class TestLeaving:
    """SIGTERM while a step takes its time: `Engine.close` is what a role does then."""

    @pytest.mark.parametrize("effect", [Effect.READ, Effect.IDEMPOTENT, Effect.PURE])
    async def test_a_step_that_would_be_run_again_is_cut_off_and_its_run_handed_over(
        self, boot: Boot, gates: Gates, effect: Effect
    ) -> None:
        @step(effect=effect)
        async def stream(n: int, ctx: StepContext) -> int:
            await gates.wait(ctx)
            return n

        flow = workflow("w").then(stream).commit()
        async with boot(flow, worker=False) as web:
            async with boot(flow, grace_s=0.05, lease_s=60) as leaving:
                run = await leaving.start(flow, 1)
                await until(lambda: _inside(gates, {run.id}))
            row = await web.store.run(run.id)
            assert (row.state, row.attempts) == (RunState.READY, 0)
            assert gates.passed == []
            gates.open.set()
            async with boot(flow, lease_s=60) as taking:
                assert await (await taking.run(run.id)).result(timeout=10) == 1

    @pytest.mark.parametrize("effect", [Effect.IRREVERSIBLE, Effect.RECONCILE])
    async def test_what_cannot_be_undone_is_awaited(self, boot: Boot, gates: Gates, effect: Effect) -> None:
        async def look(key: str, value: int, ctx: StepContext) -> int | None:
            return None

        @step(effect=effect, reconcile=look if effect is Effect.RECONCILE else None)
        async def pay(n: int, ctx: StepContext) -> int:
            await gates.wait(ctx)
            return n

        flow = workflow("w").then(pay).then(pay.named("again")).commit()
        async with boot(flow, worker=False) as web:
            async with boot(flow, grace_s=0.05, lease_s=60) as leaving:
                run = await leaving.start(flow, 1)
                await until(lambda: _inside(gates, {run.id}))
                stopping = asyncio.create_task(leaving.worker.stop())
                await until(lambda: _interrupted(leaving))
                gates.open.set()
                await stopping
            assert gates.passed == [run.id]
            row = await web.store.run(run.id)
            assert (row.state, row.attempts) == (RunState.READY, 0)
            assert [record.path for record in await web.store.load(run.id)][-1] == "pay"

    async def test_a_run_that_undoes_its_work_is_handed_over_and_goes_on_undoing(
        self, boot: Boot, gates: Gates
    ) -> None:
        undoing, undone = asyncio.Event(), []

        async def undo(n: int) -> None:
            undoing.set()
            await gates.open.wait()
            undone.append(n)

        @step(effect=Effect.IDEMPOTENT, compensate=undo)
        async def book(n: int) -> int:
            return n

        @step(effect=Effect.READ)
        async def boom(n: int) -> int:
            raise ValueError("no")

        flow = workflow("w").then(book).then(boom).commit()
        async with boot(flow, worker=False) as web:
            async with boot(flow, grace_s=0.05, lease_s=60) as leaving:
                run = await leaving.start(flow, 1)
                await undoing.wait()
            assert (await web.store.run(run.id)).state is RunState.READY
            assert undone == []
            gates.open.set()
            async with boot(flow, lease_s=60) as taking:
                await in_state(taking, run.id, RunState.FAILED)
            assert undone == [1]

    async def test_each_run_is_given_back_as_soon_as_it_can_be(self, boot: Boot, gates: Gates) -> None:
        """One that can't be cut off does not keep the others from their next worker."""

        @step(effect=Effect.IRREVERSIBLE)
        async def pay(n: int, ctx: StepContext) -> Any:
            await gates.wait(ctx)
            return n

        @step(effect=Effect.READ)
        async def stream(n: int) -> int:
            if not gates.open.is_set() and gates.inside:
                await asyncio.Event().wait()
            return n

        slow, quick = workflow("slow").then(pay).commit(), workflow("quick").then(stream).commit()
        async with boot(slow, quick, worker=False) as web, boot(slow, quick, grace_s=0.05, lease_s=60) as leaving:
            paying = await leaving.start(slow, 1)
            await until(lambda: _inside(gates, {paying.id}))
            streaming = await leaving.start(quick, 1)
            await until(lambda: _holds(leaving, 2))
            stopping = asyncio.create_task(leaving.worker.stop())
            await in_state(web, streaming.id, RunState.READY)
            assert not stopping.done()
            gates.open.set()
            await stopping


async def _interrupted(engine: Engine) -> bool:
    assert engine.worker is not None
    return any(claim.interruption.flow is not None for claim, _ in engine.worker._held.values())


class TestRecovery:
    async def test_every_replica_takes_over_from_a_dead_one_by_default(
        self, boot: Boot, gates: Gates, gated: Any
    ) -> None:
        """Nothing has to be switched on, and no clock has to run: a worker is enough."""
        async with boot(gated, worker=False) as web:
            async with boot(gated, lease_s=0.2) as dying:
                run = await dying.start(gated, 1, run_id=str(uuid4()))
                await until(lambda: _inside(gates, {run.id}))
                await kill(dying)
            gates.open.set()
            async with boot(gated, lease_s=0.2):
                await in_state(web, run.id, RunState.DONE)


async def test_a_step_that_ignores_its_cancellation_does_not_end_the_worker_that_was_reaped(boot: Boot) -> None:
    begun, free = asyncio.Event(), asyncio.Event()

    @step(effect=Effect.READ)
    async def stubborn(n: int) -> int:
        begun.set()
        while not free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await free.wait()
        return n

    @step(effect=Effect.READ)
    async def quick(n: int) -> int:
        return n

    stuck, good = workflow("stuck").then(stubborn).commit(), workflow("good").then(quick).commit()
    async with boot(stuck, good, lease_s=0.3) as engine:
        await engine.start(stuck, 1)
        await begun.wait()
        assert engine.worker is not None
        reaped = engine.worker.worker_id
        await engine.store.unregister(reaped)

        async def is_another() -> bool:
            return engine.worker.worker_id != reaped and engine.worker.worker_id in await engine.store.workers()

        try:
            await until(is_another)
            assert await (await engine.start(good, 1)).result(timeout=10) == 1
        finally:
            free.set()
