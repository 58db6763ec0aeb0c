"""The schedules of an engine, as a caller sees them."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from workflows.definition.graph import Workflow
from workflows.errors import InputError, ScheduleNotFoundError
from workflows.ids import uuid7
from workflows.running.lifecycle import Lifecycle
from workflows.schedules.firing import Newest, run_id_of, run_of, unless_started
from workflows.schedules.occurrences import upcoming
from workflows.schedules.timing import Spec, explain, times_of, written
from workflows.storage.base import CatchUp, Firing, FiringStatus, Overlap, Schedule, Store
from workflows.storage.schema import Select, Update
from workflows.storage.tables import FIRINGS, SCHEDULES
from workflows.values import check, encode

In = TypeVar("In")
Delivery = Literal["delivered", "suppressed", "failed"]
MOMENT = timedelta(microseconds=1)


class Schedules:
    """Puts, lists, pauses, resumes, fires and removes schedules. `storing()` is the store they are in; it may raise."""

    def __init__(self, storing: Callable[[], Store], newest: Newest, lifecycle: Lifecycle) -> None:
        self._storing = storing
        self._newest = newest
        self._lifecycle = lifecycle

    @property
    def _store(self) -> Store:
        return self._storing()

    async def put(
        self,
        name: str,
        workflow: Workflow[In, Any],
        value: In,
        *,
        tenant: str,
        spec: Spec,
        tz: str = "UTC",
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        max_firings: int | None = None,
        catch_up: CatchUp = "one",
        catch_up_limit: int = 100,
        grace_s: float = 60.0,
        overlap: Overlap = "skip",
        jitter_s: float = 0.0,
        queue: str = "default",
        keep_paused: bool = False,
    ) -> Schedule:
        """Run `workflow` on `value` at the times of `spec`. Replaces the schedule of this name; with the same times, it goes on where it is.

        `spec`: five-field cron or @daily and the like, in `tz`; a timedelta, counted from `starts_at` on; or a single datetime. Nothing
        fires before `starts_at` or after `ends_at`, nor more than `max_firings` times.
        `catch_up`, for times that went by while no clock ran: "one" fires once for all of them, "all" once for each of the newest
        `catch_up_limit`, "skip" not at all, unless the last is no later than `grace_s`.
        `overlap`, while the run before is still going: "skip" leaves the firing out, "queue" starts it afterwards, "allow" at once.
        `jitter_s`: each firing comes up to so much later, spread over schedules and the same on every clock.
        `keep_paused`: one that is paused stays so, as fits a process that puts its schedules at every start.
        Raises InputError for a bad spec, zone, limit or value.
        """
        _check(name, catch_up=catch_up, overlap=overlap, catch_up_limit=catch_up_limit, max_firings=max_firings)
        _check_times(starts_at, ends_at, grace_s=grace_s, jitter_s=jitter_s)
        where = f"the input of {workflow.id}"
        data = encode(check(value, workflow.input, where=where), workflow.input, where=where)
        text, now = written(spec), await self._store.now()
        entry = Schedule(
            tenant, name, workflow.id, workflow.version, text, tz, now, input=data, catch_up=catch_up, catch_up_limit=catch_up_limit,
            grace_s=grace_s, overlap=overlap, jitter_s=jitter_s, ends_at=ends_at, max_firings=max_firings, queue=queue,
        )  # fmt: skip
        first = _first(text, tz, now=now, starts_at=starts_at)
        if first is None or upcoming(entry, first).ended:
            return await self._over(entry)
        return await self._store.put_schedule(upcoming(entry, first), keep_paused=keep_paused)

    async def _over(self, entry: Schedule) -> Schedule:
        """The schedule as it is, if it was put with the same times when they were still to come. Raises InputError."""
        found = await self._store.schedule(tenant=entry.tenant, name=entry.name)
        if found is None or (found.spec, found.tz, found.ends_at) != (entry.spec, entry.tz, entry.ends_at):
            raise InputError(f"{entry.spec!r} names no time that is still to come before it ends")
        return found

    async def get(self, name: str, *, tenant: str) -> Schedule:
        """One schedule. Raises ScheduleNotFoundError."""
        found = await self._store.schedule(tenant=tenant, name=name)
        if found is None:
            raise ScheduleNotFoundError(f"tenant {tenant} has no schedule {name!r}")
        return found

    async def list(self, *, tenant: str, limit: int = 100) -> Sequence[Schedule]:
        """Schedules of a tenant, those that fire next first."""
        return await self._store.schedules(tenant=tenant, limit=limit)

    async def pause(self, name: str, *, tenant: str, reason: str = "") -> Schedule:
        """Fire it no more until it is resumed. Runs that were started go on. Raises ScheduleNotFoundError."""
        await self._store.pause_schedule(tenant=tenant, name=name, reason=reason or "by hand")
        return await self.get(name, tenant=tenant)

    async def resume(self, name: str, *, tenant: str) -> Schedule:
        """Fire it again, from its next time on: those that went by while it was paused are not caught up with.

        Raises ScheduleNotFoundError, and InputError if it can't be read still, or has no time left.
        """
        schedule, now = await self.get(name, tenant=tenant), await self._store.now()
        following = times_of(schedule.spec, schedule.tz, anchor=schedule.due).after(max(now, schedule.due - MOMENT))
        moved = upcoming(schedule, following)
        if moved.ended:
            raise InputError(f"the schedule {name!r} has no time left to fire at")
        await self._store.resume_schedule(tenant=tenant, name=name, due_at=moved.due, next_at=moved.next_at)
        return await self.get(name, tenant=tenant)

    async def run_now(self, name: str, *, tenant: str, key: str | None = None) -> Firing:
        """Fire it at once, out of its turn, also while it is paused. Its rule for overlaps holds. The same `key` again fires nothing new.

        Raises ScheduleNotFoundError.
        """
        schedule, now = await self.get(name, tenant=tenant), await self._store.now()
        run_id = run_id_of(tenant, name, f"now:{key or uuid7()}")
        status, reason = unless_started(schedule)
        firing = Firing(tenant, name, run_id, now, "manual", status, reason)
        if await self._store.fire_now(firing, run_of(schedule, firing, self._newest)) is None:
            raise ScheduleNotFoundError(f"tenant {tenant} has no schedule {name!r}")
        self._lifecycle.due(schedule.queue)
        return await self._firing(run_id, tenant=tenant)

    async def _firing(self, run_id: str, *, tenant: str) -> Firing:
        (row,) = await self._store.read(Select(FIRINGS, {"tenant": tenant, "run_id": run_id}))
        run = await self._store.run(run_id, tenant=tenant)
        return Firing(**{**row, "status": FiringStatus(row["status"]), "run_state": run.state if run else None})

    async def delete(self, name: str, *, tenant: str) -> bool:
        """Remove it; its history stays. False: there was none."""
        return await self._store.delete_schedule(tenant=tenant, name=name)

    async def history(
        self, name: str, *, tenant: str, limit: int = 100, before: datetime | None = None
    ) -> Sequence[Firing]:
        """What it fired, the newest first, with the state of each run and what came of its delivery. `before`: a firing's `due_at`."""
        return await self._store.firings(tenant=tenant, schedule=name, limit=limit, before=before)


