"""What a run tells of itself: callbacks, progress and live events."""

import asyncio
import json
from typing import Any

from tests.conformance.engine.steps import READ, boom, double, increment
from tests.conformance.engines import Boot, in_state, until
from workflows import Callbacks, Moment, RunState, StepContext, step, workflow


def recording(told: list[tuple[str, Any]]) -> Callbacks:
    def note(name: str) -> Any:
        async def callback(moment: Moment) -> None:
            told.append((name, moment.path or moment.state.value))

        return callback

    names = ("on_start", "on_step", "on_suspend", "on_finish", "on_error")
    return Callbacks(**{name: note(name) for name in names})


async def test_they_are_told_of_a_runs_life_in_order(boot: Boot) -> None:
    told: list[tuple[str, Any]] = []
    flow = workflow("w", callbacks=recording(told)).then(double).wait_for("go", int).then(increment).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await in_state(engine, run.id, RunState.SUSPENDED)
        await until(lambda: _told(told, "on_suspend"))
        await engine.signal(run.id, "go", 1)
        await run.result(timeout=10)
        await until(lambda: _told(told, "on_finish"))
    assert told == [
        ("on_start", "running"),
        ("on_step", "double"),
        ("on_suspend", "suspended"),
        ("on_step", "increment"),
        ("on_finish", "done"),
    ]


async def test_a_failure_is_told_before_the_end(boot: Boot) -> None:
    told: list[tuple[str, Any]] = []
    flow = workflow("w", callbacks=recording(told)).then(boom).commit()
    async with boot(flow) as engine:
        await in_state(engine, (await engine.start(flow, 1)).id, RunState.FAILED)
        await until(lambda: _told(told, "on_finish"))
    assert told == [("on_start", "running"), ("on_error", "failed"), ("on_finish", "failed")]


async def test_one_that_raises_harms_nothing(boot: Boot) -> None:
    def bad(moment: Moment) -> None:
        raise RuntimeError("the callback's own fault")

    callbacks = Callbacks(on_start=bad, on_step=bad, on_suspend=bad, on_finish=bad, on_error=bad)
    flow = workflow("w", callbacks=callbacks).then(double).then(increment).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 2)).result(timeout=10) == 5


async def test_one_that_hangs_is_given_up(boot: Boot, monkeypatch: Any) -> None:
    monkeypatch.setattr("workflows.definition.callbacks.LIMIT_S", 0.05)

    async def hang(moment: Moment) -> None:
        await asyncio.Event().wait()

    flow = workflow("w", callbacks=Callbacks(on_step=hang)).then(double).then(increment).commit()
    async with boot(flow) as engine:
        assert await (await engine.start(flow, 2)).result(timeout=10) == 5


async def test_one_that_is_cancelled_inside_harms_nothing(boot: Boot) -> None:
    """Its CancelledError is its own affair, no order to the run to stop."""

    async def cancelled(moment: Moment) -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        task.cancel()
        await task

    callbacks = Callbacks(
        on_start=cancelled, on_step=cancelled, on_suspend=cancelled, on_finish=cancelled, on_error=cancelled
    )
    ran: list[int] = []

    @step
    async def charge(n: int) -> Any:
        ran.append(n)
        return n

    flow = workflow("w", callbacks=callbacks).then(charge).wait_for("go", int).then(charge.named("again")).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await in_state(engine, run.id, RunState.SUSPENDED)
        await engine.signal(run.id, "go", 2)
        assert await run.result(timeout=10) == 2
    assert ran == [1, 2]


async def test_what_was_done_is_recorded_while_one_hangs(boot: Boot) -> None:
    """An effect whose record waited for a callback would be in doubt if the process died there."""
    told, hang, ran = asyncio.Event(), asyncio.Event(), list[int]()

    async def hangs(moment: Moment) -> None:
        told.set()
        await hang.wait()

    @step
    async def charge(n: int) -> Any:
        ran.append(n)
        return n

    flow = workflow("w", callbacks=Callbacks(on_step=hangs)).then(charge).map(lambda n: n + 1).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await told.wait()
        await until(lambda: _recorded(run, "charge"))
        hang.set()
        assert await run.result(timeout=10) == 2
    assert ran == [1]


