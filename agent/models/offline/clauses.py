"""A message cut into clauses, each of which asks for one thing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from agent.models.offline.spans import Span, find_periods
from agent.models.offline.vocabulary import ASKING, METRICS, POLITE, REPORTING, TRIGGERS
from agent.models.offline.words import Token, sentence

_ENDS = frozenset({".", "?", "!", ";", "\n", "..."})
_JOINS = frozenset({"and", "then", "but", "also", "plus", ","})
_WHOLE = frozenset(
    {
        "if",
        "unless",
        "when",
        "whenever",
        "once",
        "as",
        "tomorrow",
        "tonight",
        "later",
        "next",
        "on",
        "starting",
        "until",
    }
)
_TIMES = frozenset({"in", "at", "from", "after", "before", "by", "during", "for", "since"})
_LONGEST_METRIC = 5


@dataclass(frozen=True)
class Clause:
    """Tokens of one request with the views that the grammar asks for. Words inside periods, names and quotes are not in `words`."""

    tokens: tuple[Token, ...]
    now: datetime
    time_zone: str

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The periods in it."""
        return tuple(find_periods(self.tokens, now=self.now, time_zone=self.time_zone))

    @cached_property
    def rest(self) -> tuple[Token, ...]:
        """The tokens outside periods."""
        inside = {at for span in self.spans for at in range(span.start, span.end)}
        return tuple(token for at, token in enumerate(self.tokens) if at not in inside)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words outside periods, names and quotes."""
        return tuple(token.word for token in self.rest if token.kind in {"word", "number"})

    @cached_property
    def all_words(self) -> frozenset[str]:
        """Every word, also those inside names and periods."""
        return frozenset(word for token in self.tokens if token.kind != "quote" for word in token.word.split())

    @cached_property
    def has(self) -> frozenset[str]:
        """`words` as a set."""
        return frozenset(self.words)

    @cached_property
    def first(self) -> str:
        """The first word that is not mere politeness, else an empty string."""
        return next((word for word in self.words if word not in POLITE), "")

    @cached_property
    def names(self) -> tuple[Token, ...]:
        """The mentions of campaigns."""
        return tuple(token for token in self.tokens if token.kind == "name")

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics named, in order, each once."""
        return tuple(dict.fromkeys(_metrics(self.words)))

    @cached_property
    def question(self) -> bool:
        """Whether it asks something rather than for something to be done."""
        if self.first in {"is", "are"} and "possible" in self.has:
            return False
        return self.first in ASKING

    @cached_property
    def text(self) -> str:
        """The clause as written, shortened."""
        text = sentence(self.tokens)
        return text if len(text) <= 120 else text[:117] + "…"

    def before(self, at: int) -> str:
        """The word before token `at`, or an empty string."""
        return self.tokens[at - 1].word if at > 0 else ""


def _metrics(words: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(words):
        for length in range(_LONGEST_METRIC, 0, -1):
            metric = METRICS.get(" ".join(words[at : at + length]))
            if metric:
                yield metric
                at += length - 1
                break
        at += 1


def split(tokens: Sequence[Token], *, now: datetime, time_zone: str) -> list[Clause]:
    """The clauses of a message: cut at the ends of sentences, and before "and pause …", ", how did …"."""
    clauses: list[list[Token]] = [[]]
    for at, token in enumerate(tokens):
        if (token.kind == "mark" and token.text in _ENDS) or (
            clauses[-1] and token.word in _JOINS and _begins_request(tokens, at, clauses[-1])
        ):
            clauses.append([])
        else:
            clauses[-1].append(token)
    filled = [_trimmed(clause) for clause in clauses]
    return [Clause(tuple(clause), now, time_zone) for clause in filled if clause]


def _begins_request(tokens: Sequence[Token], at: int, before: Sequence[Token]) -> bool:
    """Whether a verb or question word follows, politeness aside; "ok, and" before it is no request of its own."""
    opening = [token for token in before if token.kind != "mark" and token.word not in POLITE]
    # "If ROAS falls, pause it" and "Tomorrow, pause it" are one request each, and not one to carry out now.
    if any(token.word in REPORTING for token in opening):
        return False
    if not opening or opening[0].word in _WHOLE or (opening[0].word in _TIMES and tokens[at].text == ","):
        return False
    for token in tokens[at + 1 : at + 9]:
        if token.word in TRIGGERS and token.kind == "word":
            return True
        if token.word not in POLITE | _JOINS:
            return False
    return False


def _trimmed(tokens: list[Token]) -> list[Token]:
    while tokens and tokens[-1].word in _JOINS | {"-", ":"}:
        tokens = tokens[:-1]
    while tokens and tokens[0].word in {",", "-", "*", ":"}:
        tokens = tokens[1:]
    return tokens
