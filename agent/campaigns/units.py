"""Periods that are one unit of the calendar: days, weeks, months, quarters, seasons, years, weekends, and the last few of them."""

import re
from collections.abc import Callable
from datetime import date, timedelta

from agent.campaigns.dates import (
    SEASONS,
    add_months,
    count,
    latest,
    month_number,
    month_start,
    parse_day,
    parse_month,
    week_start,
    weekday_number,
)
from agent.campaigns.periods import EXAMPLES, Period, PeriodError

_DAY = timedelta(days=1)


def read_unit(words: str, today: date) -> Period | None:
    """The unit that `words` (lower case, no preposition) mean on the day `today`; None if they mean none.

    Raises ValueError for days that don't exist.
    """
    return next((period for read in _READERS if (period := read(words, today)) is not None), None)


_LAST = re.compile(
    r"(?P<which>last|past|previous|prior|preceding|trailing)(?: (?P<n>\d{1,4}|a couple of|couple of|few|[a-z]+))? "
    r"(?:full |whole |complete |calendar )?(?P<unit>days?|weeks?|fortnights?|months?|quarters?|years?)"
)
_SHORT = re.compile(r"(\d{1,4}) ?(d|w|m|days|weeks|months)")
_UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _last(words: str, today: date) -> Period | None:
    if match := _SHORT.fullmatch(words):
        unit = {"d": "day", "w": "week", "m": "month"}[match[2][0]]
        return _last_units(int(match[1]), unit, today)
    match = _LAST.fullmatch(words)
    if match is None:
        return None
    unit = match["unit"].removesuffix("s")
    number = match["n"]
    if number is None:
        if match["which"] in {"past", "trailing"} and unit in {"week", "month"}:
            return _last_units(
                7 if unit == "week" else 30, "day", today
            )  # "the past week" is seven days, not Monday to Sunday
        return _last_units(1, unit, today)
    n = 3 if number == "few" else 2 if "couple" in number else count(number)
    return _last_units(n, unit, today) if n is not None else None


def _last_units(n: int, unit: str, today: date) -> Period:
    if n < 1:
        raise PeriodError(f"a period needs at least one {unit}; try {EXAMPLES}")
    label = f"last {unit}" if n == 1 else f"last {n} {unit}s"
    if unit in {"day", "fortnight"}:
        length = n * (14 if unit == "fortnight" else 1)
        label = "yesterday" if length == 1 else f"last {length} days"
        return Period(today - length * _DAY, today - _DAY, label)
    if unit == "week":
        this = week_start(today)
        return Period(this - 7 * n * _DAY, this - _DAY, label)
    months = _UNIT_MONTHS[unit]
    this = _unit_start(today, months)
    return Period(add_months(this, -n * months), this - _DAY, label, months=n * months)


def _unit_start(day: date, months: int) -> date:
    """The first day of the month, quarter (3) or year (12) of `day`."""
    return date(day.year, (day.month - 1) // months * months + 1, 1)


_THIS = re.compile(r"(?:this|current) (day|week|month|quarter|year)")
_TO_DATE = re.compile(r"(week|month|quarter|year)[ -]to[ -]date")
_TO_DATE_SHORT = {"wtd": "week", "mtd": "month", "qtd": "quarter", "ytd": "year"}


def _this(words: str, today: date) -> Period | None:
    match = _THIS.fullmatch(words) or _TO_DATE.fullmatch(words)
    unit = match[1] if match else _TO_DATE_SHORT.get(words)
    if unit is None:
        return None
    if unit == "day":
        return Period(today, today, "today")
    if unit == "week":
        return Period(week_start(today), today, "this week", stride=7)
    months = _UNIT_MONTHS[unit]
    label = "year to date" if unit == "year" else f"this {unit}"
    return Period(_unit_start(today, months), today, label, months=months)


_AGO = re.compile(r"(?P<n>\d{1,3}|[a-z]+) (?P<unit>week|month|quarter|year)s? ago")
_BEFORE_LAST = re.compile(r"(week|month|quarter|year) before last")


def _ago(words: str, today: date) -> Period | None:
    if match := _BEFORE_LAST.fullmatch(words):
        n, unit = 2, match[1]
    elif match := _AGO.fullmatch(words):
        n, unit = count(match["n"]) or 0, match["unit"]
    else:
        return None
    if n < 1:
        return None
    nearest = _last_units(1, unit, today)
    label = f"last {unit}" if n == 1 else f"{unit} before last" if n == 2 else f"{n} {unit}s ago"
    if unit == "week":
        shift = 7 * (n - 1) * _DAY
        return Period(nearest.start - shift, nearest.end - shift, label)
    months = _UNIT_MONTHS[unit]
    start = add_months(nearest.start, -(n - 1) * months)
    return Period(start, add_months(start, months) - _DAY, label, months=months)


_QUARTER = re.compile(r"(?:q([1-4])|(first|second|third|fourth|last) quarter)(?:,? (?:of )?(\d{4}))?")
_HALF = re.compile(r"(?:h([12])|(first|second) half)(?:,? (?:of )?(\d{4}))?")
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}


