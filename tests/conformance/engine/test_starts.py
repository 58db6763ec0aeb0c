"""A run that is started where a worker has room is worked there at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, double
from tests.conformance.engines import Boot, in_state, kill, until
from workflows import Effect, Engine, RunState, StepContext, step, workflow
from workflows.errors import InputError
from workflows.pubsub import Event, MemoryPubSub


@pytest.mark.store_only("a claim that begins with the first commit")
async def test_it_is_not_claimed_but_begun(boot: Boot) -> None:
    flow = workflow("w").then(double).commit()
    async with boot(flow, poll_s=60) as engine:
        await until(lambda: idle(engine))
        assert await (await engine.start(flow, 2)).result(timeout=5) == 4


@pytest.mark.store_only("a claim that begins with the first commit")
async def test_a_worker_that_is_full_leaves_it_to_others(boot: Boot) -> None:
    gate = asyncio.Event()

    @step(effect=READ)
    async def wait(n: int) -> int:
        await gate.wait()
        return n

    flow = workflow("w").then(wait).commit()
    async with boot(flow, concurrency=1) as engine:
        await until(lambda: idle(engine))
        first, second = await engine.start(flow, 1), await engine.start(flow, 2)
        await in_state(engine, first.id, RunState.RUNNING)
        assert await second.status() is RunState.READY
        gate.set()
        assert await second.result(timeout=10) == 2


async def test_the_same_id_started_again_is_not_begun_again(boot: Boot) -> None:
    ran: list[int] = []
    gate = asyncio.Event()

    @step(effect=READ)
    async def once(n: int) -> int:
        ran.append(n)
        await gate.wait()
        return n

    flow = workflow("w").then(once).commit()
    async with boot(flow) as engine:
        await until(lambda: idle(engine))
        runs = [await engine.start(flow, 1, run_id="the-one") for _ in range(3)]
        await until(lambda: truth(ran))
        runs.append(await engine.start(flow, 1, run_id="the-one"))
        gate.set()
        assert [await run.result(timeout=10) for run in runs] == [1] * 4
        assert ran == [1]


@pytest.mark.store_only("a claim that begins with the first commit")
async def test_its_signal_is_taken_in_without_another_look(boot: Boot) -> None:
    flow = workflow("w").wait_for("go", int).then(double).commit()
    async with boot(flow, poll_s=60) as engine:
        await until(lambda: idle(engine))
        outcome = await engine.signal_with_start(flow, tenant="default", key="k", name="go", dedup_key="d", payload=21)
        assert outcome.claimed
        assert await (await engine.run(outcome.run_id)).result(timeout=5) == 42


@pytest.mark.store_only("a claim that begins with the first commit")
async def test_a_leaving_worker_takes_nothing_more(boot: Boot) -> None:
    flow = workflow("w").then(double).commit()
    async with boot(flow) as engine:
        await until(lambda: idle(engine))
        engine.worker.draining = True
        run = await engine.start(flow, 1)
        assert await run.status() is RunState.READY


@pytest.mark.store_only("a claim that begins with the first commit")
async def test_one_whose_process_dies_right_after_is_worked_by_another(boot: Boot) -> None:
    flow = workflow("w").then(double).commit()
    async with boot(flow, lease_s=0.5) as engine:
        await until(lambda: idle(engine))
        worker = engine.worker
        new = worker.reserve(engine._new(flow, 4, tenant="default", key=None, run_id=None))
        assert new.owner == worker.worker_id
        await engine.store.start(new)
        await kill(engine)
    async with boot(flow, lease_s=0.5) as engine:
        assert await (await engine.run(new.run_id)).result(timeout=10) == 8


async def idle(engine: Engine) -> bool:
    """It has looked and found that nothing waits."""
    return engine.worker is None or (not engine.worker._more and not engine.worker._held)


async def truth(value: Any) -> bool:
    return bool(value)


@pytest.mark.store_only("the row of a worker")
@pytest.mark.parametrize("signalled", [False, True], ids=["started", "signalled"])
async def test_a_worker_whose_row_is_gone_does_not_begin_it(boot: Boot, *, signalled: bool) -> None:
    """It was taken for dead and has not noticed: nobody would free what it holds, and another works the run."""
    ran: list[int] = []

    @step
    async def charge(n: int) -> Any:
        ran.append(n)
        return n

    flow = workflow("w").wait_for("go", int).then(charge).commit() if signalled else workflow("w").then(charge).commit()
    async with boot(flow, lease_s=60) as gone:
        await until(lambda: idle(gone))
        await gone.store.unregister(gone.worker.worker_id)
        if signalled:
            outcome = await gone.signal_with_start(flow, tenant="default", key="k", name="go", dedup_key="d", payload=7)
            run = await gone.run(outcome.run_id)
            assert not outcome.claimed
        else:
            run = await gone.start(flow, 7)
        assert ((await run.row()).state, bool(gone.worker._held), ran) == (RunState.READY, False, [])
        async with boot(flow, lease_s=60) as other:
            assert await (await other.run(run.id)).result(timeout=10) == 7
    assert ran == [7]


@pytest.mark.store_only("the ids of all tenants' runs are one column of a store")
async def test_an_id_that_another_tenant_has_used_is_refused(boot: Boot) -> None:
    """Else it would be given a handle on a run it has no right to, or on none."""
    flow = workflow("w").then(double).commit()
    async with boot(flow) as engine:
        await (await engine.start(flow, 1, tenant="T1", run_id="same")).result(timeout=10)
        with pytest.raises(InputError, match="same"):
            await engine.start(flow, 2, tenant="T2", run_id="same")
        assert await (await engine.start(flow, 1, tenant="T1", run_id="same")).result(timeout=10) == 2


async def test_a_start_that_is_for_later_waits(boot: Boot) -> None:
    flow = workflow("w").then(double).commit()
    async with boot(flow) as engine:
        now = datetime.now(UTC)
        later = await engine.start(flow, 1, start_at=now + timedelta(hours=1))
        past = await engine.start(flow, 2, start_at=now - timedelta(hours=1))
        assert await past.result(timeout=10) == 4
        assert await later.status() is RunState.READY


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue": ""},
        {"queue": "x" * 201},
        {"queue": "a\nb"},
        {"priority": -1},
        {"priority": 1001},
        {"priority": True},
        {"priority": "1"},
        {"start_at": datetime(2026, 1, 1)},
    ],
)
async def test_where_a_run_can_not_stand_in_line_is_refused(boot: Boot, wrong: dict[str, Any]) -> None:
    flow = workflow("w").then(double).commit()
    async with boot(flow, worker=False) as engine:
        with pytest.raises(InputError):
            await engine.start(flow, 1, **wrong)
        assert await engine.runs(tenant="default") == []


@pytest.mark.store_only("the queues and the order of a store")
async def test_a_start_waits_on_its_queue_for_whoever_serves_it_and_by_its_priority(boot: Boot) -> None:
    order: list[int] = []

    @step(effect=Effect.READ)
    async def note(n: int) -> int:
        order.append(n)
        return n

    flow = workflow("w").then(note).commit()
    async with boot(flow) as engine:
        runs = [await engine.start(flow, n, queue="gpu", priority=priority) for n, priority in enumerate((100, 7, 50))]
        assert [await run.status() for run in runs] == [RunState.READY] * 3
        async with boot(flow, queues=["gpu"], concurrency=1) as serving:
            for run in runs:
                await (await serving.run(run.id)).result(timeout=10)
    assert order == [1, 2, 0]


@pytest.mark.store_only("the queues of a store")
async def test_who_is_signalled_or_told_is_woken_on_the_queue_of_its_run(boot: Boot) -> None:
    """A worker of another queue could do nothing about it."""
    child = workflow("child").then(double).commit()

    @step(effect=Effect.READ)
    async def begin(n: None, ctx: StepContext) -> str:
        return ctx.dispatch(child, 1)

    flow = workflow("w").then(begin).wait_for("task", dict[str, Any]).wait_for("go", int).wait_for("on", int).commit()
    bus, woken = MemoryPubSub(), list[str]()

    async def wake(event: Event) -> None:
        woken.append(event.type)

    options: dict[str, Any] = {"pubsub": bus, "poll_s": 60}
    async with (
        boot(flow, child, queues=["tasks"], **options) as tasks,
        boot(flow, child, queues=["gpu"], **options) as gpu,
    ):
        await until(lambda: idle(gpu))
        await until(lambda: idle(tasks))
        run = await tasks.start(flow, None, key="k", queue="gpu")
        await until(lambda: waits_for_signal(gpu, run.id, 1))
        await bus.subscribe("wake:gpu", wake)
        await tasks.signal(run.id, "go", 1)
        await until(lambda: waits_for_signal(gpu, run.id, 2))
        given = await tasks.signal_with_start(flow, tenant="default", key="k", name="on", dedup_key="d", payload=2)
        assert given.queue == "gpu"
        assert await run.result(timeout=10) == 2
        assert len(woken) >= 2


async def waits_for_signal(engine: Engine, run_id: str, used: int) -> bool:
    """It sleeps, and has used so many."""
    row = await engine.store.run(run_id)
    assert row is not None
    return row.state is RunState.SUSPENDED and row.inbox_seq == used and not await engine.store.inbox(run_id)
