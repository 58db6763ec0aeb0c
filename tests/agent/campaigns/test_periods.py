"""Periods in ordinary wording mean the days a person would count off on the calendar of their own time zone."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.campaigns import Period, PeriodError, parse_period, preceding, year_before

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)  # a Wednesday


def read(text: str, *, now: datetime = NOW, time_zone: str = "Europe/Berlin") -> Period:
    return parse_period(text, now=now, time_zone=time_zone)


@pytest.mark.parametrize(
    "text, start, end",
    [
        ("today", "2026-11-25", "2026-11-25"),
        ("Yesterday", "2026-11-24", "2026-11-24"),
        ("the day before yesterday", "2026-11-23", "2026-11-23"),
        ("last 7 days", "2026-11-18", "2026-11-24"),
        ("the past seven days", "2026-11-18", "2026-11-24"),
        ("previous 30 days", "2026-10-26", "2026-11-24"),
        ("over the last couple of days", "2026-11-23", "2026-11-24"),
        ("7d", "2026-11-18", "2026-11-24"),
        ("30d", "2026-10-26", "2026-11-24"),
        ("last fortnight", "2026-11-11", "2026-11-24"),
        ("last week", "2026-11-16", "2026-11-22"),
        ("last week's", "2026-11-16", "2026-11-22"),
        ("last 2 weeks", "2026-11-09", "2026-11-22"),
        ("past week", "2026-11-18", "2026-11-24"),
        ("this week", "2026-11-23", "2026-11-25"),
        ("week to date", "2026-11-23", "2026-11-25"),
        ("the week before last", "2026-11-09", "2026-11-15"),
        ("two weeks ago", "2026-11-09", "2026-11-15"),
        ("3 days ago", "2026-11-22", "2026-11-22"),
        ("the day before", "2026-11-24", "2026-11-24"),
        ("the week before", "2026-11-16", "2026-11-22"),
        ("previous week", "2026-11-16", "2026-11-22"),
        ("the month before", "2026-10-01", "2026-10-31"),
        ("the quarter before", "2026-07-01", "2026-09-30"),
        ("the year before", "2025-01-01", "2025-12-31"),
        ("one week ago", "2026-11-16", "2026-11-22"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("this month so far", "2026-11-01", "2026-11-25"),
        ("month to date", "2026-11-01", "2026-11-25"),
        ("mtd", "2026-11-01", "2026-11-25"),
        ("last 3 months", "2026-08-01", "2026-10-31"),
        ("in October", "2026-10-01", "2026-10-31"),
        ("October 2025", "2025-10-01", "2025-10-31"),
        ("oct", "2026-10-01", "2026-10-31"),
        ("december", "2025-12-01", "2025-12-31"),
        ("november", "2026-11-01", "2026-11-25"),
        ("2026-10", "2026-10-01", "2026-10-31"),
        ("last October", "2026-10-01", "2026-10-31"),
        ("Q3", "2026-07-01", "2026-09-30"),
        ("q4", "2026-10-01", "2026-11-25"),
        ("Q4 2025", "2025-10-01", "2025-12-31"),
        ("the third quarter of 2025", "2025-07-01", "2025-09-30"),
        ("last quarter", "2026-07-01", "2026-09-30"),
        ("this quarter", "2026-10-01", "2026-11-25"),
        ("h1", "2026-01-01", "2026-06-30"),
        ("first half of 2025", "2025-01-01", "2025-06-30"),
        ("year to date", "2026-01-01", "2026-11-25"),
        ("YTD", "2026-01-01", "2026-11-25"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("this year", "2026-01-01", "2026-11-25"),
        ("2025", "2025-01-01", "2025-12-31"),
        ("last 12 months", "2025-11-01", "2026-10-31"),
        ("last weekend", "2026-11-21", "2026-11-22"),
        ("the weekend", "2026-11-21", "2026-11-22"),
        ("since Monday", "2026-11-23", "2026-11-25"),
        ("since Wednesday", "2026-11-25", "2026-11-25"),
        ("since 1 November", "2026-11-01", "2026-11-25"),
        ("since October", "2026-10-01", "2026-11-25"),
        ("on Monday", "2026-11-23", "2026-11-23"),
        ("last wednesday", "2026-11-18", "2026-11-18"),
        ("from 1 to 7 November", "2026-11-01", "2026-11-07"),
        ("1-7 November", "2026-11-01", "2026-11-07"),
        ("November 1-7", "2026-11-01", "2026-11-07"),
        ("between November 1st and November 7th", "2026-11-01", "2026-11-07"),
        ("28 October to 3 November", "2026-10-28", "2026-11-03"),
        ("from 28 Dec to 3 Jan", "2025-12-28", "2026-01-03"),
        ("September to October", "2026-09-01", "2026-10-31"),
        ("2026-11-01..2026-11-07", "2026-11-01", "2026-11-07"),
        ("2026-11-01 to 2026-11-07", "2026-11-01", "2026-11-07"),
        ("2026-11-01/2026-11-07", "2026-11-01", "2026-11-07"),
        ("2026-11-03", "2026-11-03", "2026-11-03"),
        ("3.11.2026", "2026-11-03", "2026-11-03"),
        ("Nov 3rd, 2026", "2026-11-03", "2026-11-03"),
        ("the 3rd of November", "2026-11-03", "2026-11-03"),
        ("29 February", "2024-02-29", "2024-02-29"),
        ("the last week of October", "2026-10-25", "2026-10-31"),
        ("second week of October 2025", "2025-10-08", "2025-10-14"),
        ("yesterday's", "2026-11-24", "2026-11-24"),
        ("last summer", "2026-06-01", "2026-08-31"),
        ("in winter", "2025-12-01", "2026-02-28"),
        ("autumn 2025", "2025-09-01", "2025-11-30"),
        ("Black Friday", "2025-11-28", "2025-11-28"),
        ("cyber monday 2024", "2024-12-02", "2024-12-02"),
        ("Christmas", "2025-12-25", "2025-12-25"),
    ],
)
def test_usual_wording_is_read(text: str, start: str, end: str) -> None:
    period = read(text)
    assert (period.start.isoformat(), period.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("whenever", "no period"),
        ("", "no period"),
        ("last flurble", "no period"),
        ("October and September", "no period"),
        ("tomorrow", "still to come"),
        ("the day after tomorrow", "still to come"),
        ("next year", "still to come"),
        ("in the next 3 months", "still to come"),
        ("the coming Monday", "still to come"),
        ("31 February 2026", "don't exist"),
        ("December 2026", "not begun"),
        ("2027-01-01..2027-01-31", "not begun"),
        ("2026-11-07..2026-11-01", "can't start"),
        ("last 0 days", "at least one"),
        ("last 9999 years", "don't exist"),
    ],
)
def test_what_is_no_period_is_refused_with_examples(text: str, wrong: str) -> None:
    with pytest.raises(PeriodError, match=wrong) as error:
        read(text)
    assert "last 30 days" in str(error.value)


@pytest.mark.parametrize(
    "now, time_zone, today",
    [
        ("2026-11-25T23:30:00+00:00", "Europe/Berlin", "2026-11-26"),
        ("2026-11-25T23:30:00+00:00", "America/New_York", "2026-11-25"),
        ("2026-11-25T11:30:00+00:00", "Pacific/Auckland", "2026-11-26"),
        ("2026-03-29T00:59:00+00:00", "Europe/Berlin", "2026-03-29"),  # a minute before the clocks go forward
        ("2026-03-29T22:30:00+00:00", "Europe/Berlin", "2026-03-30"),
        ("2026-10-25T22:30:00+00:00", "Europe/Berlin", "2026-10-25"),  # the day of 25 hours
        ("2026-10-25T23:30:00+00:00", "Europe/Berlin", "2026-10-26"),
    ],
)
def test_today_is_the_askers(now: str, time_zone: str, today: str) -> None:
    assert read("today", now=datetime.fromisoformat(now), time_zone=time_zone).start.isoformat() == today


def test_last_week_differs_for_two_people_at_one_moment() -> None:
    moment = datetime(2026, 11, 22, 23, 30, tzinfo=UTC)  # Monday in Berlin, Sunday in New York
    assert read("last week", now=moment).start == date(2026, 11, 16)
    assert read("last week", now=moment, time_zone="America/New_York").start == date(2026, 11, 9)


def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(PeriodError, match="Nowhere/Land"):
        read("today", time_zone="Nowhere/Land")


@pytest.mark.parametrize(
    "text, start, end",
    [
        ("last week", "2026-11-09", "2026-11-15"),
        ("last 30 days", "2026-09-26", "2026-10-25"),
        ("last month", "2026-09-01", "2026-09-30"),
        ("March 2026", "2026-02-01", "2026-02-28"),
        ("this month", "2026-10-01", "2026-10-25"),
        ("this week", "2026-11-16", "2026-11-18"),
        ("last quarter", "2026-04-01", "2026-06-30"),
        ("last 3 months", "2026-05-01", "2026-07-31"),
        ("year to date", "2025-01-01", "2025-11-25"),
        ("2026-11-01..2026-11-07", "2026-10-25", "2026-10-31"),
        ("yesterday", "2026-11-23", "2026-11-23"),
    ],
)
def test_the_period_before(text: str, start: str, end: str) -> None:
    before = preceding(read(text))
    assert (before.start.isoformat(), before.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "asked, text, start, end",
    [
        ("last week", "the week before", "2026-11-09", "2026-11-15"),
        ("last week", "vs the previous week", "2026-11-09", "2026-11-15"),
        ("last month", "the month before", "2026-09-01", "2026-09-30"),
        ("last month", "previous period", "2026-09-01", "2026-09-30"),
        ("last month", "the week before", "2026-09-24", "2026-09-30"),
        ("last week", "the month before", "2026-10-01", "2026-10-31"),
        ("yesterday", "the day before", "2026-11-23", "2026-11-23"),
        ("last week", "same period last year", "2025-11-16", "2025-11-22"),
        ("October", "a year earlier", "2025-10-01", "2025-10-31"),
        ("October", "September", "2026-09-01", "2026-09-30"),
        ("this week", "last week", "2026-11-16", "2026-11-22"),
    ],
)
def test_wording_relative_to_another_period(asked: str, text: str, start: str, end: str) -> None:
    period = parse_period(text, now=NOW, time_zone="Europe/Berlin", relative_to=read(asked))
    assert (period.start.isoformat(), period.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "text, dates",
    [
        ("last week", "16\N{EN DASH}22 November 2026"),
        ("28 October to 3 November", "28 October \N{EN DASH} 3 November 2026"),
        ("28 Dec 2025 to 3 Jan 2026", "28 December 2025 \N{EN DASH} 3 January 2026"),
        ("yesterday", "24 November 2026"),
    ],
)
def test_dates_are_named_shortly(text: str, dates: str) -> None:
    assert read(text).dates == dates


@given(
    st.dates(date(2000, 1, 1), date(2100, 1, 1)),
    st.sampled_from(
        ["yesterday", "last week", "last month", "last quarter", "last year", "last 17 days", "last 5 months"]
    ),
)
def test_the_period_before_ends_where_the_period_begins(today: date, text: str) -> None:
    period = read(text, now=datetime(today.year, today.month, today.day, 12, tzinfo=UTC), time_zone="UTC")
    assert period.end < today
    assert preceding(period).end == period.start - timedelta(days=1)
    assert year_before(period).days in {period.days - 1, period.days, period.days + 1}


_WORDS = (
    "last", "past", "this", "week", "month", "year", "days", "since", "from", "to", "and", "1", "7", "31", "0", "99999",
    "november", "q3", "2026-11-01", "..", "-", "before", "ago", "monday",
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_WORDS), max_size=7).map(" ".join)))
def test_no_text_does_anything_but_give_a_period_or_say_why_not(text: str) -> None:
    relative = read("last week")
    for to in (None, relative):
        try:
            period = parse_period(text, now=NOW, time_zone="Europe/Berlin", relative_to=to)
        except PeriodError:
            continue
        assert period.start <= period.end <= date(2026, 11, 25)
