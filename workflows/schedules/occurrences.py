"""Which of a schedule's times to fire now, and where it goes on: its rules for jitter, lateness, and its end."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b

from workflows.schedules.timing import Timing, times_of
from workflows.storage.base import Schedule

COUNTED = 1_000
"""Missed times are counted up to here: a schedule of every minute that was away for a year is not walked through."""


@dataclass(frozen=True, slots=True)
class Due:
    """One time to fire for. `missed` earlier ones went by without a firing of their own; `dropped`: so does this one."""

    at: datetime
    missed: int = 0
    dropped: bool = False


def jitter(tenant: str, name: str, due: datetime, *, within_s: float) -> timedelta:
    """How much later than `due` the schedule fires: less than `within_s`, spread over schedules, and the same on every clock."""
    digest = blake2b(f"{tenant}/{name}@{due.isoformat()}".encode(), digest_size=8).digest()
    return timedelta(seconds=int.from_bytes(digest) / 2**64 * within_s)


def upcoming(schedule: Schedule, at: datetime | None) -> Schedule:
    """`schedule` with `at` as the next time it is due; None, or a time past its end, ends it."""
    if at is None or (schedule.ends_at is not None and at > schedule.ends_at):
        return replace(schedule, ended=True)
    return replace(schedule, due_at=at, next_at=_fires(schedule, at), ended=False)


def due(schedule: Schedule, now: datetime) -> list[Due]:
    """The times to fire for now, the earliest first; empty if none is due yet. Raises InputError for a spec that can't be read."""
    if schedule.next_at > now:
        return []
    times = times_of(schedule.spec, schedule.tz, anchor=schedule.due)
    last = _last(schedule, times, now)
    late = (now - _fires(schedule, last)).total_seconds() > schedule.grace_s
    if schedule.catch_up == "all":
        return _all(schedule, times, last)
    missed = _between(times, schedule.due, last)
    return [Due(last, missed, dropped=schedule.catch_up == "skip" and late)]


def plan(schedule: Schedule, now: datetime) -> list[tuple[Due, Schedule]]:
    """What to fire now, each with the schedule as it is afterwards. Raises InputError for a spec that can't be read."""
    steps = []
    for each in due(schedule, now):
        schedule = _after(schedule, each)
        steps.append((each, schedule))
        if schedule.ended:
            break
    return steps


def _after(schedule: Schedule, each: Due) -> Schedule:
    fired = schedule.fired + (not each.dropped)
    moved = replace(schedule, last_at=each.at, fired=fired)
    if schedule.max_firings is not None and fired >= schedule.max_firings:
        return replace(moved, ended=True)
    return upcoming(moved, times_of(schedule.spec, schedule.tz, anchor=schedule.due).after(each.at))


def _fires(schedule: Schedule, due_at: datetime) -> datetime:
    return due_at + jitter(schedule.tenant, schedule.name, due_at, within_s=schedule.jitter_s)


def _last(schedule: Schedule, times: Timing, now: datetime) -> datetime:
    """The latest time that has come with its jitter; the one the schedule stands at, if no other."""
    last = times.latest(now if schedule.ends_at is None else min(now, schedule.ends_at))
    while last is not None and last > schedule.due and _fires(schedule, last) > now:
        last = times.latest(last - timedelta(microseconds=1))
    return max(last or schedule.due, schedule.due)


def _all(schedule: Schedule, times: Timing, last: datetime) -> list[Due]:
    """The newest `catch_up_limit` of the times from where the schedule stands to `last`."""
    newest = [last]
    while len(newest) < schedule.catch_up_limit and newest[-1] > schedule.due:
        before = times.latest(newest[-1] - timedelta(microseconds=1))
        newest.append(max(before or schedule.due, schedule.due))
    first, *rest = reversed(newest)
    return [Due(first, _between(times, schedule.due, first)), *map(Due, rest)]


def _between(times: Timing, first: datetime, last: datetime) -> int:
    """How many times there are from `first` on before `last`, up to COUNTED."""
    count, at = 0, first
    while at < last and count < COUNTED:
        count += 1
        at = times.after(at) or last
    return count
