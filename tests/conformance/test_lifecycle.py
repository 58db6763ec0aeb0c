"""What is told of runs over the bus, after the commit that made it so. One suite, every store, and a bus in the process and on Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.conftest import AnyStore
from tests.conformance.engines import Boot, _leave, in_state, kill
from tests.waiting import Seen, until
from workflows import Effect, Engine, RunState, StepContext, Workflow, step, workflow
from workflows.pubsub import Event, MemoryPubSub, PubSubUnavailableError, RedisPubSub
from workflows.pubsub.hints import run_topic, wake_topic
from workflows.running.lifecycle import LIMIT, RESULTS, Lifecycle
from workflows.storage.base import NewRun
from workflows.tracing import Tracer


class Work:
    """A parent that begins a background run on a queue, and waits for its end. The child does what it is told."""

    def __init__(self) -> None:
        self.child_id = ""
        self.gate = asyncio.Event()

        @step(effect=Effect.READ)
        async def obey(what: str) -> str:
            if what == "fail":
                raise ValueError("told to")
            if what == "wait":
                await self.gate.wait()
            return what

        self.child: Workflow[str, str] = workflow("child").then(obey).commit()
        self.sleeper: Workflow[str, str] = workflow("sleeper").then(obey).sleep(3600).commit()

        @step(effect=Effect.READ)
        async def begin(what: str, ctx: StepContext) -> str:
            child = self.sleeper if what == "sleep" else self.child
            self.child_id = ctx.dispatch(child, what, queue="tasks")
            return self.child_id

        self.parent: Workflow[str, Any] = workflow("parent").then(begin).wait_for("task", dict[str, Any]).commit()

    @property
    def flows(self) -> tuple[Workflow[Any, Any], ...]:
        return self.child, self.sleeper, self.parent


@pytest.fixture
def work() -> Work:
    return Work()


Bus = MemoryPubSub | RedisPubSub


@pytest.fixture(params=["memory", "redis"])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[Bus]:
    bus: Bus
    if request.param == "memory":
        bus = MemoryPubSub(quiet=True)
    else:
        bus = RedisPubSub(request.getfixturevalue("redis_url"), request.getfixturevalue("redis_prefix"), block_ms=200)
    yield bus
    await bus.close()


class Shared:
    """A bus that outlives the engines on it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def close(self) -> None:
        return


@pytest.fixture
async def engine(make_store: Callable[[], AnyStore], bus: Bus, work: Work) -> AsyncIterator[Engine]:
    """It never polls: only what it is told makes it look."""
    engine = Engine(store=make_store(), pubsub=Shared(bus), workflows=work.flows, poll_s=3600, lease_s=3600)
    await engine.open()
    yield engine
    await _leave(engine)


async def begin(engine: Engine, work: Work, what: str) -> str:
    run = await engine.start(work.parent, what, tenant="T1", key="thread")
    return run.id


async def test_a_background_run_is_told_of_from_its_beginning_to_its_end(engine: Engine, bus: Bus, work: Work) -> None:
    of_parent, of_child, results = Seen(), Seen(), Seen()
    await bus.subscribe(RESULTS, results)
    parent = await begin(engine, work, "wait")
    await bus.subscribe(run_topic("T1", parent, "thread"), of_parent, after="0")
    await of_parent.reach(1)
    (dispatched,) = of_parent.events
    assert (dispatched.type, dispatched.data["run_id"], dispatched.data["queue"]) == (
        "dispatched",
        work.child_id,
        "tasks",
    )
    await bus.subscribe(run_topic("T1", work.child_id, None), of_child, after="0")
    await of_child.reach(1)
    work.gate.set()
    await results.reach(1)
    await of_child.reach(2)
    assert of_child.types == ["running", "completed"]
    assert results.types == ["completed"]
    assert results.events[0].data == {
        "run_id": work.child_id,
        "tenant": "T1",
        "workflow": "child",
        "key": None,
        "parent_id": parent,
        "parent_path": "begin",
        "state": "done",
    }
    await in_state(engine, parent, RunState.DONE, tenant="T1")
    await until(lambda: of_parent.types[-1] == "completed", "the parent's own end")
    assert [event.data["run_id"] for event in results.events] == [work.child_id]  # the parent is no background run


