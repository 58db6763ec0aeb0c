"""Amounts in words, "twelve hundred" and "a hundred and fifty euros", where only an amount can stand."""

import re

_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_POWERS = {"hundred": 100, "thousand": 1_000, "grand": 1_000, "million": 1_000_000}
_WORD = rf"(?:{'|'.join((*_TENS, *reversed(_UNITS), *_POWERS))})"
_WORDS = rf"(?:an?\s+(?=hundred|thousand|grand|million))?{_WORD}(?:(?:\s+and\s+|[\s-]+){_WORD})*"
_AMOUNT = re.compile(
    rf"(?<=\b(?:to|by|at)\s)(?!one\b(?!\s+(?:hundred|thousand))){_WORDS}\b(?!-)|\b{_WORDS}(?=\s+(?:euros?|dollars?|pounds?|bucks|percent|per\s+cent)\b)",
    re.IGNORECASE,
)
"""After "to", "by" or "at", or before a unit: elsewhere, as in "that one" and in names, words are words."""


def in_digits(text: str) -> str:
    """The text with its amounts in digits."""
    return _AMOUNT.sub(lambda match: _digits(match[0]), text)


def _digits(words: str) -> str:
    """The number; words that make none, such as "twenty thirty", stay as they are."""
    total = part = 0
    room = 10**9
    for word in re.split(r"[\s-]+", words.casefold()):
        if word in ("a", "an"):
            part, room = 1, 1
        elif word in _POWERS:
            power = _POWERS[word]
            part = (part or 1) * power
            room = power
            if power > 100:
                total, part = total + part, 0
        elif word != "and":
            value = _UNITS.get(word, _TENS.get(word, 0))
            if value >= room:
                return words
            part, room = part + value, 10 if word in _TENS else 1
    return str(total + part)
