"""Schedules through the engine: clocks that fire them, rules, and what a caller sees. One suite, every store."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from tests.conformance.conftest import AnyStore
from tests.conformance.engines import Boot, in_state, until
from workflows import Effect, Engine, RunState, StepContext, step, workflow
from workflows.errors import InputError, ScheduleNotFoundError
from workflows.schedules import delivered, describe
from workflows.storage.base import FiringStatus, Schedule
from workflows.storage.schema import Update
from workflows.storage.tables import SCHEDULES

MINUTE = timedelta(minutes=1)


class Work:
    """A workflow whose runs end when they are let go; `ran` are the values they were given."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.ran: list[int] = []

        @step(effect=Effect.READ)
        async def work(n: int) -> int:
            self.ran.append(n)
            await self.gate.wait()
            return n

        self.flow = workflow("w").then(work).commit()


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
async def engine(boot: Boot, work: Work) -> AsyncIterator[Engine]:
    """A worker; the clock's rounds are the test's to make, and the store's clock stands at half past eight."""
    async with boot(work.flow) as engine:
        await at(engine, "2026-03-27T08:30")
        yield engine
        await engine.store.set_clock_offset(timedelta(0))


async def at(engine: Engine, moment: str) -> None:
    """Move the store's clock to `moment` (UTC)."""
    store: Any = engine.store
    await store.set_clock_offset(timedelta(0))
    await store.set_clock_offset(datetime.fromisoformat(moment).replace(tzinfo=UTC) - await store.now())
    if engine.worker is not None:  # its lease was told by the other clock
        await engine.worker._lease.register()


async def rounds(engine: Engine, count: int = 1) -> int:
    from workflows.workers.clock import Clock

    clock = Clock(engine.store, engine._lifecycle, newest=engine.workflows.newest)
    return sum([await clock.sweep() for _ in range(count)])


async def put(engine: Engine, work: Work, name: str = "s", **rules: Any) -> Schedule:
    rules = {"spec": "0 9 * * *", "tz": "Europe/Berlin", "tenant": "T1", **rules}
    return await engine.schedules.put(name, work.flow, 1, **rules)


async def history(engine: Engine, name: str = "s") -> list[tuple[str, str, int]]:
    """What it fired, the oldest first: day and time by UTC, status, and how many earlier times it stands for."""
    found = await engine.schedules.history(name, tenant="T1")
    return [(f"{each.due_at:%d %H:%M}", each.status.value, each.missed) for each in reversed(found)]


async def all_done(engine: Engine) -> bool:
    return not any(row.state.live for row in await engine.runs(tenant="T1"))


