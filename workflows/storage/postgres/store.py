"""The store: all its operations together."""

from workflows.storage.postgres.approvals import ApprovalOperations
from workflows.storage.postgres.letters import LetterOperations
from workflows.storage.postgres.operators import OperatorOperations
from workflows.storage.postgres.retention import RetentionOperations
from workflows.storage.postgres.runs import RunOperations
from workflows.storage.postgres.schedules import ScheduleOperations
from workflows.storage.postgres.signals import SignalOperations
from workflows.storage.postgres.spans import SpanOperations
from workflows.storage.postgres.steps import StepOperations
from workflows.storage.postgres.workers import WorkerOperations


class PostgresStore(
    WorkerOperations,
    StepOperations,
    RunOperations,
    OperatorOperations,
    LetterOperations,
    SignalOperations,
    ApprovalOperations,
    ScheduleOperations,
    SpanOperations,
    RetentionOperations,
):
    """The store over one PostgreSQL database, given by its `dsn` (postgresql://…).

    `tables` are those of the floors above: schemas with their migrations, or bare tables. At most `pool_size` connections are open.
    `timeout_s`: seconds to connect, to wait for a connection that is free, and for a statement, before an operation raises
    StoreUnavailableError.
    """
