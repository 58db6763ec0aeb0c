"""Three primitives: workflow, pub/sub, storage."""

from workflows.definition.builder import workflow
from workflows.definition.callbacks import Callbacks, Moment
from workflows.definition.catalogue import Catalogue
from workflows.definition.conditions import Condition
from workflows.definition.context import StepContext
from workflows.definition.effects import Effect, Retry
from workflows.definition.graph import Workflow
from workflows.definition.paths import path
from workflows.definition.projection import project
from workflows.definition.step import Step, step
from workflows.engine import Engine
from workflows.errors import RunFailedError, SpecError, StepFailedError, WorkflowError
from workflows.run import Run
from workflows.running.driver import FailedRun
from workflows.running.fork import ForkDecision
from workflows.running.snapshot import Snapshot
from workflows.running.suspension import Suspension
from workflows.storage.base import RunState
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
