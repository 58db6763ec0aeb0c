"""Removes what is over, and what a tenant leaves behind, in bounded batches. Any number of processes may do it at once."""

from collections import Counter
from typing import Any

from workflows.storage.ageing import AGEING, FAMILY, NEEDED, Ageing, referred, rows_of_tenants
from workflows.storage.postgres.rows import Rows
from workflows.storage.retention import Retention, Swept
from workflows.storage.schema import Table

# $1 age $2 limit
OLD_RUNS = f"""
select r.run_id from runs r where r.finished_at < threadline_now() - $1::interval and not {NEEDED}
 order by r.finished_at limit $2 for update skip locked
"""
"""Locks them: from here on nobody forks or redrives one."""

# $1 runs
DELETE_RUNS = f"""
with gone as (delete from runs r where r.run_id = any($1) and r.finished_at is not null and not {NEEDED} returning r.run_id),
     s as (delete from steps using gone where steps.run_id = gone.run_id),
     i as (delete from signals using gone where signals.run_id = gone.run_id)
select count(*) from gone
"""
"""A statement after OLD_RUNS, whose snapshot shows the forks that were being made when it looked."""

# $1 tenant $2 prefix $3 limit
RUNS_UNDER = f"""
with recursive {FAMILY.format(tenant="$1", under="starts_with(key, $2)")}
select r.run_id from runs r join family f using (run_id) where r.finished_at is not null and not {NEEDED}
 order by f.depth desc, r.run_id limit $3 for update of r skip locked
"""

# $1 tenant $2 limit
RUNS_OF_TENANT = "select run_id from runs where tenant = $1 order by run_id limit $2 for update"

# $1 runs
FORGET_RUNS = """
with gone as (delete from runs where run_id = any($1) returning run_id),
     s as (delete from steps using gone where steps.run_id = gone.run_id),
     i as (delete from signals using gone where signals.run_id = gone.run_id)
select count(*) from gone
"""
"""A statement after RUNS_OF_TENANT, whose snapshot shows what was written to them before they were locked."""

# $1 age $2 limit
SWEEP_BLOBS = """
with old as materialized (
  select tenant, sha256 from blobs where at < threadline_now() - $1::interval order by at limit $2 for update skip locked),
kept as (update blobs b set at = threadline_now() from old
          where b.tenant = old.tenant and b.sha256 = old.sha256 and ({referred}) returning 1),
gone as (delete from blobs b using old
          where b.tenant = old.tenant and b.sha256 = old.sha256 and not ({referred}) returning 1)
select (select count(*) from kept) as kept, (select count(*) from gone) as gone
"""
"""Whoever comes to refer to a blob locks it and sets its time in the same commit, so one that is old and locked here gets no new reference
before this commits: a writer waits, and then inserts it anew. One that is referred to is looked at again after the same time.
"""


def delete_old(ageing: Ageing) -> str:
    """The statement that removes rows by age: $1 age $2 limit."""
    where = f"{ageing.column} < threadline_now() - $1::interval and {ageing.where}"
    return _delete(ageing.table, f"{where} order by {ageing.column}", "for update skip locked", ageing.amount)


def delete_of_tenant(table: Table) -> str:
    """The statement that removes a tenant's rows: $1 tenant $2 limit. It waits for those that are being written, or none would not be all."""
    return _delete(table, "tenant = $1", "for update")


def _delete(table: Table, where: str, lock: str, amount: str = "1") -> str:
    key = ", ".join(table.primary_key)
    same = " and ".join(f"t.{name} = old.{name}" for name in table.primary_key)
    return f"""
with old as materialized (select {key} from {table.name} where {where} limit $2 {lock})
delete from {table.name} t using old where {same} returning {amount}
"""


class RetentionOperations(Rows):
    """Sweeps and forgets."""

    async def sweep(self, retention: Retention, *, limit: int = 200) -> Swept:
        counts: Counter[str] = Counter()
        for each in AGEING:
            counts[each.kind] += await self._count(delete_old(each), retention.of(each.kind), limit)
        blobs = await self._one(SWEEP_BLOBS.format(referred=referred(self.tables)), retention.of("blobs"), limit)
        runs = await self._delete_locked(OLD_RUNS, DELETE_RUNS, retention.of("runs"), limit)
        return Swept(runs=runs, blobs=blobs["gone"], **counts)

    async def _delete_locked(self, lock: str, delete: str, *parameters: Any) -> int:
        async with self._connection() as connection, connection.transaction():
            run_ids = [row[0] for row in await connection.fetch(lock, *parameters)]
            return int(await connection.fetchval(delete, run_ids)) if run_ids else 0

    async def forget_runs(self, tenant: str, *, under: str, limit: int = 200) -> int:
        if not tenant or not under:
            raise ValueError("say which tenant's runs are to be forgotten, and how their keys begin")
        return await self._delete_locked(RUNS_UNDER, DELETE_RUNS, tenant, under, limit)

    async def forget(self, tenant: str, *, limit: int = 200) -> int:
        if not tenant:
            raise ValueError("say which tenant is to be forgotten")
        removed = await self._delete_locked(RUNS_OF_TENANT, FORGET_RUNS, tenant, limit)
        for table in rows_of_tenants(self.tables):
            if removed < limit:
                removed += await self._count(delete_of_tenant(table), tenant, limit - removed)
        return removed

    async def _count(self, statement: str, *parameters: Any) -> int:
        return sum(row[0] for row in await self._fetch(statement, *parameters))
