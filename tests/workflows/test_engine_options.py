"""An option that has no effect is an error that names it, and so is what comes too late."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.engine.steps import double
from workflows import Engine, StateError, workflow
from workflows.execution import StoreExecution
from workflows.pubsub import MemoryPubSub
from workflows.storage import MemoryStore

GIVEN: tuple[Mapping[str, Any], ...] = (
    {"worker": False}, {"concurrency": 3}, {"queues": ["gpu"]}, {"tenant_concurrency": 2}, {"lease_s": 3, "beat_s": 1}, {"poll_s": 2},
    {"grace_s": 1},
)  # fmt: skip


def elsewhere() -> StoreExecution:
    return StoreExecution(MemoryStore(), MemoryPubSub(), lambda: None)


@pytest.mark.parametrize("options", GIVEN)
def test_what_an_execution_ignores_is_refused_beside_it(options: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError, match="of no effect beside execution") as refused:
        Engine(execution=elsewhere(), **options)
    assert str(refused.value).split(":")[0] == ", ".join(options)


def test_what_it_does_not_ignore_is_taken() -> None:
    Engine(execution=elsewhere(), clock=True, deployment="blue", store=MemoryStore())


async def test_a_workflow_that_is_added_to_an_open_engine_is_refused() -> None:
    """Some executions have settled by then what they work."""
    first, second = workflow("first").then(double).commit(), workflow("second").then(double).commit()
    engine = Engine(worker=False)
    engine.add(first)
    async with engine:
        with pytest.raises(StateError, match="second"):
            engine.add(second)
