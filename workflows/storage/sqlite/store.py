"""The store: all its operations together."""

from workflows.storage.sqlite.approvals import ApprovalOperations
from workflows.storage.sqlite.letters import LetterOperations
from workflows.storage.sqlite.operators import OperatorOperations
from workflows.storage.sqlite.retention import RetentionOperations
from workflows.storage.sqlite.runs import RunOperations
from workflows.storage.sqlite.schedules import ScheduleOperations
from workflows.storage.sqlite.spans import SpanOperations
from workflows.storage.sqlite.workers import WorkerOperations


class SqliteStore(
    WorkerOperations,
    RunOperations,
    OperatorOperations,
    LetterOperations,
    ApprovalOperations,
    ScheduleOperations,
    SpanOperations,
    RetentionOperations,
):
    """The store over one SQLite file, given by its path or as a `file:` URI.

    `tables` are those of the floors above: schemas with their migrations, or bare tables. `busy_timeout_s`: seconds to wait for another
    process's transaction before an operation raises StoreUnavailableError.
    """
