"""Which campaigns a clause means: names, unclear and unknown ones, all, those of a channel, "it", "the worst one"."""

from collections.abc import Iterator

from agent.campaigns.platform import Channel, Status
from agent.models.offline.clauses import Clause
from agent.models.offline.requests import Selection, Unclear
from agent.models.offline.vocabulary import (
    ASKING,
    BEST,
    CAMPAIGN,
    CHANNELS,
    COMPARE,
    CUT,
    EVERYTHING,
    FACTORS,
    KNOWN,
    MOST,
    OFF_TOPIC,
    PAUSE,
    POLITE,
    RAISE,
    RESUME,
    SHOWING,
    SUPERLATIVES,
    TREND,
)
from agent.models.offline.words import Token

_EXCEPT = frozenset({"except", "excluding", "without", "besides"})
_ALL = EVERYTHING - {"total", "totals", "whole", "entire"}
_OBJECT = frozenset("""
did does do is are was were has have of for about on with and or vs versus against to between compare pause stop halt resume unpause
restart activate enable disable raise increase lower cut decrease reduce set change double triple halve show in from how's hows budget
performance the our my campaign only
""".split())  # fmt: skip  # noqa: SIM905


def select(clause: Clause) -> Selection:
    """The selection that the words of a clause make."""
    names, unclear, without = _named(clause)
    channel = _channel(clause)
    status = _status(clause)
    picked = bool(names or unclear)
    everything = bool(clause.has & _ALL) and not picked
    back = not picked and not everything and _points_back(clause)
    found = picked or everything or back or channel is not None or status is not None or bool(without)
    return Selection(
        names=names,
        unclear=unclear,
        unknown=tuple(_unknown(clause, found=found)),
        without=without,
        everything=everything,
        back=back,
        several=back and bool(clause.has & {"them", "those", "these", "both", "they"}),
        channel=channel if not picked else None,
        status=status if not picked else None,
    )


def superlative(clause: Clause) -> Selection:
    """The selection of "the worst campaign" in a request to change it."""
    best = bool(clause.has & (BEST | MOST))
    metric = clause.metrics[0] if clause.metrics else "roas"
    return Selection(superlative=best, metric=metric, period=clause.spans[0].text if clause.spans else None)


def has_superlative(clause: Clause) -> bool:
    """Whether it picks campaigns by being best or worst."""
    return bool(clause.has & SUPERLATIVES)


def _named(clause: Clause) -> tuple[tuple[str, ...], tuple[Unclear, ...], tuple[str, ...]]:
    names: list[str] = []
    unclear: list[Unclear] = []
    without: list[str] = []
    excluding = False
    for at, token in enumerate(clause.tokens):
        excluding = excluding or token.word in _EXCEPT or f"{clause.before(at)} {token.word}" in {"but not", "all but"}
        if token.kind != "name":
            continue
        if excluding:
            without.extend(token.names)
        elif token.unsure or (len(token.names) > 1 and not token.plural):
            unclear.append(Unclear(token.text, token.names))
        else:
            names.extend(token.names)
    return tuple(dict.fromkeys(names)), tuple(dict.fromkeys(unclear)), tuple(without)


def _channel(clause: Clause) -> Channel | None:
    for at, token in enumerate(clause.tokens):
        after = clause.tokens[at + 1].word if at + 1 < len(clause.tokens) else ""
        if token.kind == "word" and token.word in CHANNELS and after in CAMPAIGN:
            return CHANNELS[token.word]
    return None


def _status(clause: Clause) -> Status | None:
    for at, token in enumerate(clause.tokens):
        after = clause.tokens[at + 1].word if at + 1 < len(clause.tokens) else ""
        if after in CAMPAIGN and token.word in {"active", "running", "live", "enabled"}:
            return "active"
        if after in CAMPAIGN and token.word in {"paused", "inactive", "stopped", "disabled"}:
            return "paused"
    return None


