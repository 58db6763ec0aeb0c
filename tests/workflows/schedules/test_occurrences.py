"""A schedule's rules: what it fires for when its clocks were away, how late, and when it ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workflows.schedules.occurrences import COUNTED, due, jitter, plan, upcoming
from workflows.schedules.timing import times_of
from workflows.storage.base import CatchUp, Schedule

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = Schedule("T1", "hourly", "w", "1", "0 * * * *", "UTC", NINE, due_at=NINE)


def fired(schedule: Schedule, now: datetime) -> list[tuple[int, int, bool]]:
    """What it fires for at `now`: the hour, how many earlier ones it stands for, and whether it is dropped itself."""
    return [(each.at.hour, each.missed, each.dropped) for each, _ in plan(schedule, now)]


def test_nothing_is_due_before_its_time() -> None:
    assert plan(HOURLY, NINE - timedelta(microseconds=1)) == []


@pytest.mark.parametrize("catch_up", ["skip", "one", "all"])
def test_a_time_that_has_just_come_fires_once(catch_up: CatchUp) -> None:
    schedule = replace(HOURLY, catch_up=catch_up)
    assert fired(schedule, NINE) == [(9, 0, False)]
    ((_, moved),) = plan(schedule, NINE)
    assert (moved.due_at, moved.next_at, moved.last_at, moved.fired, moved.ended) == (
        NINE + HOUR,
        NINE + HOUR,
        NINE,
        1,
        False,
    )


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("one", [(13, 4, False)]),
        ("all", [(9, 0, False), (10, 0, False), (11, 0, False), (12, 0, False), (13, 0, False)]),
        ("skip", [(13, 4, True)]),
    ],
)
def test_what_went_by_while_no_clock_ran(catch_up: CatchUp, expected: list[tuple[int, int, bool]]) -> None:
    schedule = replace(HOURLY, catch_up=catch_up)
    now = NINE + 4 * HOUR + timedelta(minutes=10)
    assert fired(schedule, now) == expected
    assert plan(schedule, now)[-1][1].due_at == NINE + 5 * HOUR


def test_to_skip_means_those_that_went_by_and_not_one_that_has_just_come() -> None:
    schedule = replace(HOURLY, catch_up="skip", grace_s=60)
    assert fired(schedule, NINE + 4 * HOUR + timedelta(seconds=59)) == [(13, 4, False)]
    assert fired(schedule, NINE + 4 * HOUR + timedelta(seconds=61)) == [(13, 4, True)]
    assert fired(schedule, NINE + timedelta(seconds=61)) == [(9, 0, True)]


def test_of_all_that_went_by_the_newest_are_fired_up_to_the_limit() -> None:
    schedule = replace(HOURLY, catch_up="all", catch_up_limit=2)
    assert fired(schedule, NINE + 4 * HOUR) == [(12, 3, False), (13, 0, False)]


def test_a_year_of_minutes_is_counted_no_further_than_need_be() -> None:
    schedule = replace(HOURLY, spec="* * * * *", catch_up="one")
    ((each, moved),) = plan(schedule, NINE + timedelta(days=365))
    assert (each.missed, moved.next_at) == (COUNTED, NINE + timedelta(days=365, minutes=1))


def test_each_step_goes_on_from_the_one_before() -> None:
    steps = plan(replace(HOURLY, catch_up="all"), NINE + 2 * HOUR)
    assert [moved.fired for _, moved in steps] == [1, 2, 3]
    assert [moved.last_at for _, moved in steps] == [NINE, NINE + HOUR, NINE + 2 * HOUR]
    assert [moved.due for _, moved in steps] == [NINE + HOUR, NINE + 2 * HOUR, NINE + 3 * HOUR]


def test_it_ends_after_its_last_time_and_after_its_last_firing() -> None:
    until = replace(HOURLY, catch_up="all", ends_at=NINE + HOUR + timedelta(minutes=30))
    assert fired(until, NINE + 9 * HOUR) == [(9, 0, False), (10, 0, False)]
    assert plan(until, NINE + 9 * HOUR)[-1][1].ended
    twice = replace(HOURLY, catch_up="all", max_firings=2)
    assert fired(twice, NINE + 9 * HOUR) == [(9, 0, False), (10, 0, False)]
    assert plan(twice, NINE + 9 * HOUR)[-1][1].ended


def test_a_time_that_was_skipped_does_not_count_towards_the_limit() -> None:
    schedule = replace(HOURLY, catch_up="skip", max_firings=1)
    ((each, moved),) = plan(schedule, NINE + 9 * HOUR + timedelta(minutes=30))
    assert each.dropped
    assert (moved.fired, moved.ended) == (0, False)


@pytest.mark.parametrize("catch_up", ["one", "all"])
def test_a_single_time_fires_late_rather_than_never(catch_up: CatchUp) -> None:
    once = replace(HOURLY, spec=f"@at {NINE.isoformat()}", catch_up=catch_up)
    ((each, moved),) = plan(once, NINE + timedelta(days=3))
    assert (each.at, each.dropped, moved.ended) == (NINE, False, True)


def test_an_interval_goes_on_in_step() -> None:
    every = replace(HOURLY, spec="@every 90m")
    ((each, moved),) = plan(every, NINE + timedelta(hours=5))
    assert (each.at, each.missed, moved.due_at) == (NINE + timedelta(hours=4.5), 3, NINE + timedelta(hours=6))


def test_jitter_is_the_same_on_every_clock_and_spreads_schedules() -> None:
    offsets = [jitter("T1", f"s{n}", NINE, within_s=600) for n in range(200)]
    assert offsets == [jitter("T1", f"s{n}", NINE, within_s=600) for n in range(200)]
    assert all(timedelta(0) <= each < timedelta(seconds=600) for each in offsets)
    assert max(offsets) - min(offsets) > timedelta(seconds=500)
    assert jitter("T2", "s0", NINE, within_s=600) != offsets[0] != jitter("T1", "s0", NINE + HOUR, within_s=600)
    assert jitter("T1", "s0", NINE, within_s=0) == timedelta(0)


def test_with_jitter_it_fires_later_for_the_same_time() -> None:
    schedule = upcoming(replace(HOURLY, jitter_s=1800), NINE)
    later = jitter("T1", "hourly", NINE, within_s=1800)
    assert (schedule.due, schedule.next_at) == (NINE, NINE + later)
    assert due(schedule, NINE + later - timedelta(microseconds=1)) == []
    assert fired(schedule, NINE + later) == [(9, 0, False)]


def test_a_time_whose_jitter_is_not_over_is_no_missed_one() -> None:
    """At ten o'clock sharp, the one of nine is due and the one of ten is still to come."""
    schedule = upcoming(replace(HOURLY, jitter_s=1800, catch_up="one"), NINE)
    ten = jitter("T1", "hourly", NINE + HOUR, within_s=1800)
    assert fired(schedule, NINE + HOUR + ten - timedelta(microseconds=1)) == [(9, 0, False)]
    assert fired(schedule, NINE + HOUR + ten) == [(10, 1, False)]