@pytest.mark.parametrize(("what", "types"), [("fail", ["failed"]), ("wait", ["cancelled"])])
async def test_another_end_is_told_as_what_it_is(
    engine: Engine, bus: Bus, work: Work, what: str, types: list[str]
) -> None:
    results = Seen()
    await bus.subscribe(RESULTS, results)
    parent = await begin(engine, work, what)
    if what == "wait":
        await until(lambda: bool(work.child_id), "the child")
        await in_state(engine, work.child_id, RunState.RUNNING, tenant="T1")
        await (await engine.run(work.child_id, tenant="T1")).cancel()
    await results.reach(1)
    assert results.types == types
    await in_state(engine, parent, RunState.DONE, tenant="T1")


async def test_a_run_that_sleeps_is_told_of_as_suspended(engine: Engine, bus: Bus, work: Work) -> None:
    await begin(engine, work, "sleep")
    await until(lambda: bool(work.child_id), "the child")
    of_child = Seen()
    await bus.subscribe(run_topic("T1", work.child_id, None), of_child, after="0")
    await of_child.reach(2)
    assert of_child.types == ["running", "suspended"]


async def test_a_worker_elsewhere_is_woken_for_its_queue_and_for_the_parent(
    make_store: Callable[[], AnyStore], bus: Bus, work: Work
) -> None:
    """Neither of the two polls: one serves the parent's queue, the other the child's."""
    engines = []
    for queue in ("default", "tasks"):
        engine = Engine(
            store=make_store(), pubsub=Shared(bus), workflows=work.flows, queues=[queue], poll_s=3600, lease_s=3600
        )  # fmt: skip
        await engine.open()
        engines.append(engine)
    parent = await begin(engines[0], work, "do")
    await in_state(engines[0], parent, RunState.DONE, tenant="T1")
    for engine in engines:
        await _leave(engine)


async def test_a_run_of_any_queue_wakes_a_worker_that_serves_it(
    make_store: Callable[[], AnyStore], bus: Bus, work: Work
) -> None:
    engine = Engine(
        store=make_store(), pubsub=Shared(bus), workflows=work.flows, queues=["gpu"], poll_s=3600, lease_s=3600
    )
    await engine.open()
    await until(lambda: engine.worker is not None and engine.worker._look_at > 0, "its first look")
    entry = await engine.schedules.put("s", work.child, "do", tenant="T1", spec=timedelta(hours=1), queue="gpu")
    firing = await engine.schedules.run_now(entry.name, tenant="T1")
    await in_state(engine, firing.run_id, RunState.DONE, tenant="T1")
    await _leave(engine)


@pytest.mark.parametrize("what", ["answer", "cancel"])
async def test_an_answer_and_a_cancel_wake_a_worker_of_the_runs_own_queue(
    make_store: Callable[[], AnyStore], bus: Bus, what: str
) -> None:
    """It never polls, and serves no other queue."""

    @step(effect=Effect.READ)
    async def ask(question: str, ctx: StepContext) -> int:
        return await ctx.suspend(question, resume=int)

    asking = workflow("asking").then(ask).commit()
    engine = Engine(
        store=make_store(), pubsub=Shared(bus), workflows=[asking], queues=["gpu"], poll_s=3600, lease_s=3600
    )
    await engine.open()
    await engine.schedules.put("s", asking, "how many?", tenant="T1", spec=timedelta(hours=1), queue="gpu")
    firing = await engine.schedules.run_now("s", tenant="T1")
    run = await engine.run(firing.run_id, tenant="T1")
    await in_state(engine, run.id, RunState.SUSPENDED, tenant="T1")
    await (run.resume(7) if what == "answer" else run.cancel())
    await in_state(engine, run.id, RunState.DONE if what == "answer" else RunState.CANCELLED, tenant="T1")
    await _leave(engine)