def _points_back(clause: Clause) -> bool:
    if clause.has & {"it", "them", "those", "these", "both", "they", "its", "their"}:
        return True
    for at, token in enumerate(clause.rest):
        after = clause.rest[at + 1].word if at + 1 < len(clause.rest) else ""
        if token.word in {"that", "this", "same"} and (not after or after in CAMPAIGN or after in {"?", "again"}):
            return True
    return False


def _unknown(clause: Clause, *, found: bool) -> Iterator[str]:
    """Runs of words that must be a name nobody has: quoted, beside other names, or where a name is wanted and none was found."""
    if not names_wanted(clause):
        return
    for run, before, after in _runs(clause):
        text = " ".join(token.text for token in run)
        if run[0].kind == "quote":
            if len(text.split()) <= 6:
                yield text
        elif _beside_name(before, after) or (
            not found and (run[0].text[:1].isupper() or before in _OBJECT or not before)
        ):
            yield text


def names_wanted(clause: Clause) -> bool:
    """Whether strange words in it may name a campaign: it asks for figures or a change, or it is hardly more than the words.

    "What is the weather in Berlin?" and "tell me a joke with code" are about something else, and Berlin is no campaign that is missing.
    """
    if clause.names or clause.metrics or clause.has & _ABOUT_CAMPAIGNS or any(t.kind == "quote" for t in clause.rest):
        return True
    if clause.has & OFF_TOPIC or clause.words[:2] == ("what", "time"):
        return False
    asked = clause.has & ASKING - {"and"}
    doing = clause.has & {"do", "did", "doing", "going", "went", "running", "ran"} and clause.first not in {
        "do",
        "does",
    }
    if clause.spans or (asked and doing):
        return True
    strange = [token for token in clause.rest if token.kind == "word" and token.word not in KNOWN]
    if clause.has & SHOWING and not clause.question:
        return any(token.text[:1].isupper() for token in strange)
    opening = [word for word in clause.words if word in KNOWN and word not in POLITE | {"the", "about", "'s"}]
    return (
        not asked
        or ("about" in clause.has and len(opening) < 2)
        or (clause.first in {"how", "how's"} and len(opening) < 3)
    )


_ABOUT_CAMPAIGNS = (
    CAMPAIGN | PAUSE | RESUME | COMPARE | TREND | SUPERLATIVES | RAISE | CUT | set(FACTORS) | {"set", "change", "budget", "budgets"}
    | {"report", "reports", "perform", "performed", "performing", "performs", "performance", "numbers", "figures", "stats", "results"}
) - {"up", "more", "less", "higher", "hold", "line", "lines", "one", "ones", "half"}  # fmt: skip


def _runs(clause: Clause) -> Iterator[tuple[list[Token], str, str]]:
    """Runs of unknown words with the words before and after them; a joining word gives way to the name beyond it."""
    tokens = clause.rest
    run: list[Token] = []
    for at, token in enumerate((*tokens, None)):
        strange = token is not None and (token.kind == "quote" or (token.kind == "word" and _strange(token, run)))
        if strange and token is not None:
            run.append(token)
            continue
        if run:
            start = at - len(run)
            yield run, _around(tokens, start - 1, -1), _around(tokens, at, 1)
        run = []


def _strange(token: Token, run: list[Token]) -> bool:
    if token.word not in KNOWN:
        return len(token.word) > 1
    return bool(run) and token.text[:1].isupper()  # "Foo Sale": a known word that goes on with a name


def _around(tokens: tuple[Token, ...], at: int, step: int) -> str:
    joined = False
    while 0 <= at < len(tokens):
        token = tokens[at]
        if token.kind == "name":
            return "\0" if joined else token.word
        if token.word in {"and", "or", ",", "&", "vs", "versus", "with", "against"}:
            joined = True
        elif token.word not in {"the", "our", "my", "campaign"}:
            return "and" if joined and step < 0 and token.word not in CHANNELS else token.word
        at += step
    return "and" if joined else ""


def _beside_name(before: str, after: str) -> bool:
    return "\0" in (before, after)