def test_a_clock_of_the_version_before_moves_on_by_one_column() -> None:
    """It knows no `due_at`: what it left there is not what the next firing is for."""
    moved = replace(HOURLY, next_at=NINE + HOUR, due_at=NINE)
    assert moved.due == NINE + HOUR
    assert fired(moved, NINE + HOUR) == [(10, 0, False)]
    assert replace(HOURLY, due_at=None).due == NINE


@settings(deadline=None)  # a loaded machine is no fault
@example(spec="*/7 * * * *", tz="UTC", catch_up="one", jitter_s=500.0, pauses=[1, 1, 1, 1, 14153, 258])
@given(
    st.sampled_from(["0 * * * *", "30 1 * * *", "*/7 * * * *", "@every 11m"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    st.sampled_from(["one", "all"]),
    st.sampled_from([0.0, 500.0]),
    st.lists(st.integers(1, 6 * 3600), min_size=1, max_size=12),
)
def test_however_the_clocks_come_and_go_no_time_fires_twice_and_none_is_unaccounted_for(
    spec: str, tz: str, catch_up: CatchUp, jitter_s: float, pauses: list[int]
) -> None:
    """Around the end of summer time. Each time is fired, or is counted as missed by a later one, in order: with a jitter longer than the
    period, one whose own jitter is over may wait for the one before it, and never longer than a jitter.
    """
    start = datetime(2026, 10, 24, 20, 0, tzinfo=UTC)
    schedule = replace(HOURLY, spec=spec, tz=tz, catch_up=catch_up, jitter_s=jitter_s, catch_up_limit=1000)
    schedule = upcoming(schedule, start)
    now, counted, seen = start, 0, []
    for pause in pauses:
        now += timedelta(seconds=pause)
        for each, moved in plan(schedule, now):
            seen.append(each.at)
            counted += 1 + each.missed
            schedule = moved
    assert seen == sorted(set(seen))
    times = times_of(spec, tz, anchor=start)
    at, expected = start, 0
    while seen and at <= seen[-1]:
        expected += 1
        following = times.after(at)
        assert following is not None
        at = following
    assert counted == expected
    assert schedule.due == at, "it stands at the first time that is not accounted for"
    assert schedule.next_at > now
    assert at + timedelta(seconds=jitter_s) > now
