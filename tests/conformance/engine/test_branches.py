"""Branches and loops."""

import pytest

from tests.conformance.engine.steps import boom, double, increment
from tests.conformance.engines import Boot
from workflows import (
    RunFailedError,
    workflow,
)
from workflows.errors import (
    IterationLimitError,
)


class TestBranchAndLoops:
    async def test_the_first_true_arm_runs(self, boot: Boot) -> None:
        flow = (
            workflow("w")
            .then(double)
            .branch((lambda n: n > 5, increment), (lambda n: n > 1, boom), otherwise=double.named("again"))
            .commit()
        )
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 3)).result(timeout=10) == 7
            assert await (await engine.start(flow, 0)).result(timeout=10) == 0

    async def test_conditions_after_the_first_that_holds_are_not_asked(self, boot: Boot) -> None:
        """So that one may count on what those before it have ruled out."""
        flow = (
            workflow("w")
            .then(double)
            .branch((lambda n: n == 0, increment), (lambda n: 12 // n > 1, double.named("again")))
            .commit()
        )
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 0)).result(timeout=10) == 1
            assert await (await engine.start(flow, 3)).result(timeout=10) == 12

    async def test_mode_all_runs_every_true_arm(self, boot: Boot) -> None:
        flow = (
            workflow("w")
            .then(double)
            .branch((lambda n: n > 1, increment), (lambda n: n > 2, double.named("twice")), mode="all")
            .commit()
        )
        async with boot(flow) as engine:
            assert await (await engine.start(flow, 2)).result(timeout=10) == {"increment": 5, "twice": 8}

    async def test_no_arm_and_no_otherwise_is_a_clear_error(self, boot: Boot) -> None:
        flow = workflow("w").then(double).branch((lambda n: n > 99, increment)).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match="no condition held"):
                await (await engine.start(flow, 1)).result(timeout=10)

    async def test_dowhile_runs_at_least_once_and_counts(self, boot: Boot) -> None:
        flow = workflow("w").dowhile(increment, lambda n, count: count < 3, max_iterations=9).commit()
        once = workflow("o").dountil(increment, _always, max_iterations=9).commit()
        async with boot(flow, once) as engine:
            run = await engine.start(flow, 0)
            assert await run.result(timeout=10) == 3
            assert [record.path for record in await run.steps()] == ["increment#1", "increment#2", "increment#3"]
            assert await (await engine.start(once, 0)).result(timeout=10) == 1

    async def test_passing_the_bound_is_an_error_with_a_name(self, boot: Boot) -> None:
        flow = workflow("w").dowhile(increment, _always, max_iterations=3).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match=IterationLimitError.__name__):
                await (await engine.start(flow, 0)).result(timeout=10)


def _always(n: int) -> bool:
    return True
