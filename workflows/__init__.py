"""Three primitives: workflow, pub/sub, storage."""

from workflows.context import StepContext
from workflows.driver import FailedRun
from workflows.effects import Effect, Retry
from workflows.engine import Engine
from workflows.errors import RunFailedError, StepFailedError, WorkflowError
from workflows.graph import Workflow, workflow
from workflows.run import Run
from workflows.step import Step, step
from workflows.storage.base import RunState
from workflows.values import Interrupted

__all__ = [
    "Effect",
    "Engine",
    "FailedRun",
    "Interrupted",
    "Retry",
    "Run",
    "RunFailedError",
    "RunState",
    "Step",
    "StepContext",
    "StepFailedError",
    "Workflow",
    "WorkflowError",
    "step",
    "workflow",
]