async def test_the_death_of_a_background_run_is_told_and_wakes_its_parent(boot: Boot, bus: Bus, work: Work) -> None:
    results = Seen()
    await bus.subscribe(RESULTS, results)
    async with boot(*work.flows, worker=False) as web:
        await web.store.start(NewRun("0199-parent", "T1", "parent", key="thread", input=b'"wait"'))
        async with boot(*work.flows, lease_s=0.2) as dying:
            await until(lambda: bool(work.child_id), "the child")
            await in_state(dying, work.child_id, RunState.RUNNING, tenant="T1")
            await web.store.write(_last_attempt(work.child_id))
            await kill(dying)
        async with boot(*work.flows, lease_s=0.2, pubsub=Shared(bus)) as second:
            await results.reach(1)
            assert (results.types, results.events[0].data["state"]) == (["failed"], "dead")
            await in_state(second, "0199-parent", RunState.DONE, tenant="T1")


def _last_attempt(run_id: str) -> Any:
    from workflows.storage import Update
    from workflows.storage.tables import RUNS

    return Update(RUNS, {"tenant": "T1", "run_id": run_id}, {"attempts": 5})


class Away:
    """A bus that can't be reached, or that takes its time."""

    def __init__(self, *, gate: asyncio.Event | None = None, error: Exception | None = None) -> None:
        self.published: list[tuple[str, str]] = []
        self._gate = gate
        self._error = error

    async def publish(self, topic: str, event: Event) -> str:
        if self._gate is not None:
            await self._gate.wait()
        if self._error is not None:
            raise self._error
        self.published.append((topic, event.type))
        return "1-0"


class TestPublishing:
    """How it is told: in the background, in order, and never at the run's cost."""

    async def test_in_order_and_off_the_runs_path(self) -> None:
        gate = asyncio.Event()
        bus = Away(gate=gate)
        lifecycle = Lifecycle(bus, Tracer())  # type: ignore[arg-type]
        lifecycle.due("default", "tasks", "gpu", "tasks")
        await asyncio.sleep(0)
        assert bus.published == []
        gate.set()
        await lifecycle.close()
        topics = [topic for topic, _ in bus.published]
        assert sorted(topics) == ["tasks", "tasks", "wake", "wake:gpu"]

    @pytest.mark.parametrize("error", [PubSubUnavailableError("away"), ValueError("odd")])
    async def test_a_bus_that_refuses_harms_nothing(self, error: Exception) -> None:
        lifecycle = Lifecycle(Away(error=error), Tracer())  # type: ignore[arg-type]
        lifecycle.due("default")
        await lifecycle.close()
        lifecycle.due("default")
        await lifecycle.close()

    async def test_a_bus_that_hangs_holds_up_neither_the_end_nor_more_than_the_newest(self) -> None:
        lifecycle = Lifecycle(Away(gate=asyncio.Event()), Tracer())  # type: ignore[arg-type]
        for _ in range(LIMIT + 100):
            lifecycle.due("default")
        assert len(lifecycle._waiting) == LIMIT
        await lifecycle.close(within_s=0.05)

    async def test_a_thousand_children_wake_no_more_than_a_few_workers(self) -> None:
        bus = Away()
        lifecycle = Lifecycle(bus, Tracer())  # type: ignore[arg-type]
        lifecycle.due(*["tasks"] * 1000)
        await lifecycle.close()
        assert len(bus.published) == 16

    def test_each_queue_has_a_topic_of_its_own(self) -> None:
        assert [wake_topic(queue) for queue in ("default", "tasks", "gpu")] == ["wake", "tasks", "wake:gpu"]
