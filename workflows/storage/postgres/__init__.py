"""PostgreSQL 15+: the production store. Each operation is one statement, one round trip and one commit; reaping is two.

The statements assume READ COMMITTED and `synchronous_commit = on`, which `database` sets. Only locking the run's row in the same
statement fences: `exists (select fence …)` and `for key share` were seen to let a stale owner through.
"""

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
    """The store over one PostgreSQL database. `tables` are those of the floors above: schemas with their migrations, or bare tables.

    Time-outs are in seconds.
    """


__all__ = ["PostgresStore"]
