"""What a run has recorded."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """What a step record says."""

    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    BAILED = "bailed"
    CHECKPOINT = "checkpoint"
    INTENT = "intent"
    RETRY = "retry"
    UNTIL = "until"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a run, at a path such as "charge", "loop#3/model", "each[7]", "charge!intent", "charge~2", "nap@until", "branch-1@state"."""

    path: str
    status: Status
    output: bytes | None = None
    error: dict[str, Any] | None = None
    started_at: datetime | None = None
    seq: int = 0
    finished_at: datetime | None = None
