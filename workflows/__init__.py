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
from workflows.errors import (
    AccessError,
    AlreadyResumedError,
    BlobMissingError,
    BoundaryError,
    DefinitionError,
    DivergedError,
    DurabilityError,
    InputError,
    IterationLimitError,
    LetterNotFoundError,
    LiveRunError,
    NoBranchError,
    NoExecutorError,
    RoutingError,
    RunFailedError,
    RunNotFoundError,
    ScheduleNotFoundError,
    SchemaError,
    SpecError,
    StateError,
    StepCancelledError,
    StepFailedError,
    StepPanickedError,
    UnsupportedError,
    WorkflowError,
)
from workflows.execution import Execution
from workflows.run import Run
from workflows.running.driver import FailedRun
from workflows.running.fork import ForkDecision
from workflows.running.replay import verify
from workflows.running.snapshot import Snapshot
from workflows.running.suspension import Suspension
from workflows.storage.base import (
    Record,
    RunRow,
    RunState,
    Schedule,
    Signal,
    SignalOutcome,
    Status,
    StoreUnavailableError,
)
from workflows.storage.retention import Retention
from workflows.values import Interrupted
from workflows.workers.doctor import Finding

__all__ = [
    "AccessError",
    "AlreadyResumedError",
    "BlobMissingError",
    "BoundaryError",
    "Callbacks",
    "Catalogue",
    "Condition",
    "DefinitionError",
    "DivergedError",
    "DurabilityError",
    "Effect",
    "Engine",
    "Execution",
    "FailedRun",
    "Finding",
    "ForkDecision",
    "InputError",
    "Interrupted",
    "IterationLimitError",
    "LetterNotFoundError",
    "LiveRunError",
    "Moment",
    "NoBranchError",
    "NoExecutorError",
    "Record",
    "Retention",
    "Retry",
    "RoutingError",
    "Run",
    "RunFailedError",
    "RunNotFoundError",
    "RunRow",
    "RunState",
    "Schedule",
    "ScheduleNotFoundError",
    "SchemaError",
    "Signal",
    "SignalOutcome",
    "Snapshot",
    "SpecError",
    "StateError",
    "Status",
    "Step",
    "StepCancelledError",
    "StepContext",
    "StepFailedError",
    "StepPanickedError",
    "StoreUnavailableError",
    "Suspension",
    "UnsupportedError",
    "Workflow",
    "WorkflowError",
    "path",
    "project",
    "step",
    "verify",
    "workflow",
]