class TestFiring:
    async def test_it_fires_by_the_wall_clock_of_its_zone_and_says_what_came_of_the_run(
        self, engine: Engine, work: Work
    ) -> None:
        entry = await put(engine, work)
        assert entry.next_at == datetime(2026, 3, 28, 8, 0, tzinfo=UTC)
        assert await rounds(engine) == 0
        for moment in ("2026-03-28T08:00", "2026-03-29T07:00", "2026-03-30T07:00"):  # summer time began on the 29th
            await at(engine, moment)
            assert await rounds(engine) == 1
            assert await rounds(engine) == 0
            await until(lambda: all_done(engine))
        assert await history(engine) == [
            ("28 08:00", "started", 0),
            ("29 07:00", "started", 0),
            ("30 07:00", "started", 0),
        ]
        firings = await engine.schedules.history("s", tenant="T1")
        assert {each.run_state for each in firings} == {RunState.DONE}
        assert work.ran == [1, 1, 1]

    async def test_any_number_of_clocks_fire_each_time_once(self, boot: Boot, engine: Engine, work: Work) -> None:
        async with boot(work.flow, worker=False) as other:
            for n in range(12):
                await put(engine, work, f"s{n}", spec="* * * * *", catch_up="all")
            await at(engine, "2026-03-27T08:35")
            await asyncio.gather(*(rounds(each) for each in (engine, other) for _ in range(3)))
            for n in range(12):
                assert [day for day, *_ in await history(engine, f"s{n}")] == [f"27 08:3{m}" for m in range(1, 6)]

    async def test_jitter_is_agreed_upon_by_all_clocks(self, boot: Boot, engine: Engine, work: Work) -> None:
        entry = await put(engine, work, jitter_s=1800)
        assert timedelta(0) < entry.next_at - entry.due < timedelta(minutes=30)
        await at(engine, entry.next_at.replace(tzinfo=None).isoformat())
        async with boot(work.flow, worker=False) as other:
            assert sum(await asyncio.gather(*(rounds(each) for each in (engine, other)))) == 1
        assert await history(engine) == [("28 08:00", "started", 0)]

    async def test_intervals_and_single_times_fire_too(self, engine: Engine, work: Work) -> None:
        await put(engine, work, "every", spec=timedelta(minutes=20), overlap="allow")
        await put(engine, work, "once", spec=datetime(2026, 3, 27, 10, 0), tz="Europe/Berlin")
        for moment in ("08:50", "09:00", "09:10", "09:30"):
            await at(engine, f"2026-03-27T{moment}")
            await rounds(engine)
        assert [day for day, *_ in await history(engine, "every")] == ["27 08:50", "27 09:10", "27 09:30"]
        assert await history(engine, "once") == [("27 09:00", "started", 0)]
        assert (await engine.schedules.get("once", tenant="T1")).ended

    async def test_it_ends_after_so_many_firings(self, engine: Engine, work: Work) -> None:
        await put(engine, work, spec="* * * * *", max_firings=2, overlap="allow")
        for minute in range(31, 36):
            await at(engine, f"2026-03-27T08:{minute}")
            await rounds(engine)
        assert [day for day, *_ in await history(engine)] == ["27 08:31", "27 08:32"]

    async def test_a_firing_begins_the_version_that_is_known_now(self, boot: Boot, engine: Engine, work: Work) -> None:
        @step(effect=Effect.READ)
        async def newer(n: int) -> int:
            return n * 10

        second = workflow("w", version="2", max_attempts=9).then(newer).commit()
        await put(engine, work, spec="* * * * *")
        async with boot(work.flow, second) as upgraded:
            await at(upgraded, "2026-03-27T08:31")
            await rounds(upgraded)
            (row,) = await upgraded.runs(tenant="T1")
            assert (row.version, row.max_attempts) == ("2", 9)
            await until(lambda: all_done(upgraded))


class TestWhatWentBy:
    """The clocks were away from nine to half past eleven; the schedule is hourly."""

    @pytest.mark.parametrize(
        ("rules", "expected"),
        [
            ({"catch_up": "one"}, [("27 11:00", "started", 2)]),
            ({"catch_up": "skip"}, [("27 11:00", "missed", 2)]),
            ({"catch_up": "skip", "grace_s": 3600}, [("27 11:00", "started", 2)]),
            (
                {"catch_up": "all", "overlap": "allow"},
                [("27 09:00", "started", 0), ("27 10:00", "started", 0), ("27 11:00", "started", 0)],
            ),
            (
                {"catch_up": "all", "catch_up_limit": 2, "overlap": "allow"},
                [("27 10:00", "started", 1), ("27 11:00", "started", 0)],
            ),
        ],
    )
    async def test_is_caught_up_with_by_its_rule(
        self, engine: Engine, work: Work, rules: dict[str, Any], expected: list[Any]
    ) -> None:
        await put(engine, work, spec="0 * * * *", tz="UTC", **rules)
        await at(engine, "2026-03-27T11:30")
        await rounds(engine, 3)
        assert await history(engine) == expected
        entry = await engine.schedules.get("s", tenant="T1")
        assert entry.next_at == datetime(2026, 3, 27, 12, 0, tzinfo=UTC)


