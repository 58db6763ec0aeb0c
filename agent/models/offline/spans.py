"""Finding periods in running text: the longest run of words that `agent.campaigns` can read as one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from agent.campaigns import Period, PeriodError, UnknownPeriodError, parse_period, parse_relative
from agent.campaigns.dates import MONTHS, SEASONS, month_number, weekday_number
from agent.models.offline.words import Token, sentence

_LONGEST = 10
_UNITS = frozenset(
    "day days week weeks fortnight fortnights month months quarter quarters year years weekend weekends".split()  # noqa: SIM905
)
_ALONE = frozenset(
    {"today", "yesterday", "ytd", "mtd", "qtd", "wtd", "yoy", "before", "previous", "prior", "half", "christmas"}
)
_PREPOSITIONS = frozenset(
    {"in", "for", "during", "since", "of", "from", "until", "to", "between", "and", "vs", "versus", "over"}
)
_NEVER_FIRST = frozenset(
    {"and", "to", "until", "of", "a", "an", "vs", "versus", "as", "on", "over", "within", "across"}
)
_ANCHOR = Period(date(2001, 3, 5), date(2001, 3, 11), "anchor")
_FUTURE = re.compile(
    r"\b(?:tomorrow|tonight|(?:next|coming|following) (?:day|week|weekend|month|quarter|year|\w+day)|later (?:today|this week)"
    r"|in (?:\d+|a|an|one|two|three|few) (?:hours?|days?|weeks?|months?)|until (?:\w+day|tomorrow|next \w+)|forecast|going forward)\b"
)


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `start` to `end` (excluded) are a period; `relative` means it is counted from another one."""

    start: int
    end: int
    text: str
    relative: bool


def find_periods(tokens: Sequence[Token], *, now: datetime, time_zone: str) -> list[Span]:
    """The periods in `tokens`, in order. Those with a fault ("31 February") are found too: the tool says what is wrong."""
    spans: list[Span] = []
    at = 0
    while at < len(tokens):
        span = _longest(tokens, at, now=now, time_zone=time_zone)
        if span is not None:
            spans.append(span)
        at = span.end if span else at + 1
    return spans


def future(tokens: Sequence[Token]) -> str | None:
    """The words that speak of a time to come, if any do."""
    match = _FUTURE.search(sentence(tokens).casefold())
    return match[0] if match else None


def _longest(tokens: Sequence[Token], at: int, *, now: datetime, time_zone: str) -> Span | None:
    if tokens[at].kind not in {"word", "number", "date"} or tokens[at].word in _NEVER_FIRST:
        return None
    for end in range(min(len(tokens), at + _LONGEST), at, -1):
        piece = tokens[at:end]
        if not _plausible(piece, tokens[at - 1] if at else None):
            continue
        text = sentence(piece)
        relative = parse_relative(text, _ANCHOR) is not None
        if relative or _readable(text, now=now, time_zone=time_zone):
            return Span(at, end, text, relative)
    return None


def _plausible(piece: Sequence[Token], before: Token | None) -> bool:
    """Cheap checks first; and "may" or "march" are verbs unless something says that a month is meant."""
    if any(token.kind in {"name", "quote", "money", "percent"} for token in piece) or piece[-1].kind == "mark":
        return False
    if any(token.kind == "mark" and token.text in {".", ";", "?", "!", "\n", ":", "(", ")"} for token in piece):
        return False
    words = [token.word for token in piece if token.kind != "mark"]
    if not any(
        word in _UNITS | _ALONE
        or token.kind == "date"
        or month_number(word)
        or weekday_number(word) is not None
        or word in SEASONS
        or re.search(r"\d", word)
        for word, token in zip(words, (t for t in piece if t.kind != "mark"), strict=True)
    ):
        return False
    if len(words) == 1:
        return _single(piece[0], before)
    return True


def _single(token: Token, before: Token | None) -> bool:
    previous = before.word if before else ""
    if token.kind == "number":
        return previous == "in" and re.fullmatch(r"(?:19|20)\d\d", token.word) is not None
    if token.word in {"may", "march", "mar", "sun", "sat", "dec"} and token.word not in MONTHS[:2]:
        return previous in _PREPOSITIONS
    if token.word in SEASONS:
        return previous in {"in", "during", "since", "over"}
    if ":" in token.word:
        return False
    return token.word != "now"


def _readable(text: str, *, now: datetime, time_zone: str) -> bool:
    try:
        parse_period(text, now=now, time_zone=time_zone)
    except UnknownPeriodError:
        return False
    except PeriodError:
        return True
    return True
