"""Three primitives: workflow, pub/sub, storage."""

from workflows.callbacks import Callbacks, Moment
from workflows.context import StepContext
from workflows.driver import FailedRun
from workflows.effects import Effect, Retry
from workflows.engine import Engine
from workflows.errors import RunFailedError, StepFailedError, WorkflowError
from workflows.fork import ForkDecision
from workflows.graph import Workflow, workflow
from workflows.run import Run
from workflows.snapshot import Snapshot
from workflows.step import Step, step
from workflows.storage.base import RunState
from workflows.suspension import Suspension
from workflows.values import Interrupted

__all__ = [
    "Callbacks",
    "Effect",
    "Engine",
    "FailedRun",
    "ForkDecision",
    "Interrupted",
    "Moment",
    "Retry",
    "Run",
    "RunFailedError",
    "RunState",
    "Snapshot",
    "Step",
    "StepContext",
    "StepFailedError",
    "Suspension",
    "Workflow",
    "WorkflowError",
    "step",
    "workflow",
]