class TestOverlaps:
    async def test_a_firing_is_left_out_while_the_run_before_is_still_going(self, engine: Engine, work: Work) -> None:
        work.gate.clear()
        await put(engine, work, spec="* * * * *", overlap="skip")
        for minute in (31, 32):
            await at(engine, f"2026-03-27T08:{minute}")
            await rounds(engine)
        work.gate.set()
        await until(lambda: all_done(engine))
        await at(engine, "2026-03-27T08:33")
        await rounds(engine)
        assert await history(engine) == [
            ("27 08:31", "started", 0),
            ("27 08:32", "skipped", 0),
            ("27 08:33", "started", 0),
        ]

    async def test_or_waits_for_its_end(self, engine: Engine, work: Work) -> None:
        work.gate.clear()
        await put(engine, work, spec="* * * * *", overlap="queue")
        for minute in (31, 32, 33):
            await at(engine, f"2026-03-27T08:{minute}")
            await rounds(engine)
        assert [status for _, status, _ in await history(engine)] == ["started", "queued", "queued"]
        work.gate.set()
        for _ in range(2):
            await until(lambda: all_done(engine))
            await rounds(engine)
        await until(lambda: all_done(engine))
        assert [status for _, status, _ in await history(engine)] == ["started"] * 3
        assert len(work.ran) == 3

    async def test_or_starts_beside_it(self, engine: Engine, work: Work) -> None:
        work.gate.clear()
        await put(engine, work, spec="* * * * *", overlap="allow")
        for minute in (31, 32):
            await at(engine, f"2026-03-27T08:{minute}")
            await rounds(engine)
        await until(lambda: _ran(work, 2))
        work.gate.set()


async def _ran(work: Work, count: int) -> bool:
    return len(work.ran) == count


class TestByHand:
    async def test_it_can_be_run_now_also_while_it_is_paused(self, engine: Engine, work: Work) -> None:
        entry = await put(engine, work)
        await engine.schedules.pause("s", tenant="T1", reason="holidays")
        firing = await engine.schedules.run_now("s", tenant="T1")
        assert (firing.cause, firing.status) == ("manual", FiringStatus.STARTED)
        await in_state(engine, firing.run_id, RunState.DONE, tenant="T1")
        assert (await engine.schedules.get("s", tenant="T1")).next_at == entry.next_at

    async def test_the_same_key_runs_it_once(self, engine: Engine, work: Work) -> None:
        await put(engine, work, overlap="allow")
        one, two = [await engine.schedules.run_now("s", tenant="T1", key="click-1") for _ in range(2)]
        assert one.run_id == two.run_id
        assert (await engine.schedules.run_now("s", tenant="T1", key="click-2")).run_id != one.run_id
        assert len(await engine.runs(tenant="T1")) == 2

    async def test_two_tenants_whose_names_run_into_each_other_have_runs_of_their_own(
        self, engine: Engine, work: Work
    ) -> None:
        runs = set()
        for tenant, name in (("a", "b/c"), ("a/b", "c")):
            await engine.schedule(name, work.flow, 1, spec="@yearly", tz="UTC", tenant=tenant)
            firing = await engine.schedules.run_now(name, tenant=tenant, key="k")
            assert firing.run_state is not None
            runs.add(firing.run_id)
        assert len(runs) == 2

    async def test_its_rule_for_overlaps_holds(self, engine: Engine, work: Work) -> None:
        work.gate.clear()
        await put(engine, work)
        await engine.schedules.run_now("s", tenant="T1")
        again = await engine.schedules.run_now("s", tenant="T1")
        assert (again.status, again.run_state) == (FiringStatus.SKIPPED, None)
        work.gate.set()


