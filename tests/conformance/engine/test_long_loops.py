"""A loop of very many rounds: taking its run up again reads a checkpoint and not all of them."""

from typing import Any

import pytest

from tests.conformance.engine.steps import READ, boom, double
from tests.conformance.engines import Boot, in_state, kill
from workflows import Effect, RunState, StepContext, step, workflow
from workflows.storage.base import Status

KEPT = 10


@pytest.fixture(autouse=True)
def few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflows.running.durable.ROUNDS_KEPT", KEPT)


class Rounds:
    """Counts how often each round ran."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.undone: list[int] = []

    async def once(self, n: int, ctx: StepContext) -> int:
        self.ran.append(n)
        ctx.set_state(last=n, total=ctx.state.get("total", 0) + n)
        return n + 1

    async def undo(self, n: int) -> None:
        self.undone.append(n)

    def step(self, **options: Any) -> Any:
        return step(id="once", effect=READ, **options)(self.once)


@pytest.mark.store_only("checkpoints are records of a store")
async def test_its_rounds_are_not_read_again_and_none_runs_twice(boot: Boot) -> None:
    rounds = Rounds()
    gate = workflow("gate").then(rounds.step()).wait_for("go", int).map(lambda _, state: state["last"] + 1).commit()
    flow = workflow("w").dowhile(gate, lambda n: n < 35, max_iterations=100).then(double).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        for n in range(30):
            await engine.signal(run.id, "go", n)
        await in_state(engine, run.id, RunState.SUSPENDED)
        whole, recalled = await engine.store.load(run.id), await engine.store.load(run.id, whole=False)
        assert len(whole) > 60
        assert len(recalled) < 3 * KEPT
        assert sum(record.status is Status.CHECKPOINT for record in recalled) == 1
        await kill(engine)
    async with boot(flow) as engine:
        for n in range(30, 35):
            await engine.signal(run.id, "go", n)
        again = await engine.run(run.id)
        assert await again.result(timeout=20) == 70
        assert sorted(rounds.ran) == list(range(35))
        assert (await again.state_at()).state == {"last": 34, "total": sum(range(35))}


async def test_the_bound_counts_the_rounds_behind_a_checkpoint(boot: Boot) -> None:
    rounds = Rounds()
    body = workflow("body").then(rounds.step()).wait_for("go", int).map(lambda _, state: state["last"] + 1).commit()
    flow = workflow("w").dowhile(body, lambda n: True, max_iterations=25).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        for n in range(20):
            await engine.signal(run.id, "go", n)
        await in_state(engine, run.id, RunState.SUSPENDED)
        for n in range(20, 25):
            await engine.signal(run.id, "go", n)
        await in_state(engine, run.id, RunState.FAILED)
        assert len(rounds.ran) == 25


async def test_a_loop_whose_rounds_can_be_undone_keeps_them_all(boot: Boot) -> None:
    rounds = Rounds()
    counted = rounds.step(compensate=rounds.undo)
    flow = workflow("w").dowhile(counted, lambda n: n < 25, max_iterations=30).then(boom).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        await in_state(engine, run.id, RunState.FAILED)
        assert rounds.undone == list(range(25, 0, -1))


@pytest.mark.store_only("checkpoints are records of a store")
async def test_a_fork_may_go_back_behind_a_checkpoint(boot: Boot) -> None:
    rounds = Rounds()
    flow = workflow("w").dowhile(rounds.step(), lambda n: n < 25, max_iterations=60).then(double).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        assert await run.result(timeout=20) == 50
        assert any(record.status is Status.CHECKPOINT for record in await run.steps())
        assert await (await run.time_travel("once#3", input=20)).result(timeout=20) == 50
        assert await (await run.time_travel("double", input=4)).result(timeout=20) == 8


@pytest.mark.store_only("checkpoints are records of a store")
async def test_a_loop_in_a_loop_has_checkpoints_of_its_own(boot: Boot) -> None:
    @step(effect=Effect.READ)
    async def plus(n: int) -> int:
        return n + 1

    inner = workflow("inner").dowhile(plus, lambda n: n % 15 != 0, max_iterations=20).commit()
    flow = workflow("w").dowhile(inner, lambda n: n < 45, max_iterations=10).wait_for("go", int).commit()
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        await in_state(engine, run.id, RunState.SUSPENDED)
        await engine.signal(run.id, "go", 1)
        assert await run.result(timeout=10) == 1
        kept = [record.path for record in await run.steps() if record.status is Status.CHECKPOINT]
        assert any(path.startswith("inner@") for path in kept), kept
        assert any("/plus@" in path for path in kept), kept
