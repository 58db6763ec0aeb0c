"""Database rows as the engine's dataclasses, for every SQL store."""

from collections.abc import Iterable
from typing import Any

from workflows.storage.base import DeadSignal, Firing, FiringStatus, Record, RunRow, RunState, Schedule, Signal, Status
from workflows.storage.dialect import Dialect, decode_row
from workflows.storage.tables import FIRINGS, RUNS, SCHEDULES

_RUN_FIELDS = tuple(name for name in RunRow.__dataclass_fields__)


def run_row(dialect: Dialect, row: Iterable[Any]) -> RunRow:
    """A row of all RUNS columns, in table order."""
    values = decode_row(dialect, RUNS, row)
    values["state"] = RunState(values["state"])
    return RunRow(**{name: values[name] for name in _RUN_FIELDS})


def record(dialect: Dialect, row: Iterable[Any]) -> Record:
    """A row of path, status, output, error, started_at, seq, finished_at."""
    path, status, output, error, started_at, seq, finished_at = row
    return Record(
        path,
        Status(status),
        output,
        dialect.decode("json", error),
        dialect.decode("time", started_at),
        seq,
        dialect.decode("time", finished_at),
    )


def signal(dialect: Dialect, row: Iterable[Any]) -> Signal:
    """A row of seq, name, dedup_key, payload, carried, created_at."""
    seq, name, dedup_key, payload, carried, created_at = row
    return Signal(seq, name, dedup_key, payload, carried, dialect.decode("time", created_at))


def schedule(dialect: Dialect, row: Iterable[Any]) -> Schedule:
    """A row of all SCHEDULES columns, in table order."""
    return Schedule(**decode_row(dialect, SCHEDULES, row))


def firing(dialect: Dialect, row: Iterable[Any]) -> Firing:
    """A row of all FIRINGS columns, in table order, and the state of the run."""
    *values, state = row
    known = decode_row(dialect, FIRINGS, values)
    return Firing(
        **{**known, "status": FiringStatus(known["status"]), "run_state": None if state is None else RunState(state)}
    )


LETTER_COLUMNS = "tenant, workflow, key, run_id, died_at, seq, name, dedup_key, payload, carried, created_at"


def dead_signal(dialect: Dialect, row: Iterable[Any]) -> DeadSignal:
    """A row of LETTER_COLUMNS."""
    tenant, workflow, key, run_id, died_at, *rest = row
    return DeadSignal(tenant, workflow, key, run_id, signal(dialect, rest), dialect.decode("time", died_at))
