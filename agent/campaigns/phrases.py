"""Reading periods from ordinary wording.

"Last week" is meant in the time zone of whoever asks, so today comes from the asker's clock. Weeks run from Monday to Sunday.
"Last 7 days" are the seven days before today, as ad platforms count them: half a day would make every comparison look like a fall.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

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
from agent.campaigns.periods import EXAMPLES, Period, PeriodError, UnknownPeriodError, preceding, year_before

_DAY = timedelta(days=1)


def today_in(time_zone: str, now: datetime) -> date:
    """The date now in an IANA time zone. `now` is aware. Raises PeriodError for a zone nobody knows."""
    try:
        return now.astimezone(ZoneInfo(time_zone)).date()
    except (ValueError, OSError, KeyError):  # ZoneInfo raises each of these, by kind of nonsense
        raise PeriodError(f"{time_zone!r} is no time zone; they look like Europe/Berlin") from None


def parse_period(text: str, *, now: datetime, time_zone: str = "UTC", relative_to: Period | None = None) -> Period:
    """The period that `text` means to somebody in `time_zone` at `now` (aware), cut off at today.

    With `relative_to`, "the week before", "previous month", "a year earlier" and the like are counted from it.
    Raises PeriodError for words that name no period, for one that has not begun, and for one that ends before it starts.
    """
    if now.tzinfo is None:
        raise ValueError("now must be aware")
    today = today_in(time_zone, now)
    words = _normalise(text)
    try:
        period = _relative(words, relative_to) if relative_to is not None else None
        period = period or _absolute(words, today)
    except (ValueError, OverflowError) as error:
        if isinstance(error, PeriodError):
            raise
        raise PeriodError(f"{_shown(text)} names days that don't exist: {error}; try {EXAMPLES}") from None
    if period is None:
        raise UnknownPeriodError(f"{_shown(text)} is no period I can read; try {EXAMPLES}")
    if period.start > today:
        raise PeriodError(f"{_shown(text)} has not begun yet (today is {today}); try {EXAMPLES}")
    return replace(period, end=min(period.end, today))


def _shown(text: str) -> str:
    short = " ".join(text.split())
    return repr(short if len(short) <= 60 else short[:57] + "…")


_FILLERS = re.compile(r"^(?:(?:in|for|during|over|on|within|of|across|throughout|the|whole|all of|entire|full) )+")
_TAILS = re.compile(r"(?:,? (?:so far|until now|till now|up to now|to now))$")


def _normalise(text: str) -> str:
    words = " ".join(text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split()).strip(" .?!,;:\"'")
    words = re.sub(r"\s*(?:\.\.\.?|…|\u2013|\u2014|→| - )\s*", " to ", words)
    words = re.sub(r"(?<=\d{4}-\d\d-\d\d)/(?=\d{4}-)", " to ", words)  # ISO 8601 interval
    words = re.sub(
        r"(?<![\d-])(\d{1,2}(?:st|nd|rd|th)?)-(?=\d{1,2}(?:st|nd|rd|th)? [a-z])", r"\1 to ", words
    )  # 1-7 November
    words = re.sub(r"([a-z]{3,9} \d{1,2})-(\d{1,2})\b", r"\1 to \2", words)  # November 1-7
    words = re.sub(r"\b(week|month|quarter|year|day)'s\b", r"\1", words)
    words = words.replace("week-end", "weekend")
    return _TAILS.sub("", words)


_BEFORE = re.compile(
    r"(?:vs\.? |versus )?(?:the )?"
    r"(?:(?:previous|prior|preceding) (?:one|period|(?P<a>day|week|month|quarter|year))"
    r"|(?P<b>day|week|month|quarter|year|period|one) (?:before|earlier|prior)(?: that| then| this)?|before(?: that)?|previous|prior)"
)
_YEAR_BEFORE = re.compile(
    r"(?:the )?(?:same (?:period|time|days?|weeks?|months?|quarter)(?: of)?(?: the)? (?:last|previous|prior) year"
    r"|(?:a|one|1) year (?:ago|before|earlier)|year[ -]over[ -]year|yoy|(?:same (?:period|time) )?a year (?:ago|earlier))"
)


def parse_relative(text: str, to: Period) -> Period | None:
    """The period that "the week before", "previous month", "a year earlier" mean beside `to`; None for other words."""
    try:
        return _relative(_normalise(text), to)
    except (ValueError, OverflowError):  # before year 1
        return None


def _relative(words: str, to: Period) -> Period | None:
    if _YEAR_BEFORE.fullmatch(words):
        return year_before(to)
    match = _BEFORE.fullmatch(words)
    if match is None:
        return None
    unit = match["a"] or match["b"]
    if unit == "year":
        return year_before(to)
    if unit in {None, "period", "one"} or _stands_for(to, unit):
        return preceding(to)
    return _unit_before(unit, to)


def _stands_for(period: Period, unit: str | None) -> bool:
    months = {"month": 1, "quarter": 3}.get(unit or "")
    return period.months == months if months else not period.months and unit == "week" and period.days <= 7


def _unit_before(unit: str | None, to: Period) -> Period:
    last = to.start - _DAY
    if unit == "day":
        return Period(last, last, "the day before")
    if unit == "week":
        return Period(to.start - 7 * _DAY, last, "the week before")
    months = 3 if unit == "quarter" else 1
    end = month_start(to.start) - _DAY
    return Period(add_months(month_start(end), 1 - months), end, f"the {unit} before", months=months)


def _absolute(words: str, today: date) -> Period | None:
    bare = _FILLERS.sub("", words)
    for candidate in dict.fromkeys((words, bare)):
        for read in _READERS:
            period = read(candidate, today)
            if period is not None:
                return period
    return None


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
    label = f"{unit} before last" if n == 2 else f"{n} {unit}s ago"
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


def _since(words: str, today: date) -> Period | None:
    match = re.fullmatch(
        r"(?:since|from|starting|as of) (.+?)(?: (?:on|onwards?|to today|until today|till today))?", words
    )
    if match is None:
        return None
    rest = _FILLERS.sub("", match[1])
    weekday = weekday_number(rest)
    start = today - ((today.weekday() - weekday) % 7) * _DAY if weekday is not None else _start_of(rest, today)
    return Period(start, today, f"since {start.day} {start:%B %Y}") if start is not None and start <= today else None


def _start_of(words: str, today: date) -> date | None:
    period = _simple(words, today)
    return period.start if period else None


_RANGE = re.compile(r"(?:from )?(.+?) (?:to|until|till|through|thru|up to) (.+)")
_BETWEEN = re.compile(r"between (.+?) and (.+)")


def _range(words: str, today: date) -> Period | None:
    match = _BETWEEN.fullmatch(words) or _RANGE.fullmatch(words)
    if match is None:
        return None
    left, right = _FILLERS.sub("", match[1]), _FILLERS.sub("", match[2])
    last = _simple(_borrow(right, left), today)
    first = _simple(_borrow(left, right), today)
    if first is None or last is None:
        return None
    start, end = first.start, last.end
    # "28 December to 3 January" and "20 November to 10 December" name the year for neither: each end was read on its own.
    if start > end and not re.search(r"\d{4}", left):
        start = add_months(start, -12)
    elif start > end and not re.search(r"\d{4}", right):
        end = add_months(end, 12)
    months = 0 if not (first.months and last.months) else (end.year - start.year) * 12 + end.month - start.month + 1
    whole = Period(start, end, "")
    return replace(whole, label=whole.dates, months=months)


def _borrow(part: str, other: str) -> str:
    """Beside "7 November 2026", the word "1" means 1 November 2026, and "5 October" means that of 2026."""
    if re.fullmatch(r"\d{1,2}(?:st|nd|rd|th)?", part):
        month = re.search(r"[a-z]{3,9}\.?(?:,? \d{4})?$", other) or re.match(r"[a-z]{3,9}", other)
        return f"{part} {month[0]}" if month else part
    year = re.search(r"\b\d{4}$", other)
    has_month = any(month_number(word) for word in part.split())
    return f"{part} {year[0]}" if year and has_month and not re.search(r"\d{4}", part) else part


_Reader = Callable[[str, date], Period | None]
_SIMPLE: tuple[_Reader, ...] = (_one_day, _last, _this, _ago, _part_of_year, _season, _month_or_year, _weekend)
_READERS: tuple[_Reader, ...] = (*_SIMPLE, _since, _range)


def _simple(words: str, today: date) -> Period | None:
    return next((period for read in _SIMPLE if (period := read(words, today)) is not None), None)
