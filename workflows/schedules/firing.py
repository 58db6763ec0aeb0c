"""Firing: what is due becomes runs, each time once whatever other clocks do."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import uuid5

import structlog

from workflows.definition.graph import Workflow
from workflows.errors import InputError
from workflows.ids import NAMESPACE
from workflows.schedules.occurrences import Due, plan
from workflows.storage.base import Firing, FiringStatus, NewRun, Schedule, Store, StoreUnavailableError

Newest = Callable[[str], Workflow[Any, Any] | None]
"""The version of a workflow that a process knew last, or None."""

PAGE = 100


async def fire_due(store: Store, newest: Newest = lambda _: None) -> list[NewRun]:
    """Fire every schedule that is due, by its own rules. Returns the runs that were started.

    A firing begins the version of its workflow that is known now, or else the one it was scheduled with. A schedule that can't be read
    is paused and says why, so that it does not keep others from firing.
    """
    started: list[NewRun] = []
    seen: set[tuple[str, str]] = set()
    while page := [
        each for each in await store.schedules(due=True, limit=PAGE) if (each.tenant, each.name) not in seen
    ]:
        now = await store.now()
        for schedule in page:
            seen.add((schedule.tenant, schedule.name))
            started += await _fire(store, schedule, now, newest)
    return started


async def _fire(store: Store, schedule: Schedule, now: datetime, newest: Newest) -> list[NewRun]:
    started: list[NewRun] = []
    try:
        for each, moved in plan(schedule, now):
            firing = _firing(schedule, each)
            run = None if each.dropped else run_of(schedule, firing, newest)
            status = await store.tick(schedule, moved=moved, firing=firing, run=run)
            if status is None:  # another clock is at it
                break
            if run is not None and status is FiringStatus.STARTED:
                started.append(run)
            structlog.get_logger().info("schedule_fired", tenant=schedule.tenant, schedule=schedule.name, status=status)
            schedule = moved
    except StoreUnavailableError:
        raise
    except Exception as error:
        await _pause(store, schedule, error)
    return started


async def _pause(store: Store, schedule: Schedule, error: Exception) -> None:
    reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    structlog.get_logger().error("schedule_paused", tenant=schedule.tenant, schedule=schedule.name, error=reason)
    await store.pause_schedule(tenant=schedule.tenant, name=schedule.name, reason=reason)


async def start_queued(store: Store, newest: Newest = lambda _: None) -> list[NewRun]:
    """Start the runs of firings that waited for the one before them, now that it has ended. Returns them."""
    started: list[NewRun] = []
    for firing in await store.queued_firings(PAGE):
        schedule = await store.schedule(tenant=firing.tenant, name=firing.schedule)
        run = None if schedule is None else run_of(schedule, firing, newest)
        if run is not None and await store.start_firing(firing, run):
            started.append(run)
    return started


def run_of(schedule: Schedule, firing: Firing, newest: Newest) -> NewRun:
    """The run of a firing. With any rule but "allow", all runs of a schedule have one key, of which one may be live."""
    key = f"{schedule.name}@{firing.due_at.isoformat()}" if schedule.overlap == "allow" else f"schedule:{schedule.name}"
    known = newest(schedule.workflow)
    new = NewRun(
        firing.run_id, schedule.tenant, schedule.workflow, schedule.version, key, schedule.queue, input=schedule.input, trace_id=firing.run_id
    )  # fmt: skip
    return replace(new, version=known.version, max_attempts=known.max_attempts) if known else new


def run_id_of(tenant: str, name: str, what: str) -> str:
    """The id of a firing's run: one for each time (or key of a firing by hand) of a schedule."""
    return str(uuid5(NAMESPACE, f"{quote(tenant, safe='')}/{name}@{what}"))  # or "a" with "b/c" would be "a/b" with "c"


def unless_started(schedule: Schedule) -> tuple[FiringStatus, str]:
    """What becomes of a firing whose run can't start because the one before is still going."""
    if schedule.overlap == "queue":
        return FiringStatus.QUEUED, "the run before it is still going"
    return FiringStatus.SKIPPED, "the run before it was still going"


def _firing(schedule: Schedule, each: Due) -> Firing:
    run_id = run_id_of(schedule.tenant, schedule.name, each.at.isoformat())
    status, reason = (FiringStatus.MISSED, "it came too late") if each.dropped else unless_started(schedule)
    return Firing(schedule.tenant, schedule.name, run_id, each.at, "time", status, reason, each.missed)
