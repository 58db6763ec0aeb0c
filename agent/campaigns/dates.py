"""Single days in ordinary wording, and arithmetic on calendar months."""

import re
from calendar import monthrange
from datetime import date, timedelta

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""Meteorological seasons of the northern half of the earth, by the month in which their three begin."""
NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "couple": 2,
}  # fmt: skip

_MONTH = r"(?P<month>[a-z]{3,9})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? (?P<year>\d{4}))?"
_DAY_FIRST = re.compile(rf"(?:the )?{_DAY}(?: of)? {_MONTH}{_YEAR}")
_MONTH_FIRST = re.compile(rf"{_MONTH} (?:the )?{_DAY}{_YEAR}")
_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_MONTH_ALONE = re.compile(rf"{_MONTH}{_YEAR}")
_SHOPPING = re.compile(r"(?:the )?(black friday|cyber monday|christmas)(?: day)?(?:,? (\d{4}))?")
_AGO = re.compile(r"(\d{1,4}|[a-z]+) days? ago")


def month_number(word: str) -> int | None:
    """1 to 12 for a month's name or its usual short form ("Oct", "Sept."), else None."""
    text = word.casefold().rstrip(".")
    if len(text) < 3:
        return None
    found = [n for n, name in enumerate(MONTHS, 1) if name == text or name[:3] == text or (text == "sept" and n == 9)]
    return found[0] if found else None


def weekday_number(word: str) -> int | None:
    """0 (Monday) to 6 for a weekday's name, its plural or its short form, else None."""
    text = word.casefold().rstrip(".")
    text = text.removesuffix("s") if text not in {"tues", "thurs", "weds"} else text
    if len(text) < 3:
        return None
    found = [n for n, name in enumerate(WEEKDAYS) if name.startswith(text)]
    return found[0] if len(found) == 1 else None


def count(word: str) -> int | None:
    """A small count in digits or words, else None."""
    return int(word) if word.isascii() and word.isdigit() else NUMBERS.get(word)


def add_months(day: date, months: int) -> date:
    """The same day `months` later (or earlier), or that month's last day if it is shorter. Raises ValueError past year 9999."""
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def month_start(day: date) -> date:
    """The first of the month."""
    return day.replace(day=1)


def week_start(day: date) -> date:
    """The Monday of the week; weeks are ISO weeks."""
    return day - timedelta(days=day.weekday())


def latest(month: int, day: int, *, today: date) -> date:
    """The last time this day of the year came round, today included. Raises ValueError if no year has it."""
    for year in range(today.year, today.year - 9, -1):
        if day <= monthrange(year, month)[1] and (found := date(year, month, day)) <= today:
            return found
    raise ValueError(f"there is no day {day} in {MONTHS[month - 1].title()}")


def parse_month(text: str, *, today: date) -> date | None:
    """The first of a named month ("october", "oct 2026"); without a year, the last one that has begun. Else None."""
    match = _MONTH_ALONE.fullmatch(text)
    month = month_number(match["month"]) if match else None
    if match is None or month is None:
        return None
    return date(int(match["year"]), month, 1) if match["year"] else latest(month, 1, today=today)


def parse_day(text: str, *, today: date) -> date | None:
    """A day in ordinary wording, in lower case: "yesterday", "1 november", "nov 1st, 2026", "2026-11-01", "1.11.2026", "3 days ago".

    Returns None for what is no day. Raises ValueError for a day that does not exist, such as 31 February.
    """
    if text in {"today", "now"}:
        return today
    if text == "yesterday":
        return today - timedelta(days=1)
    if text in {"the day before yesterday", "day before yesterday"}:
        return today - timedelta(days=2)
    if match := _ISO.fullmatch(text):
        return date(*map(int, match.groups()))
    if match := _DOTTED.fullmatch(text):
        day, month, year = map(int, match.groups())
        return date(year, month, day)
    if match := _AGO.fullmatch(text):
        days = count(match[1])
        return today - timedelta(days=days) if days is not None else None
    return _calendar_day(text, today=today) or _shopping_day(text, today=today)


def _shopping_day(text: str, *, today: date) -> date | None:
    """Black Friday (the day after November's fourth Thursday), Cyber Monday and Christmas; without a year, the last one."""
    match = _SHOPPING.fullmatch(text)
    if match is None:
        return None
    years = [int(match[2])] if match[2] else [today.year, today.year - 1]
    found = date.max
    for year in years:
        first = date(year, 11, 1)
        friday = first + timedelta(days=(3 - first.weekday()) % 7 + 22)
        found = {"black friday": friday, "cyber monday": friday + timedelta(days=3)}.get(match[1], date(year, 12, 25))
        if found <= today:
            break
    return found


def _calendar_day(text: str, *, today: date) -> date | None:
    for pattern in (_DAY_FIRST, _MONTH_FIRST):
        match = pattern.fullmatch(text)
        month = month_number(match["month"]) if match else None
        if match is None or month is None:
            continue
        day = int(match["day"])
        return date(int(match["year"]), month, day) if match["year"] else latest(month, day, today=today)
    return None
