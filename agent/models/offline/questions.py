"""Questions about figures: performance and comparisons, best and worst, what there is, and short follow-ups."""

import re
from dataclasses import replace

from agent.campaigns.dates import count
from agent.campaigns.platform import Status
from agent.models.offline.clauses import Clause
from agent.models.offline.requests import Listing, Performance, Ranking, Request, Said, Selection
from agent.models.offline.selections import select
from agent.models.offline.spans import Span
from agent.models.offline.vocabulary import (
    ASKING,
    BEST,
    CAMPAIGN,
    COMPARE,
    LEAST,
    MOST,
    PERFORM,
    POLITE,
    SHOWING,
    SUPERLATIVES,
    TREND,
    WORST,
)
from agent.models.offline.words import sentence

_VERSUS = frozenset({"vs", "versus", "than", "against", "to", "with", "and", "from", "over"})
_OVER = {"week": "last week", "month": "last month", "year": "year to date", "quarter": "last quarter"}


def ranking(clause: Clause) -> list[Request]:
    """Best, worst, top and bottom; both if both are asked for."""
    has = clause.has
    limit = bool(clause.metrics) and bool(has & {"above", "below", "under", "over", "exceeding"})
    limit = limit and any(token.kind in {"number", "money", "percent"} for token in clause.rest)
    if not has & SUPERLATIVES and not has & {"rank", "ranking", "sort"} and not limit:
        return []
    which = replace(select(clause), unknown=())
    if which.everything or (not which.names and which.back and not has & {"those", "these", "them"}):
        which = Selection()
    span = clause.spans[0] if clause.spans else None
    base = Ranking(
        metric=_ranked_by(clause),
        top=_how_many(clause),
        which=which,
        period=span.text if span else None,
        relative=span.relative if span else False,
    )
    found: list[Request] = []
    if has & BEST:
        found.append(replace(base, best=True))
    if has & WORST:
        found.append(replace(base, best=False))
    if has & MOST and not found:
        found.append(_sized(clause, base, highest=True))
    if has & LEAST and not (has & (BEST | WORST)):
        found.append(_sized(clause, base, highest=False))
    if not found and limit:
        upper = bool(has & {"above", "over", "exceeding"})
        return [replace(base, top=0, best=upper, highest=upper), Said("limit")]
    return found or [replace(base, top=0)]


def _sized(clause: Clause, base: Ranking, *, highest: bool) -> Ranking:
    """By size if a metric is named; "top campaigns" without one are the best, "bottom" ones the worst."""
    by_size = base.metric is not None or not clause.has & {"top", "bottom"}
    return replace(base, best=highest, highest=highest if by_size else None)


def _ranked_by(clause: Clause) -> str | None:
    if clause.has & {"cheapest", "cheap", "expensive"}:
        return "cpc" if "clicks" in clause.metrics or "click" in clause.has or "cpc" in clause.metrics else "cpa"
    return clause.metrics[0] if clause.metrics else None


def _how_many(clause: Clause) -> int:

    for before, after in zip(clause.words, clause.words[1:], strict=False):
        number = count(after)
        if before in SUPERLATIVES and number and after not in {"a", "an"}:
            return number
        number = count(before)
        if after in SUPERLATIVES and number and before not in {"a", "an", "one"}:
            return number
    return 1


def listing(clause: Clause) -> list[Request]:
    """What campaigns there are, their budgets and statuses."""
    has, which = clause.has, select(clause)
    if has & {"budget", "budgets"}:
        return [Listing(which)]
    states = has & {"active", "paused", "inactive", "enabled", "disabled", "live", "running", "stopped"}
    if clause.spans or clause.metrics or has & (COMPARE | {"perform", "performing", "performance", "doing"}):
        return []
    if states and (clause.question or has & SHOWING or which.status):
        status: Status = "paused" if states & {"paused", "inactive", "disabled", "stopped"} else "active"
        if clause.names or which.back:
            return [Listing(which)]
        return [Listing(replace(which, status=status, everything=False, unknown=()))]
    if clause.question and has & {"pause", "resume", "changed", "change", "raise"} and (clause.names or which.back):
        return [Listing(which)]
    if "status" in has and (clause.names or has & CAMPAIGN):
        return [Listing(which)]
    wanted = has & {"list", "which", "what", "have", "exist", "many", "names"}
    if (
        wanted
        and has & CAMPAIGN
        and not clause.names
        and not has & {"do", "did"} - ({"do"} if "have" in has else set())
    ):
        return [Listing(replace(which, unknown=(), everything=False))]
    if re.fullmatch(
        r"(?:please )?(?:(?:show|list|see|give)(?: me| us)? )?(?:all )?(?:the |our |my )?campaigns",
        " ".join(clause.words),
    ):
        return [Listing(Selection())]
    return []


