"""What the system tells the model (approvals decided, background work finished), in words for the people of the thread."""

import json
import re
from dataclasses import dataclass
from typing import Any

from agent.models.base import ToolCall
from agent.models.offline.changes import CHANGES, done, interrupted
from agent.models.offline.desk import Desk, Outcome, Turn, read_outcome
from agent.models.offline.markdown import plain

_APPROVAL = re.compile(r"\Aapproval\s+(?P<id>[^\s:]+)", re.IGNORECASE)
_DECIDED = re.compile(
    r"\b(?P<how>approved|denied|rejected|declined|expired)\b(?:\s+by\s+(?P<by>[^;:\n]+))?", re.IGNORECASE
)
_REWORDED = re.compile(r"\Amessage \S+ of .* was (?:deleted|changed)\b")
_REASON = re.compile(r"\breason:?\s*[\"\u201c]?(?P<reason>[^;\n\"\u201d]+)", re.IGNORECASE)
_RESULT = re.compile(r"\b(?P<kind>result|error):\s*(?P<result>.+)\Z", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Approval:
    """A call that waits, or waited, for an approval."""

    call: ToolCall
    summary: str


def approvals(turns: list[Turn]) -> dict[str, Approval]:
    """The approvals asked for in the window, by id."""
    return {
        str(entry.outcome.data.get("approval_id")): Approval(entry.call, entry.outcome.text)
        for turn in turns
        for entry in turn.entries
        if entry.outcome.kind == "waiting"
    }


def undecided(turns: list[Turn], asked: dict[str, Approval]) -> tuple[str, ...]:
    """What the approvals are for that no notice says were decided, in the order they were asked for."""
    notices = [message.text for turn in turns for _, message in turn.inputs if message.notice]
    decided = {found["id"] for text in notices if (found := _APPROVAL.search(text)) and _DECIDED.search(text)}
    return tuple(each.summary or each.call.name for id_, each in asked.items() if id_ not in decided)


def told(text: str, asked: dict[str, Approval], desk: Desk, *, at: int) -> str:
    """A notice in words. Empty while a read-back is wanted first."""
    decision = _DECIDED.search(text)
    found = _APPROVAL.search(text)
    approval = asked.get(found["id"]) if found else None
    if _REWORDED.match(text):
        return ""  # what it says now is answered, and what was taken back is not
    if decision is None or found is None:
        return plain(text[:600])
    what = f"**{plain(approval.summary or approval.call.name)}**" if approval else "The change"
    by = f" by {plain(decision['by'].strip())}" if decision["by"] else ""
    how = decision["how"].casefold()
    if how == "expired":
        return f"{what}: nobody decided in time, so the approval expired. Nothing has changed."
    if how != "approved":
        reason = _reason(text[decision.end() :])
        return f"{what}: denied{by}{f', because: {plain(reason)}' if reason else ''}. Nothing has changed."
    return _approved(text, approval, desk, what=what, by=by, at=at)


def _reason(rest: str) -> str:
    named = _REASON.search(rest)
    return (named["reason"] if named else rest.split("\n", maxsplit=1)[0]).strip(' .;:,-"\u201c\u201d')


def _approved(text: str, approval: Approval | None, desk: Desk, *, what: str, by: str, at: int) -> str:
    result = _RESULT.search(text)
    outcome = _outcome(result["result"].strip(), at) if result else None
    if outcome is None:
        return f"{what}: approved{by}."
    tool, arguments = _call_of(approval, outcome)
    if outcome.kind == "interrupted":
        listing = desk.campaigns(after=at)
        if listing is None and desk.wanted:
            return ""
        return f"{what}: approved{by}. {interrupted(tool, arguments, listing)}"
    if outcome.kind in {"error", "refused"} or (result and result["kind"] == "error"):
        return f"{what}: approved{by}, but it could not be done: {plain(outcome.text)}"
    if tool in CHANGES:
        return f"Approved{by}: {done(tool, arguments, outcome.data)}"
    return f"{what}: approved{by} and done."


def _outcome(result: str, at: int) -> Outcome:
    """The outcome in a notice; words after a JSON result are left out."""
    try:
        _, end = json.JSONDecoder().raw_decode(result)
    except ValueError:
        return read_outcome(result, is_error=False, at=at)
    return read_outcome(result[:end], is_error=False, at=at)


def _call_of(approval: Approval | None, outcome: Outcome) -> tuple[str, dict[str, Any]]:
    """The call that was approved; if it left the window, as much of it as the result tells."""
    if approval is not None:
        return approval.call.name, approval.call.arguments
    data = outcome.data if isinstance(outcome.data, dict) else {}
    if "difference" in data:
        return "change_budget", {}
    if data.get("new") in {"paused", "active"}:
        return "pause_campaign", {}
    return "", {"campaign": data.get("campaign", "")}