def _part_of_year(words: str, today: date) -> Period | None:
    for pattern, months, letter in ((_QUARTER, 3, "Q"), (_HALF, 6, "H")):
        match = pattern.fullmatch(words)
        if match is None:
            continue
        part = int(match[1]) if match[1] else _ORDINALS.get(match[2])
        if part is None:
            return None
        month = (part - 1) * months + 1
        year = int(match[3]) if match[3] else today.year - (date(today.year, month, 1) > today)
        start = date(year, month, 1)
        return Period(start, add_months(start, months) - _DAY, f"{letter}{part} {year}", months=months)
    return None


_SEASON = re.compile(rf"(?:(last|this|past|previous) )?({'|'.join(SEASONS)})(?:,? (?:of )?(\d{{4}}))?")


def _season(words: str, today: date) -> Period | None:
    match = _SEASON.fullmatch(words)
    if match is None:
        return None
    month = SEASONS[match[2]]
    start = date(int(match[3]), month, 1) if match[3] else latest(month, 1, today=today)
    end = add_months(start, 3) - _DAY
    if match[1] in {"last", "past", "previous"} and start <= today <= end:
        start, end = add_months(start, -12), add_months(start, -9) - _DAY
    return Period(start, end, f"{match[2]} {start.year}", months=3)


_WEEK_OF = re.compile(r"(first|second|third|fourth|last) week (?:of|in) (.+)")


def _week_of_month(words: str, today: date) -> Period | None:
    """Seven days counted from the beginning of a month, or the seven that end it."""
    match = _WEEK_OF.fullmatch(words)
    month = parse_month(match[2], today=today) if match else None
    if match is None or month is None:
        return None
    start = add_months(month, 1) - 7 * _DAY if match[1] == "last" else month + 7 * (_ORDINALS[match[1]] - 1) * _DAY
    return Period(start, start + 6 * _DAY, f"{match[1]} week of {month:%B %Y}")


def _month_or_year(words: str, today: date) -> Period | None:
    if re.fullmatch(r"(?:19|20)\d\d", words):
        year = int(words)
        return Period(date(year, 1, 1), date(year, 12, 31), words, months=12)
    if match := re.fullmatch(r"(\d{4})-(\d{2})", words):
        start = date(int(match[1]), int(match[2]), 1)
    elif match := re.fullmatch(r"last ([a-z]{3,9})", words):
        month = month_number(match[1])
        found = parse_month(match[1], today=today) if month else None
        if found is None:
            return None
        start = add_months(found, -12) if found == month_start(today) else found
    elif found := parse_month(words, today=today):
        start = found
    else:
        return None
    return Period(start, add_months(start, 1) - _DAY, f"{start:%B %Y}", months=1)


def _weekend(words: str, today: date) -> Period | None:
    match = re.fullmatch(r"(?:(this|last|past|previous) )?weekend", words)
    if match is None:
        return None
    saturday = week_start(today) + 5 * _DAY
    if match[1] == "this":
        return Period(saturday, saturday + _DAY, "this weekend", stride=7)
    begun = saturday <= today and match[1] is None
    start = saturday if begun else saturday - 7 * _DAY
    return Period(start, start + _DAY, "the weekend" if begun else "last weekend", stride=7)


def _one_day(words: str, today: date) -> Period | None:
    day = parse_day(words, today=today)
    if day is not None:
        names = {today: "today", today - _DAY: "yesterday"}
        label = names.get(day, f"{day.day} {day:%B %Y}")
        return Period(day, day, label)
    match = re.fullmatch(r"(?:(?:last|past|previous) )?([a-z]{3,9})", words)
    weekday = weekday_number(match[1]) if match else None
    if weekday is None:
        return None
    day = today - ((today.weekday() - weekday - 1) % 7 + 1) * _DAY
    return Period(day, day, f"{day:%A}", stride=7)


_READERS: tuple[Callable[[str, date], Period | None], ...] = (
    _one_day, _last, _this, _ago, _part_of_year, _season, _week_of_month, _month_or_year, _weekend,
)  # fmt: skip
