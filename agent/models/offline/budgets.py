"""Budget changes in words: "to 120", "by 20 %", "double", "€80/day", "10 euros less", several in one clause."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Literal

from agent.models.offline.clauses import Clause
from agent.models.offline.requests import Amount, Budget
from agent.models.offline.selections import has_superlative, select, superlative
from agent.models.offline.vocabulary import CHANGES, CUT, FACTORS, RAISE
from agent.models.offline.words import Token, currency_of

_TO = frozenset({"to", "at", ":", "=", "is", "now", "of"})
_AMOUNTS = frozenset({"money", "percent", "number"})
_MORE = frozenset({"add", "more", "subtract", "less", "extra"})


def is_budget(clause: Clause) -> bool:
    """Whether a clause asks for a budget to be changed."""
    has = clause.has
    amounts = [token for token in clause.rest if token.kind in _AMOUNTS]
    if has & (set(FACTORS) - {"half"}) and not clause.metrics:
        return True
    if has & CHANGES and (amounts or "half" in has) and not (has & {"top", "best", "worst"} and not clause.names):
        return True
    if has & CHANGES and has & {"budget", "budgets"}:
        return True
    per_day = has & {"day", "daily", "budget", "budgets", "to"} or any(token.kind == "money" for token in amounts)
    return bool(amounts and (clause.names or has & {"it", "budget"}) and per_day)


def budgets(clause: Clause) -> list[Budget]:
    """The changes asked for, one for each amount; names before an amount share it."""
    groups = list(_groups(clause.tokens))
    if len(groups) < 2:
        which = superlative(clause) if has_superlative(clause) and not clause.names else select(clause)
        return [Budget(which, _amount(clause.tokens, clause), _per(clause.tokens))]
    made = []
    for group in groups:
        part = Clause(tuple(group), clause.now, clause.time_zone)
        made.append(Budget(select(part), _amount(part.tokens, clause), _per(part.tokens)))
    return made


def _groups(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Tokens cut after each amount that a name comes before: "A to 120" | "and B to 80"."""
    group: list[Token] = []
    named = amount = False
    for token in tokens:
        if named and amount and token.kind == "name":
            yield group
            group, named, amount = [], False, False
        group.append(token)
        named = named or token.kind == "name"
        amount = amount or token.kind in _AMOUNTS
    if group:
        yield group


def _direction(words: frozenset[str]) -> int:
    return 1 if words & RAISE else -1 if words & CUT else 0


def _amount(tokens: Sequence[Token], whole: Clause) -> Amount | None:
    direction = _direction(whole.has - {"up"} if whole.has & CUT else whole.has)
    place = _place(tokens)
    if place is None:
        return _factor(whole, direction)
    if _several(tokens) or _bounded(tokens):
        return None
    token, before = tokens[place], tokens[place - 1].word if place else ""
    value = token.value or Decimal(0)
    currency = currency_of(token.text) if token.kind == "money" else None
    if value < 0 or (token.kind == "percent" and before == "to" and token.text.startswith("-")):
        return Amount("negative", value, currency)
    if token.kind == "percent":
        return _percent(value, token.text, before, direction)
    if before == "by" or whole.has & _MORE:
        return Amount("add", value * direction, currency) if direction else None
    if before in _TO or not direction:
        return Amount("set", value, currency)
    return None  # "raise it 50" may mean by or to


def _percent(value: Decimal, text: str, before: str, direction: int) -> Amount | None:
    if text.startswith("-"):
        direction = -1
    elif text.startswith("+"):
        direction = 1
    if before == "to":
        return Amount("factor", value / 100)
    return Amount("factor", 1 + direction * value / 100) if direction else None


def _factor(clause: Clause, direction: int) -> Amount | None:
    for word in clause.words:
        if word == "half" and direction > 0:
            return Amount("factor", Decimal("1.5"))
        if word in FACTORS:
            return Amount("factor", Decimal(FACTORS[word]))
    return None


def _several(tokens: Sequence[Token]) -> bool:
    """Whether an amount is a range or a choice, such as "5 - 10", "10-20 %" and "100 or 120": then nobody said which."""
    places = [at for at, token in enumerate(tokens) if token.kind in _AMOUNTS]
    between = [[token.word for token in tokens[left + 1 : right]] for left, right in pairwise(places)]
    return any(words in ([], ["-"], ["\N{EN DASH}"], ["or"]) for words in between)


def _bounded(tokens: Sequence[Token]) -> bool:
    """Whether an amount is a bound, such as "by more than 10%" and "to at least 200": then nobody said how much."""
    pairs = {(left.word, right.word) for left, right in pairwise(tokens)}
    return bool(
        pairs & {(size, "than") for size in ("more", "less", "higher", "lower", "greater")}
        or pairs & {("at", "least"), ("at", "most")}
    )


def _place(tokens: Sequence[Token]) -> int | None:
    """Where the amount is: the one after "to" or "by" if there are several ("from 100 to 120")."""
    places = [at for at, token in enumerate(tokens) if token.kind in _AMOUNTS]
    preferred = [at for at in places if at and tokens[at - 1].word in {"to", "by"}]
    chosen = preferred or places
    return chosen[-1] if chosen else None


def _per(tokens: Sequence[Token]) -> Literal["day", "week", "month"]:
    words = {token.word for token in tokens}
    text = " ".join(token.word for token in tokens)
    if words & {"weekly"} or "per week" in text or "a week" in text or "/ week" in text:
        return "week"
    if words & {"monthly"} or "per month" in text or "a month" in text or "/ month" in text:
        return "month"
    return "day"