async def _recorded(run: Any, path: str) -> bool:
    return path in [record.path for record in await run.steps()]


async def test_items_of_a_list_tell_of_their_progress(boot: Boot) -> None:
    flow = workflow("w").wait_for("go", int).map(lambda n: list(range(n))).foreach(double, concurrency=2).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, None)
        seen: list[tuple[int, int]] = []

        async def listen(event: Any) -> None:
            if event.type == "progress":
                seen.append((event.data["done"], event.data["total"]))

        await engine.pubsub.subscribe(f"default:run:{run.id}", listen)
        await engine.signal(run.id, "go", 4)
        await run.result(timeout=10)
        await until(lambda: _length(seen, 4))
    assert sorted(seen) == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_a_steps_own_events_reach_whoever_listens(boot: Boot) -> None:
    @step(effect=READ)
    async def talk(n: int, ctx: StepContext) -> int:
        await ctx.emit("token", text="hello")
        return n

    flow = workflow("w").wait_for("go", int).then(talk).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, None)
        seen: list[Any] = []

        async def listen(event: Any) -> None:
            if event.type == "token":
                seen.append((event.data["text"], event.data["path"]))

        await engine.pubsub.subscribe(f"default:run:{run.id}", listen)
        await engine.signal(run.id, "go", 4)
        await run.result(timeout=10)
        await until(lambda: _length(seen, 1))
    assert seen == [("hello", "talk")]


async def test_all_that_happens_to_a_thread_is_on_its_topic_and_a_run_tells_its_own(boot: Boot) -> None:
    @step(effect=READ)
    async def talk(n: None, ctx: StepContext) -> None:
        for said in await ctx.signals.drain("message"):
            await ctx.emit("token", text=json.loads(said.payload or b"null"))

    flow = workflow("w").then(talk).commit()
    async with boot(flow) as engine:
        seen: list[Any] = []

        async def listen(event: Any) -> None:
            seen.append((event.type, event.data.get("text"), event.data["run_id"]))

        await engine.pubsub.subscribe("default:thread:C1:1.1", listen)
        runs = []
        for text in ("hello", "again"):
            outcome = await engine.signal_with_start(
                flow, tenant="default", key="C1:1.1", name="message", dedup_key=text, payload=text
            )
            assert outcome.run_id is not None
            runs.append(await engine.run(outcome.run_id))
            await runs[-1].result(timeout=10)
        await until(lambda: _length(seen, 6))
        told = [(event.type, event.data.get("text")) async for event in runs[1].events(after="0-0")]
    first, second = (run.id for run in runs)
    assert sorted(seen) == sorted(
        (type_, text, run_id)
        for said, run_id in (("hello", first), ("again", second))
        for type_, text in (("message", None), ("token", said), ("completed", None))
    )
    assert sorted(told) == [("completed", None), ("message", None), ("token", "again")]


async def test_its_events_can_be_followed_to_its_end_and_replayed(boot: Boot) -> None:
    @step(effect=READ)
    async def talk(n: int, ctx: StepContext) -> int:
        await ctx.emit("token", text="a")
        await ctx.emit("token", text="b")
        return n

    flow = workflow("w").wait_for("go", int).then(talk).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, None)
        following = asyncio.create_task(_followed(run))
        await in_state(engine, run.id, RunState.SUSPENDED)
        await engine.signal(run.id, "go", 4)
        await run.result(timeout=10)
        async with asyncio.timeout(10):
            assert (await following)[-1:] == ["completed"]
            replayed = [event.type async for event in run.events(after="0-0")]
    assert replayed[-3:] == ["token", "token", "completed"]


async def _followed(run: Any) -> list[str]:
    return [event.type async for event in run.events()]


async def _told(told: list[tuple[str, Any]], name: str) -> bool:
    return any(each[0] == name for each in told)


async def _length(seen: list[Any], wanted: int) -> bool:
    return len(seen) == wanted
