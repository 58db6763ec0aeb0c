"""When a schedule is due: cron expressions, intervals, and single times, in IANA time zones. All of it is pure arithmetic.

Prior art: Debian's cron for the hours that clocks skip or repeat.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from workflows.errors import InputError

NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
EVERY, AT = "@every ", "@at "
FURTHEST = timedelta(days=366 * 40)
"""A spec with no time within so long is taken for one that never fires: 29 February on a Monday comes every 28 years."""

Spec = str | timedelta | datetime
"""Five-field cron or @daily and the like; an interval; or a single time, local to the schedule's zone if it names none."""


class Timing(Protocol):
    """The times a schedule names. All are aware UTC."""

    def after(self, at: datetime) -> datetime | None:
        """The first time after `at`, or None."""
        ...

    def latest(self, at: datetime) -> datetime | None:
        """The last time at or before `at`, or None."""
        ...

    def explain(self) -> str:
        """In words."""
        ...


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression. In the hour that does not exist it fires once, right after it; in the hour that comes twice, once, unless its
    minute or hour is a wildcard: then by real time.
    """

    expression: str
    zone: ZoneInfo

    def after(self, at: datetime) -> datetime | None:
        for each in self._from(at):
            if each > at:  # asked within the repetition of an hour, the parser begins with the first of the two
                return each
        return None

    def latest(self, at: datetime) -> datetime | None:
        found = next((each for each in self._from(at + timedelta(seconds=1), reverse=True) if each <= at), None)
        # Asked within the repetition of an hour, the parser may have walked past the first of the two.
        while found is not None and (following := self.after(found)) is not None and following <= at:
            found = following
        return found

    def explain(self) -> str:
        return str(self._parsed(datetime.now(UTC)).explain())

    def _from(self, at: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        for each in self._parsed(at, reverse=reverse):
            moment = each.astimezone(UTC)
            if abs(moment - at) > FURTHEST:
                return
            yield moment

    def _parsed(self, at: datetime, *, reverse: bool = False) -> CronSim:
        return CronSim(self.expression, at.astimezone(self.zone), reverse=reverse)


@dataclass(frozen=True, slots=True)
class Every:
    """An interval, counted from `anchor` on, before which there is nothing. It knows no wall clock: a day is 24 hours."""

    length: timedelta
    anchor: datetime

    def after(self, at: datetime) -> datetime | None:
        return self.anchor + max((at - self.anchor) // self.length + 1, 0) * self.length

    def latest(self, at: datetime) -> datetime | None:
        return None if at < self.anchor else self.anchor + (at - self.anchor) // self.length * self.length

    def explain(self) -> str:
        return f"Every {_words(self.length)}"


@dataclass(frozen=True, slots=True)
class Once:
    """A single time."""

    at: datetime

    def after(self, at: datetime) -> datetime | None:
        return self.at if self.at > at else None

    def latest(self, at: datetime) -> datetime | None:
        return self.at if self.at <= at else None

    def explain(self) -> str:
        return f"Once, at {self.at:%Y-%m-%d %H:%M} UTC"


def written(spec: Spec) -> str:
    """A spec as text, as it is stored. `times_of` refuses what is no good one."""
    if isinstance(spec, timedelta):
        return f"{EVERY}{spec.total_seconds():.16g}s"
    if isinstance(spec, datetime):
        return f"{AT}{spec.isoformat()}"
    return " ".join(spec.split())


def times_of(spec: str, tz: str, *, anchor: datetime) -> Timing:
    """What a stored spec means. `anchor` is where an interval is counted from. Raises InputError, with an example of a good one."""
    where = zone(tz)
    if spec.startswith(EVERY):
        return Every(_length(spec), anchor)
    if spec.startswith(AT):
        return Once(_moment(spec.removeprefix(AT), where))
    expression = NAMED.get(spec.lower(), spec)
    if len(expression.split()) != 5:
        raise InputError(f"{spec!r} is no cron expression of five fields; Mondays at nine is 0 9 * * 1")
    cron = Cron(expression, where)
    try:
        never = cron.after(anchor) is None
    except (CronSimError, ValueError, OverflowError):
        never = True
    if never:
        raise InputError(f"{spec!r} is no cron expression that ever fires; Mondays at nine is 0 9 * * 1")
    return cron


def next_fire(spec: str, tz: str, after: datetime) -> datetime:
    """The first time after `after` (aware) that a stored spec names, in UTC. Raises InputError for one that is malformed or names none."""
    found = times_of(spec, tz, anchor=after).after(after)
    if found is None:
        raise InputError(f"{spec!r} names no time after {after:%Y-%m-%d %H:%M} UTC")
    return found


def explain(spec: str, tz: str = "UTC") -> str:
    """A stored spec in words. Raises InputError."""
    return times_of(spec, tz, anchor=datetime.now(UTC)).explain()


def zone(name: str) -> ZoneInfo:
    """The IANA zone. Raises InputError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"{name!r} is no IANA time zone; one is Europe/Berlin") from None


UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _length(spec: str) -> timedelta:
    text = spec.removeprefix(EVERY).strip()
    try:
        length = timedelta(seconds=float(text[:-1]) * UNITS[text[-1:]])
    except (KeyError, ValueError, OverflowError):
        raise InputError(f"{spec!r} is no interval; a quarter of an hour is '@every 15m' (s, m, h or d)") from None
    if not timedelta(seconds=1) <= length <= FURTHEST:
        raise InputError(f"{spec!r}: an interval is a second or more, and at most forty years")
    return length


def _moment(text: str, where: ZoneInfo) -> datetime:
    """A time, local to `where` unless it says otherwise: the first of two, or the first moment after a gap."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time; one is 2026-10-05T09:00") from None
    if at.tzinfo is not None:
        return at.astimezone(UTC)
    local = at.replace(tzinfo=where)
    while local.astimezone(UTC).astimezone(where).replace(tzinfo=None) != local.replace(tzinfo=None):
        local += timedelta(minutes=1)
    return local.astimezone(UTC)


def _words(length: timedelta) -> str:
    seconds = length.total_seconds()
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            count = int(seconds // unit)
            return name if count == 1 else f"{count} {name}s"
    return "second" if seconds == 1 else f"{seconds:.16g} seconds"
