"""Steps one after another."""

from typing import Any

import pytest

from tests.conformance.engine.steps import READ, Order, boom, double, increment
from tests.conformance.engines import Boot
from workflows import (
    RunFailedError,
    step,
    workflow,
)
from workflows.errors import (
    InputError,
    RunNotFoundError,
)


class TestSequence:
    async def test_steps_run_in_order_and_the_result_is_typed(self, boot: Boot) -> None:
        flow = workflow("w").then(double).then(increment).map(lambda n: n * 10).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 3)
            assert await run.result(timeout=10) == 70
            assert [record.path for record in await run.steps()] == ["double", "increment"]

    async def test_a_nested_workflow_has_records_of_its_own(self, boot: Boot) -> None:
        inner = workflow("inner").then(double).then(increment).commit()
        outer = workflow("outer").then(increment).then(inner).commit()
        async with boot(outer) as engine:
            run = await engine.start(outer, 1)
            assert await run.result(timeout=10) == 5
            assert [record.path for record in await run.steps()] == ["increment", "inner/double", "inner/increment"]

    async def test_pydantic_models_cross_boundaries_and_storage(self, boot: Boot) -> None:
        @step(effect=READ)
        async def price(order: Order) -> Order:
            return order.model_copy(update={"amount": order.amount * 2})

        flow = workflow("w").then(price).commit()
        async with boot(flow) as engine:
            assert await (await engine.start(flow, Order(item="tent", amount=2))).result(timeout=10) == Order(
                item="tent", amount=4
            )

    async def test_a_wrong_input_is_refused_before_anything_is_stored(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow) as engine:
            with pytest.raises(InputError, match="int"):
                await engine.start(flow, "three")
            assert await engine.runs(tenant="default") == []

    async def test_a_wrong_output_fails_the_run_and_names_the_step(self, boot: Boot) -> None:
        @step(effect=READ)
        async def lies(n: int) -> int:
            return "no number"  # type: ignore[return-value]

        flow = workflow("w").then(lies).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match="lies"):
                await (await engine.start(flow, 1)).result(timeout=10)

    async def test_a_failure_is_stored_as_a_value_without_a_traceback(self, boot: Boot) -> None:
        flow = workflow("w").then(boom).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 7)
            with pytest.raises(RunFailedError, match="ValueError: no 7"):
                await run.result(timeout=10)
            (record,) = await run.steps()
            assert record.error is not None
            assert (record.error["type"], record.error["message"]) == ("ValueError", "no 7")
            assert "Traceback" not in str(record.error)

    async def test_the_same_key_is_one_live_run(self, boot: Boot) -> None:
        flow = workflow("w").wait_for("go", int).commit()
        async with boot(flow) as engine:
            first, second = await engine.start(flow, None, key="k"), await engine.start(flow, None, key="k")
            assert first.id == second.id

    async def test_another_tenants_run_is_not_found(self, boot: Boot) -> None:
        flow = workflow("w").then(double).commit()
        async with boot(flow) as engine:
            run = await engine.start(flow, 1, tenant="T1")
            with pytest.raises(RunNotFoundError):
                await engine.run(run.id, tenant="T2")


class TestValues:
    async def test_what_comes_next_is_given_what_it_would_be_given_after_a_crash(self, boot: Boot) -> None:
        """A value whose type leaves it open has its JSON form from the beginning, or a condition could turn when the run is taken up again."""
        seen = list[Any]()

        @step(effect=READ)
        async def loosely(n: int) -> Any:
            return {1: (n, 2)}

        @step(effect=READ)
        async def look(value: Any) -> bool:
            seen.append(value)
            return bool(value == {"1": [1, 2]})

        flow = workflow("w").then(loosely).wait_for("go", int).commit()
        direct = workflow("d").then(loosely).then(look).commit()
        async with boot(flow, direct) as engine:
            assert await (await engine.start(direct, 1)).result(timeout=10) is True
        assert seen == [{"1": [1, 2]}]

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
    async def test_what_is_no_number_is_refused_where_it_is_made(self, boot: Boot, number: float) -> None:
        @step(effect=READ)
        async def divide(n: int) -> list[float]:
            return [1.0, number]

        flow = workflow("w").then(divide).commit()
        async with boot(flow) as engine:
            with pytest.raises(RunFailedError, match="JSON"):
                await (await engine.start(flow, 1)).result(timeout=10)
