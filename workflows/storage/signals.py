"""Signals, where they went, and those that nobody will handle."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from workflows.errors import InputError
from workflows.storage.moments import EPOCH, MICROSECOND


@dataclass(frozen=True, slots=True)
class Signal:
    """A message in a run's inbox; `carried` counts the runs that ended without reading it."""

    seq: int
    name: str
    dedup_key: str
    payload: bytes | None = None
    carried: int = 0
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SignalOutcome:
    """Where a signal went. `duplicate`: it was accepted before, nothing changed. `run_id` is None for a duplicate.

    `claimed`: the run it started is its `owner`'s, under fence 1. `queue`: that of the run, if runs have one where they are kept.
    """

    run_id: str | None
    seq: int | None
    started: bool
    duplicate: bool
    claimed: bool = False
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class DecideOutcome:
    """Whether an approval was decided, and then the run that was told, and its queue."""

    decided: bool
    run_id: str | None
    queue: str | None


LETTER_ID = re.compile(r"(\d{1,17})\.(\d{1,9})\.([^\x00\ud800-\udfff]+)")


class LetterId(NamedTuple):
    """What an id of a dead letter says; text outside."""

    died_at: datetime
    run_id: str
    seq: int

    def __str__(self) -> str:
        return f"{(self.died_at - EPOCH) // MICROSECOND}.{self.seq}.{self.run_id}"

    @classmethod
    def parse(cls, text: str) -> "LetterId":
        """Raises InputError if `text` is none."""
        found = LETTER_ID.fullmatch(text)
        if found is None:
            raise InputError(f"{text!r} is no id of a dead letter")
        micros, seq, run_id = found.groups()
        return cls(EPOCH + int(micros) * MICROSECOND, run_id, int(seq))


@dataclass(frozen=True, slots=True)
class DeadSignal:
    """A signal that two runs in a row ended without reading, or whose run had no key: who it was for, and when it died."""

    tenant: str
    workflow: str
    key: str | None
    run_id: str
    signal: Signal
    died_at: datetime

    @property
    def id(self) -> str:
        """What names it: to redrive or drop it, and as the last of a page."""
        return str(LetterId(self.died_at, self.run_id, self.signal.seq))
