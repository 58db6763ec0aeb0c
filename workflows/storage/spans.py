"""What the SQL stores share about spans: what is asked for, and the rows that come."""

from collections.abc import Iterable
from typing import Any

from workflows.storage.dialect import Dialect, decode_row
from workflows.storage.tables import SPAN_COLUMNS, SPANS, TRACE_COLUMNS
from workflows.storage.traces import SpanRow

OPEN_OWNERS = "select distinct owner from spans where status = 'open' and owner is not null"

# $1 tenant $2 limit, and what `of` takes
ROWS = f"select {SPAN_COLUMNS} from spans where {{of}} order by started_at desc limit $2"
PARTS = f"""
with counted as (
  select {TRACE_COLUMNS}, sum(spans) over (order by started_at desc, trace_id, part) - spans as younger from traces where {{of}})
select {TRACE_COLUMNS} from counted where younger < $2
"""
"""As many parts as it takes for that many spans."""

OF_TENANT = "tenant = $1"
OF_TRACE = """
tenant = $1 and trace_id = coalesce($3, (select r.trace_id from runs r where r.tenant = $1 and r.run_id = $4), $4)
"""
"""A run's trace is the one its row names, or else the one that is called after it."""


def lookup(tenant: str, trace_id: str | None, run_id: str | None, limit: int) -> tuple[str, str, tuple[Any, ...]]:
    """The statements that read open spans and parts, and their parameters."""
    whole = trace_id is None and run_id is None
    of = OF_TENANT if whole else OF_TRACE
    return ROWS.format(of=of), PARTS.format(of=of), (tenant, limit) if whole else (tenant, limit, trace_id, run_id)


def span_row(dialect: Dialect, row: Iterable[Any]) -> SpanRow:
    """A row of all SPANS columns, in table order."""
    values = decode_row(dialect, SPANS, row)
    return SpanRow(**{**values, "attributes": values["attributes"] or {}})
