"""What an arm decides by the run's state stays decided: another arm sets the state, the worker dies, and the run is walked again."""

import asyncio
from typing import Any

import pytest

from tests.conformance.engine.steps import READ
from tests.conformance.engines import Boot, kill, until
from workflows import StepContext, Workflow, path, step, workflow
from workflows.running.replay import verify


class Arms:
    """One arm decides, takes a step, and is stuck in the next until it may go on; the other sets the state meanwhile."""

    def __init__(self) -> None:
        self.stuck, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.ran: list[str] = []

    def flow(self, kind: str) -> Workflow[Any, Any]:
        async def sets(n: int, ctx: StepContext) -> int:
            await self.stuck.wait()
            ctx.set_state(late=True)
            return n

        decided = getattr(self, f"_{kind}")()
        return (
            workflow("w")
            .parallel(step(id="sets", effect=READ)(sets), decided)
            .map(lambda both: both["decides"])
            .commit()
        )

    def _step(self, name: str, *, stuck: bool = False, by: int = 1) -> Any:
        async def runs(n: int, ctx: StepContext) -> int:
            if stuck:
                self.stuck.set()
                await self.may_go_on.wait()
            self.ran.append(name)
            return n + by

        return step(id=name, effect=READ)(runs)

    def _rest(self, name: str) -> Workflow[Any, Any]:
        return workflow(name).then(self._step("first")).then(self._step("second", stuck=True)).commit()

    def _branch(self) -> Workflow[Any, Any]:
        late = (lambda n, state: "late" in state, self._step("wrong", by=100))
        return workflow("decides").branch(late, otherwise=self._rest("rest")).commit()

    def _condition(self) -> Workflow[Any, Any]:
        late = (path("state.late").eq(True), self._step("wrong", by=100))
        return workflow("decides").branch(late, otherwise=self._rest("rest")).commit()

    def _map(self) -> Workflow[Any, Any]:
        seen = workflow("decides").map(lambda n, state: 100 if "late" in state else 0)
        return seen.then(self._step("second", stuck=True)).commit()

    def _loop(self) -> Workflow[Any, Any]:
        """After the first round nothing is set, so another one follows; after that it is."""

        async def rounds(n: int, ctx: StepContext) -> int:
            if n == 1:
                self.stuck.set()
                await self.may_go_on.wait()
            self.ran.append(f"round {n + 1}")
            return n + 1

        again = step(id="round", effect=READ)(rounds)
        return (
            workflow("decides").dowhile(again, lambda n, count, state: "late" not in state, max_iterations=9).commit()
        )

    def _sleep(self) -> Workflow[Any, Any]:
        nap = workflow("decides").then(self._step("first")).sleep(lambda n, state: 86_400 if "late" in state else 0)
        return nap.then(self._step("second", stuck=True)).commit()

    def _nested(self) -> Workflow[Any, Any]:
        """In an item of a list in the arm."""

        async def listed(n: int) -> list[int]:
            return [n]

        late = (lambda n, state: "late" in state, self._step("wrong", by=100))
        item = workflow("item").branch(late, otherwise=self._rest("rest")).commit()
        return (
            workflow("decides")
            .then(step(id="list", effect=READ)(listed))
            .foreach(item)
            .map(lambda each: each[0])
            .commit()
        )


@pytest.fixture
def arms() -> Arms:
    return Arms()


KINDS = {"branch": 2, "condition": 2, "map": 1, "loop": 2, "sleep": 2, "nested": 2}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_decided_stays_decided_after_a_crash(boot: Boot, arms: Arms, kind: str) -> None:
    flow = arms.flow(kind)
    async with boot(flow, worker=False) as web:
        run = await web.start(flow, 0, run_id=f"run-{kind}")
        async with boot(flow, lease_s=0.3) as first:
            watched = await first.run(run.id)

            async def set_late() -> bool:
                return any(record.path == "sets" for record in await watched.steps())

            await until(set_late)
            await kill(first)
        arms.may_go_on.set()
        async with boot(flow, lease_s=0.3) as second:
            again = await second.run(run.id)
            assert await again.result(timeout=30) == KINDS[kind]
            assert "wrong" not in arms.ran
            row = await second.store.run(run.id)
            if row is not None:  # in Temporal the store has no runs
                await verify(flow, row, await second.store.load(run.id))


async def test_nothing_is_kept_of_what_is_decided_by_values_or_outside_of_arms(boot: Boot) -> None:
    """So that nothing else pays."""

    @step(effect=READ)
    async def sets(n: int, ctx: StepContext) -> int:
        ctx.set_state(early=True)
        return n

    @step(effect=READ)
    async def works(n: int) -> int:
        return n + 1

    by_value = (
        workflow("by-value").branch((lambda n: n > 5, works), otherwise=works.named("other")).map(lambda n: n).commit()
    )
    flow = (
        workflow("w")
        .then(sets)
        .branch((lambda n, state: "early" in state, works.named("then")), otherwise=works.named("else"))
        .map(lambda n, state: n + len(state))
        .parallel(by_value, works)
        .commit()
    )
    async with boot(flow) as engine:
        run = await engine.start(flow, 0)
        assert await run.result(timeout=10) == {"by-value": 3, "works": 3}
        assert not [record.path for record in await run.steps() if "@" in record.path]
