"""Schedules: cron expressions, intervals and single times in IANA time zones, fired once by any number of clocks."""

from datetime import UTC, datetime
from typing import Any

from workflows.errors import InputError
from workflows.schedules.firing import Newest, fire_due, start_queued
from workflows.schedules.schedules import Schedules, delivered
from workflows.schedules.timing import Spec, times_of, zone
from workflows.storage.base import Schedule

__all__ = [
    "Newest",
    "Schedules",
    "Spec",
    "delivered",
    "describe",
    "explain",
    "fire_due",
    "next_fire",
    "start_queued",
    "zone",
]


def next_fire(spec: str, tz: str, after: datetime) -> datetime:
    """The first time after `after` (aware) that `spec` names, in UTC. Raises InputError for a spec that is malformed or names none."""
    found = times_of(spec, tz, anchor=after).after(after)
    if found is None:
        raise InputError(f"{spec!r} names no time after {after:%Y-%m-%d %H:%M} UTC")
    return found


def explain(spec: str, tz: str = "UTC") -> str:
    """A spec in words."""
    return times_of(spec, tz, anchor=datetime.now(UTC)).explain()


def describe(schedule: Schedule) -> dict[str, Any]:
    """A schedule for people and models: name, words, zone, next time, and why it does not fire where it does not."""
    return {
        "name": schedule.name,
        "when": explain(schedule.spec, schedule.tz),
        "time_zone": schedule.tz,
        "next_at": None if schedule.ended else schedule.next_at.isoformat(),
        **({"paused": schedule.paused_reason or True} if schedule.paused else {}),
    }
