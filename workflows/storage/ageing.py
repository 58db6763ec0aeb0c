"""What retention removes, in the SQL that both dialects share. Nothing that lives, or that something alive needs, is ever removed."""

from collections.abc import Iterable
from dataclasses import dataclass

from workflows.storage.blobs import REFERENCE
from workflows.storage.schema import Table
from workflows.storage.tables import APPROVALS, DEAD_SIGNALS, FIRINGS, LIVE, RECEIVED, RUNS, SPANS, TRACES


@dataclass(frozen=True, slots=True)
class Ageing:
    """Rows that are removed by age: those of `table` whose `column` is older than what is kept, and that `where` holds for."""

    kind: str
    table: Table
    column: str
    where: str = "1 = 1"
    amount: str = "1"  # how many a row holds


NO_LETTER = """
not exists (select 1 from dead_signals d where d.tenant = received.tenant and d.dedup_key = received.dedup_key)
"""
"""A letter may have waited long before it died; as long as it can be redriven, its event must be known."""

AGEING = (
    Ageing("spans", SPANS, "started_at", "status <> 'open'"),
    Ageing("spans", TRACES, "started_at", amount="spans"),
    Ageing("approvals", APPROVALS, "decided_at"),
    Ageing("firings", FIRINGS, "fired_at", "status <> 'queued'"),
    Ageing("dead_letters", DEAD_SIGNALS, "died_at"),
    Ageing("received", RECEIVED, "at", NO_LETTER),
)


def rows_of_tenants(tables: Iterable[Table]) -> list[Table]:
    """All tables of tenants' rows but `runs`, whose rows go together with their records and signals."""
    others = [table for table in tables if table is not RUNS]
    return [table for table in others if any(column.name == "tenant" for column in table.columns)]


NEEDED = f"""
(exists (select 1 from runs c where c.parent_id = r.run_id and c.{LIVE})
 or exists (select 1 from runs f where f.forked_from = r.run_id and f.{LIVE})
 or exists (select 1 from runs p where p.run_id = r.parent_id and p.{LIVE}))
"""
"""Whether something alive may still ask for the ended run `r`: a child that will wake it, a fork that compares with it, a parent that
reads its result.
"""


FAMILY = """
family(run_id, depth) as (
  select run_id, 0 from runs where tenant = {tenant} and {under}
  union all
  select c.run_id, f.depth + 1 from family f join runs c on c.parent_id = f.run_id or c.forked_from = f.run_id)
"""
"""Runs of some keys and what came of them: background runs have no key of their own, so the deepest go first, while their origin is known."""


def referred(tables: Iterable[Table]) -> str:
    """Whether a row refers to the blob `b`: a look into one partial index for each column that holds values."""
    return " or ".join(_refers(table, name) for table in tables for name in table.values)


def _refers(table: Table, name: str) -> str:
    source, tenant = f"{table.name} x", "x.tenant"
    if all(each.name != "tenant" for each in table.columns):
        source, tenant = f"{table.name} x join runs r on r.run_id = x.run_id", "r.tenant"
    same = f"length(x.{name}) = {REFERENCE} and substr(x.{name}, 2) = b.sha256"
    return f"exists (select 1 from {source} where {tenant} = b.tenant and {same})"
