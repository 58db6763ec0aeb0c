"""Schedules: cron expressions in IANA time zones, fired once by any number of clocks."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid5
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog
from cronsim import CronSim, CronSimError

from workflows.context import NAMESPACE
from workflows.errors import InputError
from workflows.storage.base import NewRun, Schedule, Store

NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


def zone(name: str) -> ZoneInfo:
    """The IANA zone. Raises InputError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"{name!r} is no IANA time zone; one is Europe/Berlin") from None


def next_fire(spec: str, tz: str, after: datetime) -> datetime:
    """The first time after `after` (aware) that `spec` (five-field cron, or @daily and the like) names, in UTC.

    In the hour that does not exist it fires once, right after it; in the hour that comes twice, once, unless hourly.
    Raises InputError for a spec that is malformed or never fires.
    """
    try:
        return next(CronSim(NAMED.get(spec, spec), after.astimezone(zone(tz)))).astimezone(UTC)
    except (CronSimError, StopIteration):
        raise InputError(f"{spec!r} is no cron expression that ever fires; Mondays at nine is 0 9 * * 1") from None


def explain(spec: str) -> str:
    """A cron expression in words."""
    return str(CronSim(NAMED.get(spec, spec), datetime.now(UTC)).explain())


VersionOf = Callable[[str], str | None]
"""The version of a workflow that a process knows now, or None."""


async def fire_due(store: Store, version_of: VersionOf = lambda _: None) -> list[str]:
    """Fire every schedule that is due, each once whatever other clocks do. Missed times fire once, not once each. Returns run ids.

    A firing begins the version of its workflow that is known now, or else the one it was scheduled with. A schedule that can't be read
    is paused, so that it does not keep others from firing.
    """
    fired = []
    now = await store.now()
    for schedule in await store.schedules(due=True):
        run = _run_of(schedule, version_of(schedule.workflow) or schedule.version)
        try:
            next_at = next_fire(schedule.spec, schedule.tz, now)
        except InputError as error:
            structlog.get_logger().error(
                "schedule_paused", tenant=schedule.tenant, name=schedule.name, error=str(error)
            )
            await store.put_schedule(replace(schedule, paused=True))
            continue
        if await store.tick(schedule, next_at=next_at, run=run):
            fired.append(run.run_id)
    return fired


def _run_of(schedule: Schedule, version: str) -> NewRun:
    due = schedule.next_at.isoformat()
    run_id = str(uuid5(NAMESPACE, f"{schedule.tenant}/{schedule.name}@{due}"))
    return NewRun(run_id, schedule.tenant, schedule.workflow, version, f"{schedule.name}@{due}", input=schedule.input)


def describe(schedule: Schedule) -> dict[str, Any]:
    """A schedule for people and models: name, words, zone, next time."""
    return {
        "name": schedule.name,
        "when": explain(schedule.spec),
        "time_zone": schedule.tz,
        "next_at": schedule.next_at.isoformat(),
    }
