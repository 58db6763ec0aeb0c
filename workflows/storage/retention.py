"""How long what is over is kept."""

from dataclasses import dataclass, fields
from datetime import timedelta

REDELIVERED_DAYS = 7
"""How long an outside event may come again."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Days for which each kind is kept: ended runs with their records and signals, spans, decided approvals, firings of
    schedules, dead letters, keys of outside events. A large value is kept as long as a row refers to it, and `blobs_days` longer.

    Raises ValueError if the keys of events would be forgotten while the events may come again, or be redriven.
    """

    runs_days: float = 90
    spans_days: float = 30
    approvals_days: float = 90
    firings_days: float = 90
    dead_letters_days: float = 30
    received_days: float = 45
    blobs_days: float = 1

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise ValueError(f"{each.name} must be more than 0 days; leave retention out to keep everything")
        if self.received_days < REDELIVERED_DAYS:
            raise ValueError(f"received_days must be at least {REDELIVERED_DAYS}: so long may an event come again")
        if self.received_days <= self.dead_letters_days:
            raise ValueError(
                "received_days must be more than dead_letters_days: an event could else be redriven and accepted"
            )

    def of(self, kind: str) -> timedelta:
        """How long a kind is kept."""
        return timedelta(days=getattr(self, f"{kind}_days"))


KEPT = Retention()
"""What is kept where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How much of each kind was removed; `blobs` are values nothing referred to."""

    runs: int = 0
    spans: int = 0
    approvals: int = 0
    firings: int = 0
    dead_letters: int = 0
    received: int = 0
    blobs: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return sum(getattr(self, each.name) for each in fields(self))

    def __add__(self, other: "Swept") -> "Swept":
        return Swept(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))
