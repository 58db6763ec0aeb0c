"""When schedules are due, in the hours that clocks skip and repeat, on leap days and at the ends of months."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.errors import InputError
from workflows.schedules import explain, next_fire, zone
from workflows.schedules.timing import times_of, written

ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(spec: str, tz: str, after: str, count: int) -> list[str]:
    """The next times of `spec` after `after` (UTC), by the wall clock of `tz` with its offset."""
    at, found = utc(after), []
    for _ in range(count):
        at = next_fire(spec, tz, at)
        found.append(at.astimezone(zone(tz)).strftime("%m-%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("spec", "tz", "after", "expected"),
    [
        # The hour that does not exist: once, right after it.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["03-29 03:00+0200", "03-30 02:30+0200"]),
        ("30 2 * * *", "America/New_York", "2026-03-07T12:00", ["03-08 03:00-0400", "03-09 02:30-0400"]),
        ("30 1 * * *", "Europe/London", "2026-03-28T12:00", ["03-29 02:00+0100", "03-30 01:30+0100"]),
        ("0 0 * * *", "America/Santiago", "2026-09-05T12:00", ["09-06 01:00-0300", "09-07 00:00-0300"]),  # at midnight
        ("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00", ["04-24 01:00+0300", "04-25 00:00+0300"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T10:00", ["10-04 02:30+1100", "10-05 02:15+1100"]),  # half an hour
        # Two times of which one falls into the gap, and one right after it: once.
        ("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00", ["03-29 03:00+0200", "03-30 02:00+0200"]),
        # A day that never was: Samoa went from the 29th to the 31st.
        ("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00", ["12-29 09:00-1000", "12-31 00:00+1400", "12-31 09:00+1400"]),
        # The hour that comes twice: once, the first time.
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00", ["11-01 01:30-0400", "11-02 01:30-0500"]),
        ("30 1 * * *", "Europe/London", "2026-10-24T12:00", ["10-25 01:30+0100", "10-26 01:30+0000"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00", ["04-05 01:45+1100", "04-06 01:45+1030"]),
        # … unless it is every hour or every few minutes: then by real time, in both.
        ("30 * * * *", "America/New_York", "2026-11-01T05:00", ["11-01 01:30-0400", "11-01 01:30-0500", "11-01 02:30-0500"]),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:10", ["10-25 02:30+0200", "10-25 02:00+0100", "10-25 02:30+0100"]),
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:10", ["03-29 01:30+0100", "03-29 03:00+0200", "03-29 03:30+0200"]),
        # Days that are not in every month, and not in every year.
        ("0 9 29 2 *", "UTC", "2026-01-01T00:00", ["02-29 09:00+0000"]),
        ("0 9 31 * *", "Europe/Berlin", "2026-01-31T12:00", ["03-31 09:00+0200", "05-31 09:00+0200", "07-31 09:00+0200"]),
        ("0 9 L * *", "Europe/Berlin", "2028-01-31T12:00", ["02-29 09:00+0100", "03-31 09:00+0200", "04-30 09:00+0200"]),
        ("0 9 L 2 *", "UTC", "2026-01-01T00:00", ["02-28 09:00+0000", "02-28 09:00+0000", "02-29 09:00+0000"]),
        ("0 9 * * 1#1", "Asia/Kolkata", "2026-01-01T00:00", ["01-05 09:00+0530", "02-02 09:00+0530"]),
        ("@monthly", "Asia/Kathmandu", "2026-01-01T00:00", ["02-01 00:00+0545", "03-01 00:00+0545"]),
        ("@DAILY", "UTC", "2026-12-31T00:00", ["01-01 00:00+0000"]),
    ],
)  # fmt: skip
def test_the_wall_clock_says(spec: str, tz: str, after: str, expected: list[str]) -> None:
    assert local(spec, tz, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("tz", "spec", "within", "first"),
    [
        ("America/New_York", "30 1 * * *", "2026-11-01T06:10", "2026-11-01T05:30"),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T01:10", "2026-10-25T00:30"),
        ("Australia/Lord_Howe", "50 1 * * *", "2026-04-04T15:05", "2026-04-04T14:50"),
    ],
)
def test_asked_within_the_repetition_it_does_not_fire_a_second_time(
    tz: str, spec: str, within: str, first: str
) -> None:
    """A clock that starts, or a schedule that is put, between the two of an hour that comes twice."""
    assert next_fire(spec, tz, utc(within)) > utc(within) + timedelta(hours=20)
    assert times_of(spec, tz, anchor=ANCHOR).latest(utc(within)) == utc(first)


def test_once_right_after_the_gap_is_said_it_is_not_said_again() -> None:
    assert next_fire("30 2 * * *", "Europe/Berlin", utc("2026-03-29T01:00")) == utc("2026-03-30T00:30")


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo", "Pacific/Apia"]  # fmt: skip
SPECS = [
    "30 2 * * *",
    "0 0 * * *",
    "*/20 * * * *",
    "15 * * * *",
    "0 1-3 * * *",
    "0 9 31 * *",
    "0 0 29 2 *",
    "5 4 * * 1-5",
    "0 */6 L * *",
]


@settings(deadline=None)  # a loaded machine is no fault
@given(st.sampled_from(SPECS), st.sampled_from(ZONES), st.datetimes(datetime(2010, 1, 1), datetime(2035, 1, 1)))
def test_times_are_strictly_in_order_and_looking_back_finds_what_looking_forward_did(
    spec: str, tz: str, start: datetime
) -> None:
    """Over any stretch of years and any zone: what clocks do forwards and when they catch up is one sequence."""
    times = times_of(spec, tz, anchor=ANCHOR)
    at = start.replace(tzinfo=UTC)
    sequence = []
    for _ in range(12):
        following = times.after(at)
        assert following is not None
        assert following > at
        sequence.append(following)
        at = following
    for one, two in pairwise(sequence):
        assert times.latest(two) == two
        assert times.latest(two - timedelta(microseconds=1)) == one
        assert times.after(two - timedelta(microseconds=1)) == two


@pytest.mark.parametrize("tz", ZONES)
def test_a_daily_schedule_fires_once_on_each_day_of_thirty_years(tz: str) -> None:
    """Whatever the clocks do on it; a day that a zone skipped altogether is a moment long."""
    times, at = times_of("30 1 * * *", tz, anchor=ANCHOR), utc("2008-01-01T00:00")
    days = []
    while at < utc("2038-01-01T00:00"):
        following = times.after(at)
        assert following is not None
        at = following
        days.append(at.astimezone(zone(tz)).date())
    gaps = [two - one for one, two in pairwise(days) if two != one]
    assert set(gaps) <= {timedelta(days=1), timedelta(days=2)}
    assert len(days) - len(set(days)) <= 1


@pytest.mark.parametrize(
    "length",
    [timedelta(seconds=1), timedelta(seconds=1.25), timedelta(days=12, seconds=1), timedelta(days=7300, seconds=7)],
)
def test_an_interval_is_as_long_as_it_was_given(length: timedelta) -> None:
    times = times_of(written(length), "UTC", anchor=ANCHOR)
    assert times.after(ANCHOR) == ANCHOR + length


def test_an_interval_counts_real_time_from_where_it_began() -> None:
    anchor = utc("2026-03-28T23:30")
    times = times_of(written(timedelta(hours=1)), "Europe/Berlin", anchor=anchor)
    assert times.after(anchor) == utc("2026-03-29T00:30")
    assert times.after(utc("2026-03-29T01:29")) == utc("2026-03-29T01:30")
    assert times.after(anchor - timedelta(days=9)) == anchor
    assert times.latest(utc("2026-03-29T05:29")) == utc("2026-03-29T04:30")
    assert times.latest(anchor) == anchor
    assert times.latest(anchor - timedelta(seconds=1)) is None


@pytest.mark.parametrize(
    ("at", "tz", "moment"),
    [
        (datetime(2026, 10, 5, 9, 0), "Europe/Berlin", "2026-10-05T07:00"),
        (datetime(2026, 10, 5, 9, 0, tzinfo=UTC), "Europe/Berlin", "2026-10-05T09:00"),
        (datetime(2026, 3, 29, 2, 30), "Europe/Berlin", "2026-03-29T01:00"),  # does not exist: right after the gap
        (datetime(2026, 10, 25, 2, 30), "Europe/Berlin", "2026-10-25T00:30"),  # comes twice: the first
        (datetime(2011, 12, 30, 9, 0), "Pacific/Apia", "2011-12-30T10:00"),  # a day that never was
        (datetime(2028, 2, 29, 23, 59), "America/Los_Angeles", "2028-03-01T07:59"),
    ],
)
def test_a_single_time_is_that_of_the_zones_wall_clock(at: datetime, tz: str, moment: str) -> None:
    times = times_of(written(at), tz, anchor=ANCHOR)
    assert times.after(utc("2000-01-01T00:00")) == utc(moment) == times.latest(utc("2040-01-01T00:00"))
    assert times.after(utc(moment)) is None
    assert times.latest(utc(moment) - timedelta(seconds=1)) is None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),  # seconds
        ("61 * * * *", "ever fires"),
        ("0 0 31 2 *", "ever fires"),
        ("@every 0s", "a second or more"),
        ("@every -5m", "a second or more"),
        ("@every 5 parsecs", "is no interval"),
        ("@every 1e999d", "a second or more|is no interval"),
        ("@every nan s", "is no interval"),
        ("@at tomorrow", "is no time"),
        ("x" * 10_000_000, "five fields"),
    ],
)
def test_a_bad_spec_is_refused_with_a_good_one(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        times_of(spec, "UTC", anchor=ANCHOR)


@pytest.mark.parametrize("tz", ["", "Mars/Olympus", "../etc/passwd", "Europe/Berlin\0"])
def test_a_bad_zone_is_refused_with_a_good_one(tz: str) -> None:
    with pytest.raises(InputError, match="Europe/Berlin"):
        times_of("0 9 * * *", tz, anchor=ANCHOR)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("0 9 * * 1", "At 09:00 on Monday"),
        (timedelta(minutes=15), "Every 15 minutes"),
        (timedelta(days=1), "Every day"),
        (timedelta(seconds=90), "Every 90 seconds"),
        (datetime(2026, 10, 5, 9, 0, tzinfo=UTC), "Once, at 2026-10-05 09:00 UTC"),
    ],
)
def test_a_spec_is_explained(spec: Any, words: str) -> None:
    assert explain(written(spec)) == words
