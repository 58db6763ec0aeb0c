"""What must not be carried out, however much it sounds like a request: negated, conditional, for later, told by someone else."""

import re

from agent.models.offline.budgets import is_budget
from agent.models.offline.clauses import Clause
from agent.models.offline.requests import Request, Said
from agent.models.offline.selections import has_superlative
from agent.models.offline.spans import future
from agent.models.offline.vocabulary import CAMPAIGN, PAUSE, REPORTING, RESUME
from agent.models.offline.words import sentence

_NOT = frozenset({"don't", "dont", "never", "not", "won't"})
_STARTING = frozenset({"on", "from", "until", "till", "starting", "since"})


def flat(clause: Clause) -> str:
    """The whole clause in lower case, for what is easier to see in a row than as a set."""
    return sentence(clause.tokens).casefold()


def _change_verb(clause: Clause) -> bool:
    if clause.has & (PAUSE | RESUME) or (clause.has & {"turn", "switch"} and clause.has & {"on", "off"}):
        return True
    return is_budget(clause)


def careful(clause: Clause) -> list[Request]:
    """What sounds like a change and must not be made now."""
    words = clause.has
    if (
        "should" in words
        or words & {"recommend", "advise", "advice", "suggest", "recommendation", "worth"}
        or "what if" in flat(clause)
    ):
        return [Said("advice", clause.text)]
    if words & {"would"} and words & {"happen", "happens"}:
        return [Said("advice", clause.text)]
    if not _change_verb(clause):
        return []
    if (words & _NOT and not words & {"why"}) or "no need" in flat(clause):
        return [Said("keep", clause.text)]
    if words & REPORTING:
        return [Said("reported", clause.text)]
    conditional = re.search(
        r"\b(?:if(?! (?:you can|you could|possible|you want))|unless|whenever|as soon as|once|in case|when)\b",
        flat(clause),
    )
    if conditional and not clause.question:
        return [Said("condition", clause.text)]
    if _by_value(clause):
        return [Said("by_value", clause.text)]
    on_a_day = any({clause.before(span.start), span.text.split()[0].casefold()} & _STARTING for span in clause.spans)
    dated = any(token.kind == "date" for token in clause.rest)
    if not clause.question and (on_a_day or _for_a_time(clause) or dated or future(clause.tokens)):
        return [Said("later", clause.text)]
    return []


_COMPARED = re.compile(
    r"\b(?:below|above|under|over|(?:less|more|fewer|lower|higher|greater|better|worse) than|at (?:least|most)|exceed\w*)\b|[<>]"
)


def _by_value(clause: Clause) -> bool:
    """Whether it means campaigns by what they spent or brought, as in "pause what has a ROAS below 1": never all of them."""
    number = any(token.kind in {"money", "number", "percent"} for token in clause.rest)
    of_campaigns = bool(clause.metrics or clause.has & (PAUSE | RESUME | {"spent", "spend", "spending", "cost"}))
    return number and of_campaigns and _COMPARED.search(clause.text.casefold()) is not None


def _for_a_time(clause: Clause) -> bool:
    starts = ({clause.before(span.start), span.text.split()[0].casefold()} for span in clause.spans)
    return any("for" in words for words in starts) and not has_superlative(clause)


def beyond(clause: Clause) -> list[Request]:
    """What no tool here does, so that it is not taken for a question about the campaign."""
    wanted = clause.first in {"delete", "remove", "create", "rename", "archive", "duplicate", "launch"}
    return [Said("beyond", clause.text)] if wanted and (clause.names or clause.has & CAMPAIGN) else []
