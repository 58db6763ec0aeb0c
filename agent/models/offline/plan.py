"""From the messages to the next step: the calls that are still wanted, or the answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.campaigns.results import AccountResult, CampaignList
from agent.models.base import DELETED, Message, ModelRequest
from agent.models.offline import attachments, notices
from agent.models.offline.desk import ASKED_BY, Desk, Turn, turns
from agent.models.offline.grammar import parse
from agent.models.offline.handlers import Handled, handle
from agent.models.offline.markdown import plain
from agent.models.offline.requests import Email, Request, Said, Schedule, Schedules, Topic
from agent.models.offline.scene import PERFORMANCE, Scene, read_performance
from agent.models.offline.talk import GONE, HELP

_NO_ACCOUNT = CampaignList(account=AccountResult(name="", currency="", time_zone="UTC"), campaigns=())


@dataclass(frozen=True, slots=True)
class Plan:
    """Calls to make, or, when there are none, the answer as Markdown."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    answer: str


@dataclass
class _Course:
    """The course of a conversation: the approvals that are open, what was spoken of, and the campaigns as last seen."""

    request: ModelRequest
    waiting: tuple[str, ...]
    topic: Topic = field(default_factory=Topic)
    account: CampaignList = _NO_ACCOUNT


def plan(request: ModelRequest) -> Plan:
    """The next step of the open turn. The turns before it are gone through for what its follow-ups refer to."""
    found = turns(request.messages)
    asked = notices.approvals(found)
    course = _Course(request, notices.undecided(found, asked))
    for turn in found[:-1]:
        _go_through(course, turn)
    return _answer(course, found[-1], asked)


def _go_through(course: _Course, turn: Turn) -> None:
    desk = Desk(turn.entries, _offered(course.request))
    course.account = desk.campaigns() or course.account
    period: str | None = None
    by_place = _requests(course, turn)
    for at, message in turn.inputs:
        for each in by_place.get(at, []):
            handled = handle(_scene(course, desk, message, turn, period), each, course.request.tools)
            course.topic, period = handled.topic, handled.period or period
    course.topic = _settled(course.topic, turn)


def _answer(course: _Course, turn: Turn, asked: dict[str, notices.Approval]) -> Plan:
    desk = Desk(turn.entries, _offered(course.request))
    first = _needed_first(course, turn, desk)
    if first is not None:
        return first
    sections: list[tuple[str, str]] = []
    period: str | None = None
    by_place = _requests(course, turn)
    for at, message in turn.inputs:
        if message.notice:
            sections.append(("", notices.told(message.text, asked, desk, at=at)))
            continue
        if attachments.asked(message) and not message.heard:
            desk.asker = _named(course.request, message)
            sections.append((message.author.name if message.author else "", attachments.told(message, desk)))
            continue
        for each in by_place.get(at, []):
            handled: Handled = handle(_scene(course, desk, message, turn, period), each, course.request.tools)
            course.topic, period = handled.topic, handled.period or period
            sections.append((message.author.name if message.author else "", handled.text))
    if not any(text for _, text in sections) and any(message.text == DELETED for _, message in turn.inputs):
        return Plan((), GONE)
    return Plan(tuple(desk.wanted), "" if desk.wanted else _joined(sections))


def _needed_first(course: _Course, turn: Turn, desk: Desk) -> Plan | None:
    """The list of campaigns, without which no name can be made out; or the answer that there is none to be had."""
    if not any(
        _needs_names(course, message) and not attachments.asked(message) for _, message in turn.inputs if _asks(message)
    ):
        return None
    desk.asker = next((_named(course.request, message) for _, message in turn.inputs if _asks(message)), None)
    listed = desk.campaigns()
    if listed is not None:
        course.account = listed
        return None
    if desk.wanted:
        return Plan(tuple(desk.wanted), "")
    problem = desk.list_error()
    if problem is not None:
        return Plan((), f"I could not read the account's campaigns: {plain(problem)}. Try again in a moment.")
    return Plan((), "I have no access to campaigns here.") if not course.account.campaigns else None


def _needs_names(course: _Course, message: Message) -> bool:
    requests = parse(message.text, (), now=course.request.now, time_zone=_zone(message))
    small = {"greeting", "thanks", "help", "why", "stop", "forecast", "undo"}
    return not all(
        isinstance(each, Email | Schedules | Schedule) or (isinstance(each, Said) and each.kind in small)
        for each in requests
    )


def _requests(course: _Course, turn: Turn) -> dict[int, list[Request]]:
    """What each person's message asks for, by the message's place."""
    return {
        at: parse(message.text, course.account.campaigns, now=course.request.now, time_zone=_zone(message))
        for at, message in turn.inputs
        if _asks(message)
    }


def _asks(message: Message) -> bool:
    """Whether it may ask for something: what the system tells, and what was said to others, does not."""
    return not message.notice and not message.heard and message.text != DELETED


def _scene(course: _Course, desk: Desk, message: Message, turn: Turn, period: str | None) -> Scene:
    desk.asker = _named(course.request, message)
    zones = {_zone(each) for _, each in turn.inputs if _asks(each)}
    now: datetime = course.request.now
    return Scene(
        desk, course.account, course.topic, now, _zone(message), exact=len(zones) > 1, turn_period=period, waiting=course.waiting
    )  # fmt: skip


def _named(request: ModelRequest, message: Message) -> str | None:
    """The author of a message, where calls have to name whose they are."""
    several = any(ASKED_BY in tool.parameters.get("required", ()) for tool in request.tools)
    return message.author.id if several and message.author else None


def _settled(topic: Topic, turn: Turn) -> Topic:
    """The topic of a turn that is over: "last week" becomes the dates it meant then."""
    for entry in reversed(turn.entries):
        result = read_performance(entry.outcome) if entry.call.name == PERFORMANCE else None
        if result is not None:
            return replace(topic, period=f"{result.period.start}..{result.period.end}")
    return topic


def _joined(sections: Sequence[tuple[str, str]]) -> str:
    """The sections as one answer; who is answered is named when several people asked."""
    said = [(name, text) for name, text in sections if text]
    if not said:
        return HELP
    several = len({name for name, _ in said if name}) > 1
    parts: list[str] = []
    last = ""
    for name, text in said:
        parts.append(f"**{plain(name)}:** {text}" if several and name and name != last else text)
        last = name
    return "\n\n".join(dict.fromkeys(parts))


def _zone(message: Message) -> str:
    zone = message.author.time_zone if message.author else "UTC"
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # by kind of nonsense
        return "UTC"
    return zone


def _offered(request: ModelRequest) -> frozenset[str]:
    return frozenset(tool.name for tool in request.tools)