def performance(clause: Clause) -> list[Request]:
    """Figures over a period, compared if asked."""
    has = clause.has
    asked = has & (PERFORM | COMPARE | TREND | SHOWING | ASKING) or clause.metrics
    subject = clause.names or clause.spans or clause.metrics or has & (PERFORM - {"do", "go", "run", "look", "update"})
    doing = has & {"do", "doing", "did", "going", "run", "running", "went"} and has & ASKING
    which = select(clause)
    if not asked or _is_fragment(clause) or not (subject or doing or which.unknown or not which.empty):
        return []
    if not (subject or doing or which.unknown) and not has & (COMPARE | CAMPAIGN):
        return []
    mains, compare_to = _periods(clause)
    side_by_side = len(which.names) + len(which.unclear) > 1 and bool(has & (COMPARE | {"better", "difference"}))
    if compare_to is None and not side_by_side and has & (COMPARE | TREND | {"change"}):
        compare_to = "previous"
    return [
        Performance(
            which=which,
            period=main.text if main else _default_over(clause),
            relative=main.relative if main else False,
            compare_to=compare_to,
            metrics=clause.metrics,
            side_by_side=side_by_side,
        )
        for main in mains or (None,)
    ]


def _periods(clause: Clause) -> tuple[list[Span], str | None]:
    """The periods asked about, and what to compare them with."""
    over = re.search(r"\b(week|month|quarter|year)[ -]+over[ -]+\1\b", sentence(clause.tokens).casefold())
    spans = list(clause.spans)
    if over or clause.has & {"yoy", "wow"}:
        return [s for s in spans if "over" not in s.text and s.text != "yoy"], "a year earlier" if "year" in (
            over or [""]
        )[0] else "previous"
    if not spans:
        return [], None
    mains, compare_to = [spans[0]], None
    for span in spans[1:]:
        before = clause.before(span.start)
        before = clause.before(span.start - 1) if before in {"the", "in", "from"} else before
        if span.relative or before in _VERSUS - {"and"} or clause.has & {"compare", "compared", "comparison"}:
            compare_to = span.text
        else:
            mains.append(span)
    return _one_relative(clause, mains, compare_to)


def _one_relative(clause: Clause, mains: list[Span], compare_to: str | None) -> tuple[list[Span], str | None]:
    """In "how did we do compared to last month" the only period named is the one to compare with."""
    only = mains[0]
    before = {clause.before(only.start)}
    before |= {clause.before(only.start - 1)} if before & {"the", "in", "from"} else set()
    if compare_to is None and len(mains) == 1 and before & {"vs", "versus", "than", "against", "compared"}:
        return [], only.text
    if (
        compare_to is None
        and len(mains) == 1
        and before & {"to", "with"}
        and clause.has & {"compare", "compared"}
        and not clause.names[1:]
    ):
        return [], only.text
    return mains, compare_to


def _default_over(clause: Clause) -> str | None:
    over = re.search(r"\b(week|month|quarter|year)[ -]+over[ -]+\1\b", sentence(clause.tokens).casefold())
    return _OVER[over[1]] if over else None


def _is_fragment(clause: Clause) -> bool:
    """Whether it is like "and CTR?", "what about Brand Search?", "the week before": names, periods and metrics with nothing that asks about them."""
    text = sentence(clause.tokens).casefold()
    if re.match(r"(?:and |or |ok(?:ay)?,? )*(?:what|how) about\b", text) or re.search(r"\bsame (?:for|with)\b", text):
        return True
    verbs = clause.has & (PERFORM | ASKING | SHOWING | COMPARE) - {"and"}
    return not verbs and bool(clause.names or clause.spans or clause.metrics or select(clause).unknown)


def follow_up(clause: Clause) -> list[Request]:
    """A fragment that goes on with the question before."""
    which = select(clause)
    strange = [w for w in clause.words if w not in POLITE | CAMPAIGN | ASKING and w not in _SMALL]
    if not _is_fragment(clause) and (which.empty or len(strange) > 3):
        return []
    if any(len(said.split()) > 4 for said in which.unknown):
        return []
    if which.unknown and not (clause.names or clause.spans or clause.metrics) and len(clause.words) > 6:
        return []
    mains, compare_to = _periods(clause)
    side_by_side = len(which.names) > 1 and bool(clause.has & COMPARE)
    return [
        Performance(
            which=which,
            period=main.text if main else _default_over(clause),
            relative=main.relative if main else False,
            compare_to=compare_to,
            metrics=clause.metrics,
            side_by_side=side_by_side,
            follow_up=True,
            also=bool({"and", "also"} & {clause.tokens[0].word} or clause.has & {"too", "also"})
            and "about" not in clause.has,
        )
        for main in mains or (None,)
    ]


_SMALL = frozenset(
    {"about", "for", "same", "in", "of", "the", "our", "my", "only", "by", "on", "a", "an", "or", "with", "again"}
)
