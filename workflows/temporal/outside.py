"""What a workflow's code has of the process it runs in. None of it is state: a replay elsewhere comes to the same commands."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.worker import Interceptor, WorkflowInboundInterceptor, WorkflowInterceptorClassInput

from workflows.definition.registry import Registry
from workflows.pubsub.base import Event

KEY = "workflows_outside"


@dataclass(frozen=True, slots=True)
class Outside:
    """The process: what it knows, how it is set, and where hints go. `hint(run_id, topic, event)` never blocks and is best effort."""

    registry: Registry
    heartbeat_s: float
    hint: Callable[[str, str, Event], None]


class Outsider(Interceptor):
    """Hands a process's `Outside` to the workflows it runs. Workflow classes are made by the SDK, so it can't come by their constructor."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002 — the SDK calls it so
    ) -> type[WorkflowInboundInterceptor] | None:
        """Adds no interceptor, only what workflows can ask for."""
        input.unsafe_extern_functions[KEY] = lambda: self._outside
        return None


def outside() -> Outside:
    """Of the process this workflow runs in now."""
    found: Any = workflow.extern_functions()[KEY]()
    assert isinstance(found, Outside)
    return found