def describe(schedule: Schedule) -> dict[str, Any]:
    """A schedule as JSON-able data that reads well: name, words, zone, next time, and why it does not fire where it does not.

    Raises InputError for a spec that can't be read.
    """
    return {
        "name": schedule.name,
        "when": explain(schedule.spec, schedule.tz),
        "time_zone": schedule.tz,
        "next_at": None if schedule.ended else schedule.next_at.isoformat(),
        **({"paused": schedule.paused_reason or True} if schedule.paused else {}),
    }


def delivered(run_id: str, *, tenant: str, status: Delivery, at: datetime, detail: str = "") -> Update:
    """The write that tells a firing what came of delivering its outcome; it rides in the commit of the step that delivered.

    A run that no schedule fired has no such row, and nothing is written.
    """
    values = {"delivery": status, "delivery_detail": detail[:500] or None, "delivered_at": at}
    return Update(FIRINGS, {"tenant": tenant, "run_id": run_id}, values)


def paused(name: str, *, tenant: str, reason: str) -> Update:
    """The write that pauses a schedule; it rides in the commit of the step that found out why. There need be no such schedule."""
    return Update(SCHEDULES, {"tenant": tenant, "name": name}, {"paused": True, "paused_reason": reason[:500]})


def _first(spec: str, tz: str, *, now: datetime, starts_at: datetime | None) -> datetime | None:
    start = now if starts_at is None else max(starts_at, now)
    times = times_of(spec, tz, anchor=starts_at or now.replace(microsecond=0))
    return times.after(start - MOMENT if starts_at is not None and starts_at > now else start)


def _check(name: str, *, catch_up: str, overlap: str, catch_up_limit: int, max_firings: int | None) -> None:
    if not name or len(name) > 200 or not name.isprintable():
        raise InputError(f"{name!r} is no name of a schedule: it must be 1 to 200 printable characters")
    if catch_up not in ("skip", "one", "all"):
        raise InputError(f"catch_up is 'skip', 'one' or 'all', not {catch_up!r}")
    if overlap not in ("skip", "queue", "allow"):
        raise InputError(f"overlap is 'skip', 'queue' or 'allow', not {overlap!r}")
    if not 1 <= catch_up_limit <= 1000:
        raise InputError(f"catch_up_limit is 1 to 1000, not {catch_up_limit}")
    if max_firings is not None and max_firings < 1:
        raise InputError(f"max_firings is 1 or more, not {max_firings}")


def _check_times(starts_at: datetime | None, ends_at: datetime | None, *, grace_s: float, jitter_s: float) -> None:
    for what, at in (("starts_at", starts_at), ("ends_at", ends_at)):
        if at is not None and at.tzinfo is None:
            raise InputError(f"{what} must say its time zone: {at.isoformat()}")
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        raise InputError(f"it would end at {ends_at.isoformat()}, before it starts")
    if not 0 <= jitter_s <= 86_400 or not 0 <= grace_s <= 31_622_400:
        raise InputError(f"jitter_s is at most a day and grace_s a year, neither below 0: {jitter_s:g}, {grace_s:g}")
