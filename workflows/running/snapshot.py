"""Snapshots: a run's state at a point is never stored; it is the fold of its records up to there."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from workflows.definition.state import State
from workflows.running.suspension import Suspension, open_suspensions
from workflows.storage.base import Record, Status

ENDS = (Status.OK, Status.FAILED, Status.INTERRUPTED, Status.SKIPPED, Status.BAILED)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was known after record `seq`: each finished path's output, each failure, the run's state, what it asked for, what it had begun."""

    seq: int
    outputs: dict[str, Any]
    failures: dict[str, dict[str, Any]]
    state: dict[str, Any]
    suspensions: list[Suspension]
    started: list[str]


def fold(records: Iterable[Record]) -> Snapshot:
    """The snapshot after the last of `records`, in the order of their `seq`."""
    kept = {record.path: record for record in records}
    state = State()
    for path, record in kept.items():
        if path.endswith("!state"):
            state.apply(from_json(record.output or b"{}"), seq=record.seq)
    return Snapshot(
        seq=max((record.seq for record in kept.values()), default=0),
        outputs={
            path: from_json(each.output or b"null")
            for path, each in kept.items()
            if is_end(each) and each.status is not Status.FAILED
        },
        failures={path: each.error or {} for path, each in kept.items() if each.status is Status.FAILED},
        state=dict(state.values),
        suspensions=open_suspensions(kept),
        started=[
            step for path, each in kept.items() if each.status is Status.INTENT and (step := begun_at(path)) not in kept
        ],
    )


def is_end(record: Record) -> bool:
    """Whether it says how a step, a sleep or a wait ended."""
    return record.status in ENDS


def begun_at(intent: str) -> str:
    """The path of the step that an intent is of: "charge" for "charge!intent" and "charge~2!intent#1"."""
    return intent.partition("!intent")[0].partition("~")[0]