class TestPausing:
    async def test_paused_it_does_not_fire_and_resumed_it_does_not_catch_up(self, engine: Engine, work: Work) -> None:
        await put(engine, work, spec="0 * * * *", tz="UTC", catch_up="all")
        assert (await engine.schedules.pause("s", tenant="T1", reason="holidays")).paused_reason == "holidays"
        await at(engine, "2026-03-27T11:30")
        assert await rounds(engine) == 0
        resumed = await engine.schedules.resume("s", tenant="T1")
        assert (resumed.paused, resumed.next_at) == (False, datetime(2026, 3, 27, 12, 0, tzinfo=UTC))
        assert await rounds(engine) == 0
        await at(engine, "2026-03-27T12:00")
        assert await rounds(engine) == 1

    @pytest.mark.parametrize(
        ("change", "words"),
        [({"tz": "Europe/Atlantis"}, "no IANA time zone"), ({"spec": "whenever"}, "no cron expression")],
    )
    async def test_one_that_cannot_be_read_is_paused_says_why_and_keeps_no_other_from_firing(
        self, engine: Engine, work: Work, change: dict[str, str], words: str
    ) -> None:
        await put(engine, work, "a-broken", spec="* * * * *")
        await put(engine, work, "sound", spec="* * * * *")
        await engine.store.write(Update(SCHEDULES, {"tenant": "T1", "name": "a-broken"}, change))
        await at(engine, "2026-03-27T08:31")
        with structlog.testing.capture_logs() as logs:
            assert await rounds(engine) == 1
        broken = await engine.schedules.get("a-broken", tenant="T1")
        assert broken.paused
        assert words in (broken.paused_reason or "")
        assert [line["schedule"] for line in logs if line["event"] == "schedule_paused"] == ["a-broken"]
        assert [day for day, *_ in await history(engine, "sound")] == ["27 08:31"]
        with pytest.raises(InputError, match=words):
            await engine.schedules.resume("a-broken", tenant="T1")
        await put(engine, work, "a-broken", spec="* * * * *")
        assert not (await engine.schedules.get("a-broken", tenant="T1")).paused

    async def test_one_whose_time_went_by_while_it_was_paused_cannot_be_resumed(
        self, engine: Engine, work: Work
    ) -> None:
        await put(engine, work, spec=datetime(2026, 3, 27, 9, 0, tzinfo=UTC))
        await engine.schedules.pause("s", tenant="T1")
        await at(engine, "2026-03-27T11:30")
        with pytest.raises(InputError, match="no time left"):
            await engine.schedules.resume("s", tenant="T1")


class TestDelivery:
    async def test_whoever_delivers_tells_what_came_of_it_in_the_commit_of_its_step(
        self, boot: Boot, work: Work
    ) -> None:
        @step(effect=Effect.READ)
        async def post(n: int, ctx: StepContext) -> int:
            ctx.write(delivered(ctx.run_id, tenant=ctx.tenant, status="failed", at=await ctx.now(), detail="archived"))
            return n

        flow = workflow("w").then(post).commit()
        async with boot(flow) as engine:
            await engine.schedules.put("s", flow, 1, tenant="T1", spec="0 9 * * *")
            firing = await engine.schedules.run_now("s", tenant="T1")
            await in_state(engine, firing.run_id, RunState.DONE, tenant="T1")
            (found,) = await engine.schedules.history("s", tenant="T1")
            assert (found.run_state, found.delivery, found.delivery_detail) == (RunState.DONE, "failed", "archived")
            assert found.delivered_at is not None
            run = await engine.start(flow, 1, tenant="T1")  # no schedule fired it: there is nothing to tell
            assert await run.result(timeout=10) == 1


