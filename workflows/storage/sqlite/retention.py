"""Removes what is over, and what a tenant leaves behind, in bounded batches. Any number of processes may do it at once."""

import json
from collections import Counter
from functools import partial

from workflows.storage.ageing import AGEING, FAMILY, NEEDED, Ageing, referred, rows_of_tenants
from workflows.storage.moments import MICROSECOND
from workflows.storage.retention import Retention, Swept
from workflows.storage.schema import Table
from workflows.storage.sqlite.rows import Rows

# ?1 before ?2 limit
OLD_RUNS = f"select r.run_id from runs r where r.finished_at < ?1 and not {NEEDED} order by r.finished_at limit ?2"

# ?1 tenant ?2 prefix ?3 limit
RUNS_UNDER = f"""
with recursive {FAMILY.format(tenant="?1", under="instr(key, ?2) = 1")}
select r.run_id from runs r join family f on f.run_id = r.run_id where r.finished_at is not null and not {NEEDED}
 order by f.depth desc, r.run_id limit ?3
"""

# ?1 tenant ?2 limit
RUNS_OF_TENANT = "select run_id from runs where tenant = ?1 limit ?2"

# ?1 runs, as JSON
DELETE_RUNS = tuple(
    f"delete from {table} where run_id in (select value from json_each(?1))" for table in ("steps", "signals", "runs")
)

# ?1 before ?2 limit
OLD_BLOBS = "select tenant, sha256 from blobs where at < ?1 order by at limit ?2"

# ?1 tenant ?2 digest
DELETE_BLOB = "delete from blobs as b where tenant = ?1 and sha256 = ?2 and not ({referred}) returning 1"

# ?1 tenant ?2 digest ?3 now
SEEN_BLOB = "update blobs set at = ?3 where tenant = ?1 and sha256 = ?2"
"""One that is referred to is looked at again after the same time."""


def delete_old(ageing: Ageing) -> str:
    """The statement that removes rows by age: ?1 before ?2 limit."""
    return _delete(ageing.table, f"{ageing.column} < ?1 and {ageing.where} order by {ageing.column}", ageing.amount)


def delete_of_tenant(table: Table) -> str:
    """The statement that removes a tenant's rows: ?1 tenant ?2 limit."""
    return _delete(table, "tenant = ?1")


def _delete(table: Table, where: str, amount: str = "1") -> str:
    key = ", ".join(table.primary_key)
    old = f"select {key} from {table.name} where {where} limit ?2"
    return f"delete from {table.name} where ({key}) in ({old}) returning {amount}"


class RetentionOperations(Rows):
    """Sweeps and forgets."""

    async def sweep(self, retention: Retention, *, limit: int = 200) -> Swept:
        counts: Counter[str] = Counter()
        for each in AGEING:
            counts[each.kind] += await self._transact(partial(self._sweep, each, retention, limit))
        blobs = await self._transact(partial(self._sweep_blobs, retention, limit))
        runs = await self._transact(lambda: self._delete_runs(OLD_RUNS, self._before(retention, "runs"), limit))
        return Swept(runs=runs, blobs=blobs, **counts)

    def _before(self, retention: Retention, kind: str) -> int:
        return self._now() - retention.of(kind) // MICROSECOND

    def _sweep(self, ageing: Ageing, retention: Retention, limit: int) -> int:
        return sum(row[0] for row in self._rows(delete_old(ageing), self._before(retention, ageing.kind), limit))

    def _sweep_blobs(self, retention: Retention, limit: int) -> int:
        gone, delete = 0, DELETE_BLOB.format(referred=referred(self.tables))
        for tenant, digest in self._rows(OLD_BLOBS, self._before(retention, "blobs"), limit):
            if self._one(delete, tenant, digest) is not None:
                gone += 1
            else:
                self._one(SEEN_BLOB, tenant, digest, self._now())
        return gone

    def _delete_runs(self, which: str, *parameters: int | str) -> int:
        run_ids = [row[0] for row in self._rows(which, *parameters)]
        for statement in DELETE_RUNS:
            self._one(statement, json.dumps(run_ids))
        return len(run_ids)

    async def forget_runs(self, tenant: str, *, under: str, limit: int = 200) -> int:
        if not tenant or not under:
            raise ValueError("say which tenant's runs are to be forgotten, and how their keys begin")
        return await self._transact(lambda: self._delete_runs(RUNS_UNDER, tenant, under, limit))

    async def forget(self, tenant: str, *, limit: int = 200) -> int:
        if not tenant:
            raise ValueError("say which tenant is to be forgotten")
        return await self._transact(lambda: self._forget(tenant, limit))

    def _forget(self, tenant: str, limit: int) -> int:
        removed = self._delete_runs(RUNS_OF_TENANT, tenant, limit)
        for table in rows_of_tenants(self.tables):
            if removed < limit:
                removed += len(self._rows(delete_of_tenant(table), tenant, limit - removed))
        return removed
