"""When to post again and again, in ordinary wording, as cron: "every monday 9:00", "daily at 8", "first monday of the month".

Every word has to be understood: a time that is half understood is another one, and nobody looks for what is posted then.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from workflows import InputError
from workflows.schedules import next_fire

T = TypeVar("T")

DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
EXAMPLES = 'say for example "every monday 9:00", "daily at 8:30", "monday to thursday 17:00", "first monday of the month" or "monthly on the 1st at 9"'
_AFTER = datetime(2026, 1, 1, tzinfo=UTC)
"""Any moment: whether a cron expression is valid does not depend on it."""
_FILLER = frozenset(["a", "an", "and", "at", "each", "every", "from", "in", "of", "on", "please", "the"])
_PARTS = {"morning": 9, "afternoon": 14, "evening": 18}
"""The hours that parts of a day stand for, where none is named."""
_EVERY = {
    "daily": "*", "day": "*", "weekday": "1-5", "weekdays": "1-5", "weekend": "6,0", "weekends": "6,0", "weekly": "1", "week": "1",
}  # fmt: skip

_DAY = "(?:{})".format("|".join(rf"{day[:3]}(?:{day[3:]}|{day[3:4]}|{day[3:5]})?s?" for day in DAYS))
_NTH = "|".join([*ORDINALS, "last"])
_MONTH = r"(?:(?:of|in) )?(?:(?:the|every|each|a) )?months?|monthly"
_TIME = re.compile(
    r"(?<![\d.:])(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2}))?(?: ?(?P<half>am|pm))?(?: ?o'?clock)?(?![\w:])|\b(?P<word>noon|midday|midnight)\b"
)
_RANGE = re.compile(rf"\b({_DAY}) ?(?:-|to|through|until|till) ?({_DAY})\b")
_NTH_DAY = re.compile(rf"\b({_NTH}) (day|{_DAY})\b")
_DATE = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")


def cron_of(text: str) -> str:
    """A five-field cron expression that fires once an hour at most. Raises InputError with examples for what it can't read whole."""
    words = " ".join(text.lower().replace(",", " ").replace("\N{EN DASH}", "-").split())
    fields = text.split()
    if len(fields) == 5 and all(re.fullmatch(r"[\d*/,-]+", each) for each in fields[:2]):
        return _cron(fields)
    reading = _Reading(text, re.sub(r"\b(?:working|business) days?\b", "weekdays", words))
    days = reading.days()
    time = reading.time()
    reading.finish()
    return f"{time} {days}"


def _cron(fields: list[str]) -> str:
    expression = " ".join(fields).upper()
    next_fire(expression, "UTC", _AFTER)
    if not fields[0].isdigit():
        raise InputError(f"{' '.join(fields)!r} fires more than once an hour; give one minute, as in 0 9 * * 1")
    return expression


class _Reading:
    """A text, and what of it is not understood yet."""

    def __init__(self, text: str, words: str) -> None:
        self._text = text
        self._left = words

    def days(self) -> str:
        """The last three fields: day of the month, month, day of the week."""
        monthly = bool(self._take(re.compile(rf"\b(?:{_MONTH})\b"), lambda found: True))
        nth = self._take(_NTH_DAY, lambda found: (found[1], found[2])) if monthly else []
        dates = self._take(_DATE, lambda found: int(found[1]))
        named = self._take(_RANGE, lambda found: _through(found[1], found[2]))
        named += self._take(re.compile(rf"\b{_DAY}\b"), lambda found: _number(found[0]))
        every = self._take(re.compile(rf"\b(?:{'|'.join(_EVERY)})\b"), lambda found: _EVERY[found[0]])
        if len([kind for kind in (nth, dates, named or every or self._daily()) if kind]) != 1:
            raise self._unreadable()
        if nth:
            return self._nth(nth)
        if dates:
            return f"{self._dates(dates)} * *"
        if monthly or (named and set(every) - {"1"}) or len(set(every)) > 1:
            raise self._unreadable()
        return f"* * {','.join(dict.fromkeys(named)) or (every or ['*'])[0]}"

    def time(self) -> str:
        """The first two fields: minute and hour, nine o'clock if none is named."""
        part = next(iter(self._take(re.compile(rf"\b({'|'.join(_PARTS)})s?\b"), lambda found: found[1])), "")
        times = self._take(_TIME, lambda found: self._clock(found, part)) or [(_PARTS.get(part, 9), 0)]
        minutes = {minute for _, minute in times}
        if len(minutes) > 1:
            raise InputError(f"{self._text!r}: several times a day need the same minute; {EXAMPLES}")
        return f"{minutes.pop()} {','.join(str(hour) for hour in sorted({hour for hour, _ in times}))}"

    def finish(self) -> None:
        """Raises InputError if anything is left that was not understood."""
        left = [word for word in self._left.split() if word not in _FILLER]
        if left:
            hint = (
                "times are meant where you are; "
                if re.search(r"\b(?:utc|gmt|[ecmp][sde]?t|time)\b", self._left)
                else ""
            )
            raise InputError(f"I don't understand {' '.join(left)!r} in {self._text!r}; {hint}{EXAMPLES}")

    def _take(self, pattern: re.Pattern[str], value: Callable[[re.Match[str]], T]) -> list[T]:
        """What each place that fits means; it is understood then."""
        found = [value(match) for match in pattern.finditer(self._left)]
        self._left = " ".join(pattern.sub(" ", self._left).split())
        return found

    def _daily(self) -> bool:
        """Whether it names a part of every day."""
        return re.search(rf"\b(?:every|each) (?:{'|'.join(_PARTS)})\b", self._left) is not None

    def _nth(self, nth: list[tuple[str, str]]) -> str:
        if len(nth) > 1:
            raise self._unreadable()
        [(which, day)] = nth
        if day == "day":
            return f"{'L' if which == 'last' else ORDINALS[which]} * *"
        return f"* * {_number(day)}{'L' if which == 'last' else f'#{ORDINALS[which]}'}"

    def _dates(self, dates: list[int]) -> str:
        for date in dates:
            if not 1 <= date <= 31:
                raise InputError(f"{self._text!r}: there is no day {date}; {EXAMPLES}")
        return ",".join(str(date) for date in sorted(set(dates)))

    def _clock(self, found: re.Match[str], part: str) -> tuple[int, int]:
        if found["word"]:
            return (0 if found["word"] == "midnight" else 12), 0
        hour, minute = int(found["hour"]), int(found["minute"] or 0)
        if hour > (12 if found["half"] else 23) or minute > 59 or (part == "morning" and hour > 12):
            raise InputError(f"{self._text!r}: there is no {found[0].strip()} o'clock; {EXAMPLES}")
        if found["half"] or (part in ("afternoon", "evening") and hour < 12):
            hour = hour % 12 + (0 if found["half"] == "am" else 12)
        return hour, minute

    def _unreadable(self) -> InputError:
        return InputError(f"I can't read {self._text!r} as a recurring time; {EXAMPLES}")


def _through(first: str, last: str) -> str:
    """The days from one to another. Cron's own ranges end with Saturday."""
    begin, end = int(_number(first)), int(_number(last))
    return (
        f"{begin}-{end}"
        if begin < end
        else ",".join(str((begin + after) % 7) for after in range((end - begin) % 7 + 1))
    )


def _number(day: str) -> str:
    """A day of the week as cron counts them."""
    return str(next(number for number, name in enumerate(DAYS) if day.startswith(name[:3])))
