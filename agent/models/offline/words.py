"""Text as tokens: words, numbers, money and percentages, with quoted text kept apart because it is not addressed to anybody."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from agent.campaigns.money import plain_digits
from agent.models.offline.numerals import in_digits

Kind = Literal["word", "number", "money", "percent", "date", "quote", "mark", "name"]

_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
_NUMBER = r"\d+(?:[.,]\d+)*"
_MINUS = r"(?:(?<![\w.,)%-])(?<!\d\s)-)"
"""A sign, and neither the hyphen of a name nor the dash of a range."""
_CURRENCY = r"(?:€|\$|£|¥|eur\b|euros?\b|usd\b|dollars?\b|gbp\b|pounds?\b|bucks?\b)"
_TOKENS = re.compile(
    rf"""
      (?P<skip>  <[@!#][^>\n]*> | @[\w.-]+ )
    | (?P<quote> "[^"\n]{{1,200}}" | \u201c[^\u201d\n]{{1,200}}\u201d | \u00ab[^\u00bb\n]{{1,200}}\u00bb | `[^`\n]{{1,200}}` )
    | (?P<date>  \d{{4}}-\d{{1,2}}-\d{{1,2}}\b | \d{{1,2}}\.\d{{1,2}}\.\d{{4}}\b | \d{{4}}-\d{{2}}\b(?!-) | \d{{1,2}}:\d{{2}} )
    | (?P<percent> [+-]?{_NUMBER}\s?(?:%|percent\b|per\ cent\b|pct\b) )
    | (?P<money> {_MINUS}?(?:[€$£¥]|\b(?:eur|usd|gbp)\s)\s?-?{_NUMBER}(?:k\b)? | {_MINUS}?{_NUMBER}(?:k)?\s?{_CURRENCY} )
    | (?P<number> {_MINUS}?{_NUMBER}(?:k\b)?(?![^\W\d_]) )
    | (?P<word>  vs\. | \d+[^\W\d_]+ | [^\W\d_]\w*(?:'[^\W\d_]+)* )
    | (?P<mark>  \.\.+ | [.,;:?!\n/()&+*-] | \u2013 | \u2014 | … )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SPOKEN_MINUS = re.compile(
    r"\b(?:minus|negative)\s+(?=(?:[€$£¥]|(?:eur|usd|gbp)\s)?\s?\d)|(?<=\b(?:to|by|at)\s)[\u2013\u2014-]\s?(?=[€$£¥]?\s?\d)",
    re.IGNORECASE,
)
"""A minus in words, and dashes that stand for one."""
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|&gt;).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text. `word` is what it is compared by; `names` the campaigns a name token may mean. A percentage's sign is in its text.

    `plural` says that all of them are meant, `unsure` that no campaign is called quite that.
    """

    text: str
    word: str
    kind: Kind
    value: Decimal | None = None
    names: tuple[str, ...] = ()
    plural: bool = False
    unsure: bool = False


def tokenise(text: str) -> list[Token]:
    """The tokens of a message. Block quotes and code blocks are somebody else's words and left out."""
    plain = _QUOTED_LINE.sub("", _FENCED.sub("", text)).replace(_APOSTROPHE, "'").replace("\N{MINUS SIGN}", "-")
    plain = _SPOKEN_MINUS.sub("-", in_digits(plain))
    return [_token(match) for match in _TOKENS.finditer(plain) if match.lastgroup != "skip"]


def _token(match: re.Match[str]) -> Token:
    text = match[0]
    found = str(match.lastgroup)
    kind: Kind = next(each for each in _KINDS if each == found)
    if kind == "quote":
        text = text[1:-1].strip()
    word = text.casefold()
    if kind == "word":
        text = text.rstrip(".")  # only "vs." keeps its full stop in the token
        word = word.rstrip(".")
        word = word.removesuffix("'s") if word not in {"let's", "what's", "how's", "that's", "it's"} else word
    value = number(text) if kind in {"percent", "money", "number"} else None
    if value is not None and kind != "percent" and "-" in text:
        value = -value
    return Token(text, word, kind, value)


_KINDS: tuple[Kind, ...] = ("word", "number", "money", "percent", "date", "quote", "mark", "name")


def number(text: str) -> Decimal | None:
    """The number in an amount such as "€1,250.50", "1.250,50", "80/day" or "2k"; None if there is none."""
    match = re.search(_NUMBER, text)
    if match is None:
        return None
    value = Decimal(plain_digits(match[0]))
    return value * 1000 if text[match.end() :].casefold().startswith("k") else value


def currency_of(text: str) -> str | None:
    """The ISO code of the currency an amount names, else None."""
    lowered = text.casefold()
    for code, signs in {
        "EUR": ("€", "eur"),
        "USD": ("$", "usd", "dollar"),
        "GBP": ("£", "gbp", "pound"),
        "JPY": ("¥",),
    }.items():
        if any(sign in lowered for sign in signs):
            return code
    return None


def sentence(tokens: Sequence[Token]) -> str:
    """Tokens as text again, for reading a period or quoting a request."""
    text = " ".join(token.text for token in tokens)
    return re.sub(r"\s+([.,;:?!])", r"\1", re.sub(r"\s*(\.\.+)\s*", r"\1", text)).strip()


def words(tokens: Sequence[Token]) -> list[str]:
    """What tokens are compared by; marks, quotes and names are left out."""
    return [token.word for token in tokens if token.kind not in {"mark", "quote", "name"}]
