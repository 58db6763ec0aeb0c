"""A failed run goes backwards only: whatever comes between, it is undone to its start and ends failed."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom, double, increment
from tests.conformance.engines import Boot, in_state, kill, move_clock, until
from workflows import Effect, Run, RunFailedError, RunState, Step, StepContext, step, workflow
from workflows.pubsub import Event

ENDED = (RunState.FAILED, RunState.CANCELLED, RunState.DONE)


def undone_by(undo: Callable[..., Awaitable[None]], *, name: str = "pay") -> Step[Any, Any]:
    """A step that adds one and is undone by `undo`, which is given its output."""

    async def act(n: int) -> int:
        return n + 1

    return step(id=name, effect=Effect.IDEMPOTENT, compensate=undo)(act)


@pytest.mark.store_only("a worker that leaves hands over what it holds in a store")
async def test_a_cancel_and_a_leaving_worker_in_its_middle_do_not_keep_it_from_its_end(boot: Boot) -> None:
    """A run that is being undone has failed already: it is not cancelled, and the next worker undoes the rest."""
    at, undone = list[int](), list[int]()
    holds = {1: asyncio.Event(), 2: asyncio.Event()}

    async def undo(n: int) -> None:
        at.append(n)
        await holds[n].wait()
        undone.append(n)

    flow = workflow("w").then(undone_by(undo, name="one")).then(undone_by(undo, name="two")).then(boom).commit()
    async with boot(flow, grace_s=0.1) as leaving:
        run = await leaving.start(flow, 0)
        await until(lambda: _is(at, [2]))
        await run.cancel()
        await leaving.worker.controlled(Event("cancel", {"run_id": run.id}))
        holds[2].set()
        await until(lambda: _is(at, [2, 1]))
    holds[1].set()
    async with boot(flow) as engine:
        await in_state(engine, run.id, *ENDED)
        assert (await (await engine.run(run.id)).status(), undone) == (RunState.FAILED, [2, 1])


@pytest.mark.store_only("a worker that leaves hands over what it holds in a store")
async def test_a_cancel_of_its_first_undo_does_not_either(boot: Boot) -> None:
    started, hold, undone = asyncio.Event(), asyncio.Event(), list[int]()

    async def undo(n: int) -> None:
        started.set()
        await hold.wait()
        undone.append(n)

    flow = workflow("w").then(undone_by(undo)).then(boom).commit()
    async with boot(flow, grace_s=0.1) as leaving:
        run = await leaving.start(flow, 1)
        await started.wait()
        await run.cancel()
        await leaving.worker.controlled(Event("cancel", {"run_id": run.id}))
    hold.set()
    async with boot(flow) as engine:
        await in_state(engine, run.id, *ENDED)
        assert (await (await engine.run(run.id)).status(), undone) == (RunState.FAILED, [2])


async def test_a_cancel_that_comes_after_a_committed_failure_leaves_nothing_standing(boot: Boot) -> None:
    """One arm has failed for good while another works on: the run has failed, and what it did is undone."""
    undone, runs = list[int](), list[Run[Any]]()
    committed = asyncio.Event()

    async def undo(n: int) -> None:
        undone.append(n)

    @step(effect=READ)
    async def slow(n: int, ctx: StepContext) -> int:
        async def failure_committed() -> bool:
            await ctx.note(f"way {next(way)}", 1)  # what else is known is committed with it
            return bool(runs) and await _recorded(runs[0], "boom")

        way = itertools.count()
        await until(failure_committed)
        committed.set()
        await asyncio.Event().wait()
        return n

    arm = workflow("arm").then(slow).then(increment).commit()
    flow = workflow("w").then(undone_by(undo)).parallel(boom, arm).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        runs.append(run)
        await committed.wait()
        await run.cancel()
        await in_state(engine, run.id, *ENDED)
        assert (await run.status(), undone) == (RunState.FAILED, [2])


async def test_a_bail_in_it_is_its_end_and_no_result(boot: Boot) -> None:
    undone: list[int] = []

    async def undo(n: int, ctx: StepContext) -> None:
        undone.append(n)
        ctx.bail(1)

    flow = workflow("w").then(undone_by(undo)).then(boom).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        with pytest.raises(RunFailedError, match="no 2"):
            await run.result(timeout=10)
        assert (await run.status(), undone) == (RunState.FAILED, [2])


@pytest.mark.store_only("another deployment takes over what a store has of the run")
async def test_code_that_was_mended_meanwhile_does_not_turn_it_into_a_success(boot: Boot) -> None:
    """Half of it may be undone already: going on from there would give a result that nothing stands behind."""
    started, undone = asyncio.Event(), list[int]()

    async def undo(n: int) -> None:
        undone.append(n)
        if len(undone) == 1:
            started.set()
            await asyncio.Event().wait()

    def broken(n: int) -> int:
        raise ValueError("mended by the next deployment")

    def mended(n: int) -> int:
        return n

    flow = workflow("w").then(undone_by(undo)).map(broken).then(double).commit()
    later = workflow("w").then(undone_by(undo)).map(mended).then(double).commit()
    async with boot(flow) as first:
        run = await first.start(flow, 1)
        await started.wait()
        await kill(first)
        await move_clock(first, timedelta(minutes=1))
        async with boot(later, lease_s=0.2) as second:
            await in_state(second, run.id, *ENDED)
            again = await second.run(run.id)
            assert (await again.status(), undone) == (RunState.FAILED, [2, 2])
            assert "double" not in [record.path for record in await again.steps()]


async def _is(seen: list[int], wanted: list[int]) -> bool:
    return seen == wanted


async def _recorded(run: Run[Any], path: str) -> bool:
    return path in [record.path for record in await run.steps()]


@pytest.mark.store_only("a run that waits is held by no worker of a store")
async def test_an_undo_that_waits_long_lets_go_also_of_a_run_that_was_asked_to_stop(boot: Boot) -> None:
    """It would be walked again and again, at the full speed of its worker, until the wait is over."""
    undone = list[int]()

    class Busy(Exception):
        retry_after_s = 3600.0

    async def undo(n: int) -> None:
        undone.append(n)
        if len(undone) == 1:
            raise Busy

    flow = workflow("w").then(undone_by(undo)).then(boom).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await in_state(engine, run.id, RunState.SUSPENDED)
        fence = (await run.row()).fence
        await run.cancel()

        async def let_go_again() -> bool:
            row = await run.row()
            return row.state is RunState.SUSPENDED and row.fence > fence

        await until(let_go_again)
        await move_clock(engine, timedelta(hours=2))
        engine.worker.wake()
        with pytest.raises(RunFailedError, match="failed"):
            await run.result(timeout=10)
    assert undone == [2, 2]
