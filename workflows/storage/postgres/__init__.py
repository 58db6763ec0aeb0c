"""PostgreSQL 15+: the production store. Each operation is one statement, one round trip and one commit; reaping is two.

The statements assume READ COMMITTED and `synchronous_commit = on`, which `database` sets. Only locking the run's row in the same
statement fences: `exists (select fence …)` and `for key share` were seen to let a stale owner through.
"""

from workflows.storage.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
