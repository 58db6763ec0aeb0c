"""Three primitives: workflow, pub/sub, storage."""

from workflows.builder import workflow
from workflows.callbacks import Callbacks, Moment
from workflows.catalogue import Catalogue
from workflows.conditions import Condition
from workflows.context import StepContext
from workflows.driver import FailedRun
from workflows.effects import Effect, Retry
from workflows.engine import Engine
from workflows.errors import RunFailedError, SpecError, StepFailedError, WorkflowError
from workflows.fork import ForkDecision
from workflows.graph import Workflow
from workflows.paths import path
from workflows.projection import project
from workflows.run import Run
from workflows.snapshot import Snapshot
from workflows.step import Step, step
from workflows.storage.base import RunState
from workflows.suspension import Suspension
from workflows.values import Interrupted

__all__ = [
    "Callbacks",
    "Catalogue",
    "Condition",
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
    "SpecError",
    "Step",
    "StepContext",
    "StepFailedError",
    "Suspension",
    "Workflow",
    "WorkflowError",
    "path",
    "project",
    "step",
    "workflow",
]
