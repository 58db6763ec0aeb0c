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
    MONTHS,
    SEASONS,
    WEEKDAYS,
    add_months,
    month_number,
    month_start,
    weekday_number,
)
from agent.campaigns.periods import EXAMPLES, Period, PeriodError, UnknownPeriodError, preceding, year_before
from agent.campaigns.units import read_unit

_DAY = timedelta(days=1)


def today_in(time_zone: str, now: datetime) -> date:
    """The date now in an IANA time zone. `now` is aware. Raises PeriodError for a zone nobody knows."""
    try:
        return now.astimezone(ZoneInfo(time_zone)).date()
    except (ValueError, OSError, KeyError):  # ZoneInfo raises each of these, by kind of nonsense
        raise PeriodError(f"{time_zone!r} is no time zone; they look like Europe/Berlin") from None


def parse_period(text: str, *, now: datetime, time_zone: str = "UTC", relative_to: Period | None = None) -> Period:
    """The period that `text` means to somebody in `time_zone` at `now` (aware), cut off at today.

    With `relative_to`, "the week before", "previous month", "a year earlier" and the like are counted from it; without, "the week
    before" is last week. Raises PeriodError for words that name no period, for one that has not begun, and for one that ends before it starts.
    """
    if now.tzinfo is None:
        raise ValueError("now must be aware")
    today = today_in(time_zone, now)
    words = _normalise(text)
    if _TO_COME.fullmatch(words):
        raise PeriodError(f"there are no figures for {_shown(text)} yet: it is still to come; try {EXAMPLES}")
    try:
        period = _relative(words, relative_to) if relative_to is not None else None
        period = period or _absolute(words, today)
    except (ValueError, OverflowError) as error:
        if isinstance(error, PeriodError):
            raise
        raise PeriodError(f"{_shown(text)} names days that don't exist; try {EXAMPLES}") from None
    if period is None:
        raise UnknownPeriodError(f"{_shown(text)} is no period I can read; try {EXAMPLES}")
    if period.start > today:
        raise PeriodError(f"{_shown(text)} has not begun yet (today is {today.day} {today:%B %Y}); try {EXAMPLES}")
    return replace(period, end=min(period.end, today))


def _shown(text: str) -> str:
    short = " ".join(text.split())
    return repr(short if len(short) <= 60 else short[:57] + "…")


_TO_COME = re.compile(
    r"(?:in |for |during |over |on )?(?:the )?"
    r"(?:tomorrow|tonight|day after tomorrow|(?:next|coming|upcoming) (?:(?:\d{1,4}|[a-z]+) )?"
    rf"(?:(?:day|week|weekend|fortnight|month|quarter|year)s?|{'|'.join((*MONTHS, *WEEKDAYS, *SEASONS))}))"
)
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
    words = re.sub(r"'s\b", "", words)  # yesterday's
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


def _before_now(words: str, today: date) -> Period | None:
    """With no week spoken of, "the week before" is the last one that is over. Which week somebody else has in mind can't be known."""
    match = _BEFORE.fullmatch(words)
    unit = (match["a"] or match["b"]) if match else None
    return read_unit(f"last {unit}", today) if unit not in {None, "period", "one"} else None


def _absolute(words: str, today: date) -> Period | None:
    bare = _FILLERS.sub("", words)
    for candidate in dict.fromkeys((words, bare)):
        for read in _READERS:
            period = read(candidate, today)
            if period is not None:
                return period
    return None


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
    period = read_unit(words, today)
    return period.start if period else None


_RANGE = re.compile(r"(?:from )?(.+?) (?:to|until|till|through|thru|up to) (.+)")
_BETWEEN = re.compile(r"between (.+?) and (.+)")


def _range(words: str, today: date) -> Period | None:
    match = _BETWEEN.fullmatch(words) or _RANGE.fullmatch(words)
    if match is None:
        return None
    left, right = _FILLERS.sub("", match[1]), _FILLERS.sub("", match[2])
    last = read_unit(_borrow(right, left), today)
    first = read_unit(_borrow(left, right), today)
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


_READERS: tuple[Callable[[str, date], Period | None], ...] = (read_unit, _since, _range, _before_now)