class TestPutting:
    async def test_put_again_at_a_start_it_loses_no_firing_that_is_due(self, engine: Engine, work: Work) -> None:
        await put(engine, work)
        await at(engine, "2026-03-28T08:00")
        await put(engine, work)
        assert await rounds(engine) == 1

    async def test_a_single_time_that_went_by_may_be_put_again_at_the_next_start(
        self, engine: Engine, work: Work
    ) -> None:
        once = datetime(2026, 3, 27, 9, 0, tzinfo=UTC)
        await put(engine, work, spec=once)
        await at(engine, "2026-03-27T09:00")
        await rounds(engine)
        assert (await put(engine, work, spec=once)).ended
        assert await rounds(engine) == 0
        with pytest.raises(InputError, match="still to come"):
            await put(engine, work, spec=once - MINUTE)

    async def test_an_operators_pause_outlives_a_start_that_puts_it_again(self, engine: Engine, work: Work) -> None:
        await put(engine, work)
        await engine.schedules.pause("s", tenant="T1")
        assert (await put(engine, work, keep_paused=True)).paused
        assert not (await put(engine, work)).paused

    @pytest.mark.parametrize(
        ("rules", "words"),
        [
            ({"spec": "0 9 * *"}, "five fields"),
            ({"tz": "Mars/Olympus"}, "no IANA time zone"),
            ({"spec": timedelta(0)}, "a second or more"),
            ({"spec": datetime(2020, 1, 1, tzinfo=UTC)}, "still to come"),
            ({"catch_up": "some"}, "catch_up is"),
            ({"overlap": "maybe"}, "overlap is"),
            ({"catch_up_limit": 0}, "catch_up_limit is"),
            ({"max_firings": 0}, "max_firings is"),
            ({"jitter_s": -1}, "jitter_s is"),
            ({"ends_at": datetime(2026, 3, 27, 8, 45, tzinfo=UTC)}, "before it ends"),
            ({"ends_at": datetime(2026, 3, 27, 8, 45)}, "must say its time zone"),
            ({"starts_at": datetime(2027, 1, 1, tzinfo=UTC), "ends_at": datetime(2026, 12, 1, tzinfo=UTC)}, "before it starts"),
            ({"name": ""}, "no name"),
            ({"name": "x" * 10_000_000}, "no name"),
        ],
    )  # fmt: skip
    async def test_a_bad_rule_is_refused_with_what_is_wrong(
        self, engine: Engine, work: Work, rules: dict[str, Any], words: str
    ) -> None:
        with pytest.raises(InputError, match=words):
            await put(engine, work, **rules)
        assert await engine.schedules.list(tenant="T1") == []

    async def test_a_value_of_another_type_is_refused(self, engine: Engine, work: Work) -> None:
        with pytest.raises(InputError, match="the input of w"):
            await engine.schedules.put("s", work.flow, "one", tenant="T1", spec="0 9 * * *")  # type: ignore[misc]

    async def test_nothing_fires_before_its_start(self, engine: Engine, work: Work) -> None:
        start = datetime(2026, 4, 1, 12, 10, tzinfo=UTC)
        every = await put(engine, work, spec=timedelta(hours=1), starts_at=start)
        assert every.next_at == start
        daily = await put(engine, work, "daily", starts_at=start)
        assert daily.next_at == datetime(2026, 4, 2, 7, 0, tzinfo=UTC)

    async def test_another_tenants_schedule_is_not_there(self, engine: Engine, work: Work) -> None:
        await put(engine, work)
        for act in (engine.schedules.get, engine.schedules.pause, engine.schedules.resume, engine.schedules.run_now):
            with pytest.raises(ScheduleNotFoundError, match="tenant T2 has no schedule 's'"):
                await act("s", tenant="T2")
        assert not await engine.schedules.delete("s", tenant="T2")
        assert await engine.schedules.history("s", tenant="T2") == []
        assert await engine.schedules.list(tenant="T2") == []
        assert await engine.schedules.delete("s", tenant="T1")

    async def test_it_is_described_for_people(self, engine: Engine, work: Work) -> None:
        entry = await put(engine, work)
        assert describe(entry) == {
            "name": "s",
            "when": "At 09:00 every day",
            "time_zone": "Europe/Berlin",
            "next_at": "2026-03-28T08:00:00+00:00",
        }
        paused = await engine.schedules.pause("s", tenant="T1", reason="holidays")
        assert describe(paused)["paused"] == "holidays"


async def test_a_clock_fires_by_itself(boot: Boot, work: Work, store: AnyStore) -> None:
    async with boot(work.flow, clock=True) as engine:
        await engine.schedules.put("s", work.flow, 7, tenant="T1", spec=timedelta(seconds=1))
        await until(lambda: _ran(work, 1))
        assert work.ran == [7]
