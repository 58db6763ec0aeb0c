"""The grammar: a message in ordinary wording becomes the requests in it, in order.

Rules are tried from the most specific and the most careful to the most general. What must not be done at once (negated, conditional,
for later, or told by someone else) is recognised before anything that is done.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from agent.campaigns.results import CampaignResult
from agent.models.offline.budgets import budgets, is_budget
from agent.models.offline.cautions import beyond, careful, flat
from agent.models.offline.clauses import Clause, split
from agent.models.offline.copywriting import brief
from agent.models.offline.names import mark
from agent.models.offline.questions import follow_up, listing, performance, ranking
from agent.models.offline.replies import consent, small_talk
from agent.models.offline.requests import Report, Request, Said, Schedule, Schedules, SetStatus
from agent.models.offline.selections import has_superlative, names_wanted, select, superlative
from agent.models.offline.spans import future
from agent.models.offline.vocabulary import (
    CAMPAIGN,
    GREETINGS,
    KNOWN,
    OFF_TOPIC,
    PAUSE,
    POLITE,
    RESUME,
)
from agent.models.offline.words import sentence, tokenise

_LONGEST = 2000
_SUMMARY = frozenset(
    {"summary", "summaries", "digest", "update", "updates", "overview", "recap", "report", "reports", "schedule"}
)
_AGAIN = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|hourly|weekdays|once a (?:day|week|month)|(?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b.*",
    re.IGNORECASE,
)
_HELP = re.compile(
    r"what can (?:you|i)|what do you do|how (?:do|can|should) (?:you|i|we) |who are you|what are you|are you (?:a|an|the|real|human)|"
    r"your (?:commands|abilities)|what (?:model|llm)"
)


def parse(text: str, campaigns: Sequence[CampaignResult], *, now: datetime, time_zone: str) -> list[Request]:
    """The requests in one message. `campaigns` are those of the account, or none while they are not known."""
    tokens = mark(tokenise(text[:_LONGEST]), campaigns)
    clauses = split(tokens, now=now, time_zone=time_zone)
    requests = [request for clause in clauses for request in _read(clause)]
    if len(requests) > 1:
        # "Hi! Thanks, that's great. How did …": pleasantries beside a request want no answer of their own.
        rest = [each for each in requests if not (isinstance(each, Said) and each.kind in {"greeting", "thanks"})]
        requests = rest or requests[:1]
    if len(text) > _LONGEST:
        requests.append(Said("cut"))
    return list(dict.fromkeys(requests))


def _read(clause: Clause) -> list[Request]:
    for rule in _RULES:
        found = rule(clause)
        if found:
            return found
    return [Said("unknown", clause.text)]


def _schedule(clause: Clause) -> list[Request]:
    words = clause.all_words
    about = bool(words & (_SUMMARY | {"schedules", "scheduled"}))
    cancelling = words & {"cancel", "stop", "remove", "delete", "unsubscribe", "end", "disable", "unschedule"}
    if cancelling and (about or "unschedule" in words) and not clause.names:
        left = [
            w
            for w in clause.words
            if w not in cancelling | _SUMMARY | POLITE | {"the", "my", "our", "a", "schedules", "sending"}
        ]
        spans = [re.sub(r"(?i)^the ", "", span.text) for span in clause.spans]
        return [Schedules(cancel=True, which=" ".join([*left, *spans]))]
    again = _AGAIN.search(sentence(clause.tokens))
    if again and (about or words & {"send", "post", "remind"}) and not words & {"budget", "budgets"}:
        when = re.sub(r"(?i)\b(?:summar\w+|digest|updates?|reports?|overview|recap|please)\b", "", again[0])
        when = re.sub(r"(?i)\b(?:send|post|give|get|remind)\b(?: (?:me|us|it))?(?: (?:an?|the))?", "", when)
        return [Schedule(" ".join(when.split()).strip(" .,!?"))]
    if words & {"schedules", "scheduled", "summaries"} and not again:
        return [Schedules()]
    return [Schedule(None)] if "schedule" in words else []


def _report(clause: Clause) -> list[Request]:
    if not clause.all_words & {"report", "reports", "reporting"}:
        return []
    which = select(clause)
    return [Report(which, clause.spans[0].text if clause.spans else None)]


def _email(clause: Clause) -> list[Request]:
    found = brief(clause)
    return [found] if found else []


def _change(clause: Clause) -> list[Request]:
    if clause.question:
        return []
    on_off = clause.has & {"turn", "switch", "put"} and clause.has & {"on", "off"}
    status = None
    if clause.has & PAUSE or (on_off and "off" in clause.has):
        status = "paused"
    elif clause.has & RESUME or on_off or (clause.first == "get" and {"running", "again"} <= clause.has):
        status = "active"
    if status and not is_budget(clause):
        which = superlative(clause) if has_superlative(clause) and not clause.names else select(clause)
        return [SetStatus(which, "paused" if status == "paused" else "active")]
    return list(budgets(clause)) if is_budget(clause) else []


def _why(clause: Clause) -> list[Request]:
    asked = clause.has & {"why", "reason", "reasons", "caused", "cause"} or "how come" in flat(clause)
    return [Said("why", clause.text)] if asked else []


def _help(clause: Clause) -> list[Request]:
    text = flat(clause)
    how_to = _HELP.search(text) and not clause.names and not clause.spans and not clause.metrics
    if how_to and re.search(r"how (?:do|should|can) we (?:do|compare|stand|perform)", text):
        return []
    return [Said("help")] if how_to or ("help" in clause.has and len(clause.words) < 6) else []


def _forecast(clause: Clause) -> list[Request]:
    return [Said("forecast", clause.text)] if future(clause.tokens) else []


def _off_topic(clause: Clause) -> list[Request]:
    """Asked of any assistant; the name of a place or a time in it makes it no question about campaigns."""
    strange = (
        clause.has & OFF_TOPIC
        or clause.words[:2] == ("what", "time")
        or any(word not in KNOWN and word.isalpha() for word in clause.words)
    )
    return [Said("unknown", clause.text)] if strange and not names_wanted(clause) else []


def _question(clause: Clause) -> list[Request]:
    for read in (ranking, listing, performance, follow_up):
        found = read(clause)
        if found:
            return found
    return []


def _filler(clause: Clause) -> list[Request]:
    """A clause of nothing but politeness or campaigns' generic words asks nothing."""
    harmless = set(clause.words) <= POLITE | CAMPAIGN and not clause.names and not clause.spans
    return [Said("greeting")] if harmless and clause.has & GREETINGS else []


_RULES: tuple[Callable[[Clause], list[Request]], ...] = (
    small_talk, consent, careful, _schedule, _email, _report, beyond, _change, _why, _help, _off_topic, _forecast, _question, _filler,
)  # fmt: skip
