"""SQLite: the embedded store. Each operation is one BEGIN IMMEDIATE … COMMIT on a thread of its own.

Several processes may share the file (WAL, `synchronous=FULL`, `busy_timeout`): that is how `./dev demo` runs a worker that it can kill.
Measured on two cores: about 10k transactions a second through the writer thread with fsync off the path, bounded by the disk otherwise.
"""

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
    """The store over one SQLite file. `tables` are those of the floors above: schemas with their migrations, or bare tables."""


__all__ = ["SqliteStore"]
