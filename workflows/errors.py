"""The engine's errors, one tree. Bases are named for what the caller can do.

WorkflowError
├── DefinitionError            mend the workflow: raised while building, at commit
│   ├── BoundaryError          two neighbours' types do not meet; names both
│   └── SpecError              a workflow written as data does not hold; says everything that is wrong, and where
├── InputError                 mend the value: it does not fit the step's type
├── StateError                 the run is not in a state that allows this
│   ├── RunNotFoundError       no such run for this tenant
│   ├── ScheduleNotFoundError  no such schedule for this tenant
│   ├── LetterNotFoundError    no such dead letter for this tenant (any more)
│   ├── AlreadyResumedError    somebody else's answer was first
│   ├── LiveRunError           another live run is in the way; names it
│   └── NoExecutorError        nobody here knows this workflow and version
├── UnsupportedError           this execution can't do that; the message says which can
├── RoutingError               mend the program: rows of two stores can't share a commit
├── DivergedError              a recorded run does not fit the graph: its version was not raised
├── StepFailedError            a step failed for good; carries type, message and causes as values
├── StepCancelledError         a step was cancelled from within; tried again like any failure
├── StepPanickedError          a step raised what is no Exception; tried again like any failure
├── IterationLimitError        a loop passed its bound
├── NoBranchError              no condition of a branch held and it has no `otherwise`
├── BlobMissingError           ask an operator: a large value of this run is gone from storage
└── RunFailedError             raised by `Run.result`: failed, cancelled or dead
SchemaError                    ask an operator: the stored data is not of this version
├── AccessError                the database does not let us in
└── DurabilityError            ask an operator: the database does not keep what it acknowledges, or isolates otherwise
StoreUnavailableError          try again: storage is away, and what was asked may or may not have happened (storage.base)
PubSubUnavailableError         go on without: the bus is away, and polling finds the work (pubsub.base)

Control flow that is not an error derives from BaseException, so that no `except Exception` of a step swallows it:
Suspended, Bailed, StaleFence, Draining, Cancelled.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any


class WorkflowError(Exception):
    """Base of what the engine raises."""


class DefinitionError(WorkflowError):
    """The workflow can't be built as written."""


class BoundaryError(DefinitionError):
    """The output type of one step is not the input type of the next."""


class SpecError(DefinitionError):
    """A workflow written as data does not hold. `problems` are pairs of a place, such as "entries[2].arms[0]", and what is wrong there."""

    def __init__(self, workflow_id: str, problems: Sequence[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        shown = [f"{place}: {message}" if place else message for place, message in self.problems[:20]]
        more = len(self.problems) - len(shown)
        what = f"workflow {workflow_id!r}" if workflow_id else "the workflow"
        super().__init__("\n- ".join([f"{what} does not hold:", *shown, *([f"and {more} more"] if more else [])]))


class InputError(WorkflowError):
    """A value does not fit the type of the boundary it crosses."""


class StateError(WorkflowError):
    """The run is not in a state that allows this."""


class RunNotFoundError(StateError):
    """There is no such run for this tenant."""


class ScheduleNotFoundError(StateError):
    """There is no such schedule for this tenant."""


class LetterNotFoundError(StateError):
    """There is no such dead letter for this tenant, or somebody was first to redrive or drop it."""


class AlreadyResumedError(StateError):
    """The suspension was answered before, differently."""


class LiveRunError(StateError):
    """Another run of the same key is live. `run_id` names it."""

    def __init__(self, message: str, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(message)


class NoExecutorError(StateError):
    """This process does not know the workflow and version."""


class UnsupportedError(WorkflowError):
    """The execution that carries out the runs can't do what was asked."""


class DivergedError(WorkflowError):
    """What was recorded does not fit the graph as it is now: its shape changed and its version did not."""


class StepFailedError(WorkflowError):
    """A step failed for good. `type_name`, `message` and `causes` (type and message pairs) are those of the original."""

    def __init__(self, path: str, failure: dict[str, Any]) -> None:
        self.path = path
        self.failure = failure
        self.type_name = str(failure.get("type", ""))
        self.message = str(failure.get("message", ""))
        self.causes = tuple(failure.get("causes", ()))
        super().__init__(f"step {path} failed: {self.type_name}: {self.message}")


class StepCancelledError(WorkflowError):
    """Something inside a step cancelled it: a leaked cancel scope, a library's own task."""


class StepPanickedError(WorkflowError):
    """A step raised something that is no `Exception`, as extensions written in Rust do when they panic."""


class IterationLimitError(WorkflowError):
    """A loop ran `max_iterations` times and its condition still asked for more."""


class NoBranchError(WorkflowError):
    """No condition of a branch held, and it has no `otherwise`."""


class RoutingError(WorkflowError):
    """What shall be one commit would go to different stores, or a domain has no store that keeps it."""


class BlobMissingError(WorkflowError):
    """A value that was kept apart from its row is gone. The message names the run, and the path of a step."""


class RunFailedError(WorkflowError):
    """A run ended other than done. `state` and `failure` as stored."""

    def __init__(self, run_id: str, state: str, failure: dict[str, Any] | None) -> None:
        self.run_id = run_id
        self.state = state
        self.failure = failure or {}
        detail = f": {self.failure.get('type')}: {self.failure.get('message')}" if failure else ""
        super().__init__(f"run {run_id} is {state}{detail}")


class SchemaError(Exception):
    """The stored data was made by another version of the schema; the message says what to do."""


class AccessError(SchemaError):
    """The database does not let us in: no such database or role, a wrong password, a missing right."""


class DurabilityError(SchemaError):
    """The database is set up in a way that would break promises; the message names the setting."""


class ControlFlow(BaseException):
    """Base of control flow that is not an error; steps must let it pass."""


class Suspended(ControlFlow):
    """A step waits for something; the run lets go of its worker when all else has settled.

    Carries when to wake at the latest (None: only on a signal), and how far into the inbox its arm had looked (None: it waits for no
    signal). Another arm may have learned of later signals since; the run may sleep only if there were none.
    """

    def __init__(self, until: datetime | None = None, *, seen: int | None = None) -> None:
        super().__init__(until)
        self.until = until
        self.seen = seen


class Bailed(ControlFlow):
    """A step finished its workflow early. `data` is the workflow's output as JSON."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data


class StaleFence(ControlFlow):
    """The run belongs to someone else now: stop at once and write nothing more."""


class Draining(ControlFlow):
    """The worker is leaving: stop at this step boundary; another worker goes on."""


class Cancelled(ControlFlow):
    """The run was asked to stop."""


def describe(error: BaseException) -> dict[str, Any]:
    """A failure as a value: type, message and cause chain. Never a traceback: those hold data."""
    if isinstance(error, StepFailedError):
        return error.failure
    causes: list[list[str]] = []
    cause = _cause(error)
    while cause is not None and len(causes) < 5:
        causes.append([type(cause).__name__, _said(cause, 500)])
        cause = _cause(cause)
    return {"type": type(error).__name__, "message": _said(error, 2000), "causes": causes}


def _said(error: BaseException, most: int) -> str:
    """What it says, as text that can be stored: the name of a file may hold half a surrogate pair."""
    return str(error)[:most].encode("utf-8", "replace").decode()


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)
