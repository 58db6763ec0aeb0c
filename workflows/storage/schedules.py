"""When to run what, and what became of each firing."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from workflows.storage.runs import RunState

CatchUp = Literal["skip", "one", "all"]


Overlap = Literal["skip", "queue", "allow"]


MAX_QUEUED = 100
"""Firings of one schedule that wait for the one before; further ones are skipped."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to run what; `workflows.schedules` reads `spec` and `tz` and applies the rules.

    `due_at` is the time the next firing is for, `next_at` that time with its jitter: when it fires, and the token that clocks compare.
    `last_at` is what the last one was for. `grace_s`: how late a firing may be before `catch_up` counts it as missed. `fired` counts
    firings towards `max_firings`. `ended`: it never fires again.
    """

    tenant: str
    name: str
    workflow: str
    version: str
    spec: str
    tz: str
    next_at: datetime
    last_at: datetime | None = None
    paused: bool = False
    input: bytes | None = None
    due_at: datetime | None = None
    catch_up: CatchUp = "one"
    catch_up_limit: int = 100
    grace_s: float = 60.0
    overlap: Overlap = "skip"
    jitter_s: float = 0.0
    ends_at: datetime | None = None
    max_firings: int | None = None
    fired: int = 0
    ended: bool = False
    paused_reason: str | None = None
    queue: str = "default"

    @property
    def due(self) -> datetime:
        """What the next firing is for. A clock of an older version moves `next_at` alone."""
        late = None if self.due_at is None else (self.next_at - self.due_at).total_seconds()
        return (
            self.due_at if self.due_at is not None and late is not None and 0 <= late <= self.jitter_s else self.next_at
        )


class FiringStatus(StrEnum):
    """What became of a firing: its run was started, waits for the one before it, was left out because that one was still going, or
    was left out because it came too late.
    """

    STARTED = "started"
    QUEUED = "queued"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Firing:
    """One firing of a schedule, for `due_at`, by its time or by hand. `run_id` is known also where no run was started.

    `missed` earlier times it stands for, or that were left out with it. `run_state` is that of its run now, None if there is none (any
    more); what came of delivering its outcome is told apart, by whoever delivers: `delivery`, None until then.
    """

    tenant: str
    schedule: str
    run_id: str
    due_at: datetime
    cause: Literal["time", "manual"] = "time"
    status: FiringStatus = FiringStatus.STARTED
    reason: str | None = None
    missed: int = 0
    fired_at: datetime | None = None
    delivery: str | None = None
    delivery_detail: str | None = None
    delivered_at: datetime | None = None
    run_state: RunState | None = None
