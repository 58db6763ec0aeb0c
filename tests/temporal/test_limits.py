"""What runs in Temporal can't do says so, and what to use instead; docs/temporal.md has each of them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.engine.steps import READ, double
from tests.conformance.engines import Boot
from workflows import Engine, RunFailedError, StepContext, Workflow, step, workflow
from workflows.errors import UnsupportedError
from workflows.storage import Insert
from workflows.storage.tables import RECEIVED
from workflows.temporal.limits import LIMITS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "temporal.md").read_text()
ROW = Insert(RECEIVED, {"tenant": "T1", "dedup_key": "d"})

flow = workflow("w").then(double).commit()
waiting = workflow("waiting").wait_for("go", int).commit()
child = workflow("child").then(double).commit()


@step(effect=READ)
async def writes(n: int, ctx: StepContext) -> int:
    ctx.write(ROW)
    return n


@step(effect=READ)
async def notes_with_rows(n: int, ctx: StepContext) -> int:
    await ctx.note("fact", n, writes=[ROW])
    return n


@step(effect=READ)
async def dispatches_elsewhere(n: int, ctx: StepContext) -> str:
    return ctx.dispatch(child, n, queue="slow")


async def _fails(engine: Engine, node: Any) -> None:
    """Run a workflow of one step; raise what it failed with."""
    alone: Workflow[Any, Any] = engine.workflow(f"only-{node.id}")
    with pytest.raises(RunFailedError) as failed:
        await (await engine.start(alone, 1)).result(timeout=20)
    kinds = {"UnsupportedError": UnsupportedError}
    raise kinds[failed.value.failure["type"]](failed.value.failure["message"])


async def _ended(engine: Engine) -> Any:
    run = await engine.start(flow, 1)
    await run.result(timeout=20)
    return run


ASKED: list[tuple[str, Callable[[Engine], Awaitable[Any]]]] = [
    ("writes", lambda engine: engine.start(flow, 1, writes=[ROW])),
    ("writes", lambda engine: engine.signal_with_start(waiting, tenant="T1", key="k", name="m", dedup_key="d", writes=[ROW])),
    ("writes", lambda engine: _fails(engine, writes)),
    ("writes", lambda engine: _fails(engine, notes_with_rows)),
    ("queues", lambda engine: _fails(engine, dispatches_elsewhere)),
    ("queues", lambda engine: engine.start(flow, 1, queue="slow")),
    ("priority", lambda engine: engine.start(flow, 1, priority=1)),
    ("approvals", lambda engine: engine.decide(flow, tenant="T1", approval_id="a", decision="approved", by="ada")),
    ("schedules", lambda engine: engine.schedule("nightly", flow, 1, spec="0 3 * * *", tz="UTC")),
    ("doctor", lambda engine: engine.doctor()),
    ("letters", lambda engine: engine.dead_letters.redrive("1.1.r", tenant="T1")),
    ("letters", lambda engine: engine.dead_letters.drop("1.1.r", tenant="T1")),
    ("paused", lambda engine: engine.start(flow, 1, paused=True)),
]  # fmt: skip
ASKED_OF_A_RUN: list[tuple[str, Callable[[Any], Awaitable[Any]]]] = [
    ("fork", lambda run: run.time_travel()),
    ("redrive", lambda run: run.redrive()),
    ("paused", lambda run: run._runs.signal(run.id, tenant="default", name="$step", dedup_key="1", payload=None)),
]


@pytest.mark.parametrize(("purpose", "ask"), ASKED)
async def test_it_is_refused(boot: Boot, purpose: str, ask: Callable[[Engine], Awaitable[Any]]) -> None:
    alone = [
        workflow(f"only-{each.id}").then(each).commit() for each in (writes, notes_with_rows, dispatches_elsewhere)
    ]
    async with boot(flow, waiting, child, *alone) as engine:
        with pytest.raises(UnsupportedError) as refused:
            await ask(engine)
        assert str(refused.value) == f"runs are in Temporal: {LIMITS[purpose]}"
        assert await engine.runs(tenant="T1") == []


@pytest.mark.parametrize(("purpose", "ask"), ASKED_OF_A_RUN)
async def test_so_is_it_of_a_run(boot: Boot, purpose: str, ask: Callable[[Any], Awaitable[Any]]) -> None:
    async with boot(flow) as engine:
        run = await _ended(engine)
        with pytest.raises(UnsupportedError) as refused:
            await ask(run)
        assert str(refused.value) == f"runs are in Temporal: {LIMITS[purpose]}"


def test_every_limit_is_tried_here_and_is_in_the_document() -> None:
    assert {purpose for purpose, _ in (*ASKED, *ASKED_OF_A_RUN)} == set(LIMITS)
    for purpose, message in LIMITS.items():
        assert message in DOCUMENT.replace("\n", " "), f"docs/temporal.md does not say of {purpose}: {message}"
