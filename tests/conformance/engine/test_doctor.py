"""What the doctor finds."""

from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.engine.steps import double, increment
from tests.conformance.engines import Boot, move_clock, until
from workflows import Engine, RunState, workflow

pytestmark = pytest.mark.store_only("the doctor looks at the rows of a store")


async def kinds(engine: Engine) -> list[tuple[str, str | None, int]]:
    return sorted((each.kind, each.workflow, each.count) for each in await engine.doctor())


async def test_nothing_when_all_is_well(boot: Boot) -> None:
    flow = workflow("w").then(double).wait_for("go", int).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 1)
        await until(lambda: _suspended(engine, run.id))
        assert await kinds(engine) == []


async def test_runs_of_a_version_that_nobody_knows(boot: Boot) -> None:
    first, second = (
        workflow("w", version="1").then(double).commit(),
        workflow("w", version="2").then(increment).commit(),
    )
    async with boot(first, worker=False) as engine:
        await engine.start(first, 1)
        await engine.start(first, 2)
    async with boot(second) as engine:
        assert await kinds(engine) == [("stranded", "w", 2)]
        (finding,) = await engine.doctor()
        assert "'w' version '1'" in finding.message


async def test_runs_that_wait_while_no_worker_lives(boot: Boot) -> None:
    flow = workflow("w").then(double).commit()
    async with boot(flow, worker=False) as engine:
        await engine.start(flow, 1)
        assert await kinds(engine) == [("no-worker", None, 1)]
        await move_clock(engine, timedelta(minutes=5))
        assert await kinds(engine) == [("no-worker", None, 1), ("overdue", "w", 1)]


async def test_dead_runs(boot: Boot) -> None:
    flow = workflow("w", max_attempts=1).then(double).commit()
    async with boot(flow, worker=False) as engine:
        run = await engine.start(flow, 1)
        await die(engine, run.id)
        assert await kinds(engine) == [("dead", "w", 1)]


async def die(engine: Any, run_id: str) -> None:
    """Let a run die of its only attempt."""
    await engine.store.register("lost", host="h", deployment="", lease=timedelta(seconds=-1))
    row = await engine.store.run(run_id)
    claimed = await engine.store.claim("lost", queues=["default"], workflows=[(row.workflow, row.version)], limit=100)
    assert run_id in [each.run_id for each in claimed]
    for each in (await engine.store.reap()).dead:
        await engine.store.end(
            each.run_id, each.fence, RunState.DEAD, inbox_seen=each.inbox_seq, successor_id=f"s-{each.run_id}"
        )


async def _suspended(engine: Engine, run_id: str) -> bool:
    row = await engine.store.run(run_id)
    return row is not None and row.state is RunState.SUSPENDED
