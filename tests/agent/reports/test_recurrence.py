"""Recurring times in words: what is understood is exactly what was said, and what is not is refused."""

import pytest

from agent.reports import cron_of
from workflows import InputError


@pytest.mark.parametrize(
    "text, cron",
    [
        ("every monday 9:00", "0 9 * * 1"),
        ("Mondays and Thursdays at noon", "0 12 * * 1,4"),
        ("mon, wed & fri 17.30", None),
        ("monday to thursday 9:00", "0 9 * * 1-4"),
        ("mon-fri at 8", "0 8 * * 1-5"),
        ("from friday through monday", "0 9 * * 5,6,0,1"),
        ("sat\N{EN DASH}sun 10", "0 10 * * 6,0"),
        ("every day at 9 and 17", "0 9,17 * * *"),
        ("every working day at 8:15", "15 8 * * 1-5"),
        ("every evening at 8", "0 20 * * *"),
        ("every evening", "0 18 * * *"),
        ("monday morning", "0 9 * * 1"),
        ("weekly", "0 9 * * 1"),
        ("weekly friday 10", "0 10 * * 5"),
        ("thurs 12am", "0 0 * * 4"),
        ("first monday of the month", "0 9 * * 1#1"),
        ("monthly on the last friday at 5pm", "0 17 * * 5L"),
        ("last day of every month", "0 9 L * *"),
        ("1st and 15th of the month at 8", "0 8 1,15 * *"),
        ("1st and 15th of month", "0 9 1,15 * *"),
        ("0 9 * * MON-FRI", "0 9 * * MON-FRI"),
        ("0 0 l * *", "0 0 L * *"),
    ],
)
def test_what_is_understood_is_what_was_said(text: str, cron: str | None) -> None:
    if cron is None:
        with pytest.raises(InputError, match="don't understand '&'"):
            cron_of(text)
    else:
        assert cron_of(text) == cron


@pytest.mark.parametrize(
    "text",
    [
        "every second tuesday", "every 2nd tuesday", "every other week", "biweekly on monday", "twice a week", "once on monday",
        "every weekday except friday", "not on monday", "never on friday", "quarterly on the 1st", "every monday of the month",
        "first and last monday of the month", "monday and the 1st", "daily on monday", "every hour", "monday 9-17", "monthly",
        "every monday 9:00 and 9:30", "every monday 13pm", "daily at 25", "monthly on the 45th", "13 in the morning daily", "sometime", "",
    ],
)  # fmt: skip
def test_what_would_be_half_understood_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(InputError, match="say for example"):
        cron_of(text)


@pytest.mark.parametrize("zone", ["UTC", "GMT", "CET", "PST", "Berlin time"])
def test_another_zone_is_refused_and_not_passed_over(zone: str) -> None:
    with pytest.raises(InputError, match="times are meant where you are"):
        cron_of(f"every monday 9:00 {zone}")


@pytest.mark.parametrize("cron", ["* * * * *", "*/5 * * * *", "0,30 9 * * 1", "1-5 9 * * *", "0 0 30 2 *"])
def test_a_cron_expression_of_more_than_once_an_hour_or_of_never_is_refused(cron: str) -> None:
    with pytest.raises(InputError):
        cron_of(cron)
