"""When to post again and again, in ordinary wording, as cron: "every monday 9:00", "daily at 8", "weekdays 17:30"."""

import re
from datetime import UTC, datetime

from workflows import InputError
from workflows.schedules import next_fire

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME = re.compile(
    r"\b(?:at\s+)?(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2}))?\s*(?P<half>am|pm)?\b|\b(?P<word>noon|midday|midnight)\b"
)
_MONTHLY = re.compile(r"\b(?:on the |the )?(?P<day>\d{1,2})(?:st|nd|rd|th)\b")
_AFTER = datetime(2026, 1, 1, tzinfo=UTC)
"""Any moment: whether a cron expression is valid does not depend on it."""
EXAMPLES = 'say for example "every monday 9:00", "daily at 8:30", "weekdays 17:00" or "monthly on the 1st at 9"'


def cron_of(text: str) -> str:
    """A five-field cron expression. Raises InputError with examples for what it can't read; a cron expression is taken as it is."""
    words = " ".join(text.lower().replace(",", " ").split())
    if len(words.split()) == 5 and re.fullmatch(r"[\d*/,\- a-z#]+", words) and re.match(r"[\d*]", words):
        next_fire(words, "UTC", _AFTER)
        return words
    monthly = _MONTHLY.search(words)
    hour, minute = _time(_MONTHLY.sub(" ", words) if monthly else words, text)
    if monthly and ("month" in words or not _days(words)):
        day = int(monthly["day"])
        if not 1 <= day <= 31:
            raise InputError(f"{text!r}: there is no day {day}; {EXAMPLES}")
        return f"{minute} {hour} {day} * *"
    days = _days(words)
    if not days:
        raise InputError(f"I can't read {text!r} as a recurring time; {EXAMPLES}")
    return f"{minute} {hour} * * {days}"


def _time(words: str, text: str) -> tuple[int, int]:
    found = _TIME.search(words)
    if found is None:
        return 9, 0
    if found["word"]:
        return (0 if found["word"] == "midnight" else 12), 0
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] == "pm" else 0)
    if hour > 23 or minute > 59:
        raise InputError(f"{text!r}: there is no {found[0].strip()} o'clock; {EXAMPLES}")
    return hour, minute


def _days(words: str) -> str:
    if re.search(r"\b(weekdays?|working days?|business days?)\b", words):
        return "1-5"
    if re.search(r"\b(weekends?)\b", words):
        return "6,0"
    named = [(number + 1) % 7 for number, day in enumerate(DAYS) if re.search(rf"\b{day[:3]}(?:{day[3:]})?s?\b", words)]
    if named:
        return ",".join(map(str, named))
    return (
        "*"
        if re.search(r"\b(daily|every day|each day|every morning|every evening)\b", words)
        else "1"
        if "week" in words
        else ""
    )
