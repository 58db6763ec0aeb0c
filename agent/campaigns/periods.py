"""Periods of whole days and their arithmetic; reading them from words is in `phrases`."""

from dataclasses import dataclass, replace
from datetime import date, timedelta

from agent.campaigns.dates import add_months

EXAMPLES = '"yesterday", "last week", "last 30 days", "October 2026", "Q3", "year to date", "2026-11-01..2026-11-07"'
_DAY = timedelta(days=1)
_DASH = "\N{EN DASH}"


class PeriodError(ValueError):
    """The words name no period that has data; the text says why and gives examples."""


class UnknownPeriodError(PeriodError):
    """The words are not about a period at all."""


@dataclass(frozen=True, slots=True)
class Period:
    """Days `start` to `end`, both included. `months` is how many calendar months it stands for (0: it is a run of days).

    `stride` is the number of days to the period before, when that is not its own length: a week to date is compared with the same
    days of the week before.
    """

    start: date
    end: date
    label: str
    months: int = 0
    stride: int = 0

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise PeriodError(f"a period can't start on {self.start} and end on {self.end}; try {EXAMPLES}")

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.end - self.start).days + 1

    @property
    def dates(self) -> str:
        """Its days for reading, such as "22 November 2026" or, with an en dash, 16 to 22 of it."""
        last = f"{self.end.day} {self.end:%B %Y}"
        if self.start == self.end:
            return last
        if self.start.year != self.end.year:
            return f"{self.start.day} {self.start:%B %Y} {_DASH} {last}"
        if self.start.month != self.end.month:
            return f"{self.start.day} {self.start:%B} {_DASH} {last}"
        return f"{self.start.day}{_DASH}{last}"


def preceding(period: Period) -> Period:
    """The period to compare with: the calendar month(s) before for months, else the days right before, as many."""
    label = "the period before"
    if period.months:
        start = add_months(period.start, -period.months)
        whole = period.end + _DAY == add_months(period.start, period.months)
        end = period.start - _DAY if whole else min(add_months(period.end, -period.months), period.start - _DAY)
        return Period(start, end, label, months=period.months)
    shift = timedelta(days=period.stride or period.days)
    return Period(period.start - shift, period.end - shift, label, stride=period.stride)


def year_before(period: Period) -> Period:
    """The same days one year earlier."""
    return replace(period, start=add_months(period.start, -12), end=add_months(period.end, -12), label="a year earlier")
