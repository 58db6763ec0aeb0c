"""The conversation as turns, and a desk where a request's tool calls are either answered already or noted as wanted.

A turn is planned anew at every call of the model, from nothing but the messages. So the plan of a request must not depend on how far
it has come: it asks the desk for each result it needs; what is missing becomes the next calls.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from agent.campaigns.results import CampaignList
from agent.models.base import Message, ToolCall, ToolResult
from agent.window import LOST

OutcomeKind = Literal["done", "waiting", "interrupted", "error", "refused"]
_REFUSED = frozenset({"denied", "blocked", "rejected", "refused", "expired", "stopped"})
LIST = "list_campaigns"
ASKED_BY = "asked_by"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: `data` is its decoded result, `text` the result or error as text, `at` the message that brought it."""

    kind: OutcomeKind
    data: Any
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A call and its outcome."""

    call: ToolCall
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Turn:
    """What people and the system said, with each message's place in the window, and the calls made for it."""

    inputs: tuple[tuple[int, Message], ...]
    entries: tuple[Entry, ...]


def turns(messages: Sequence[Message]) -> list[Turn]:
    """The window cut after each answer, and after calls whose turn ended before them; the last turn is the open one, and may be empty."""
    found: list[Turn] = []
    inputs: list[tuple[int, Message]] = []
    entries: list[Entry] = []
    calls: dict[str, ToolCall] = {}
    for at, message in enumerate(messages):
        calls |= {call.id: call for call in message.tool_calls}
        if message.role == "user":
            inputs.append((at, message))
        elif message.role == "tool":
            entries += _entries(message, calls, at)
            if _cut_off(message):  # by a stop or a failure: what it asked for is not asked for any more
                found.append(Turn(tuple(inputs), tuple(entries)))
                inputs, entries = [], []
        elif not message.tool_calls:
            found.append(Turn(tuple(inputs), tuple(entries)))
            inputs, entries = [], []
    return [*found, Turn(tuple(inputs), tuple(entries))]


def _cut_off(message: Message) -> bool:
    return any(isinstance(part, ToolResult) and part.content == LOST for part in message.parts)


def _entries(message: Message, calls: dict[str, ToolCall], at: int) -> Iterable[Entry]:
    for part in message.parts:
        if isinstance(part, ToolResult) and part.call_id in calls:
            yield Entry(calls[part.call_id], read_outcome(part.content, is_error=part.is_error, at=at))


def read_outcome(content: str, *, is_error: bool, at: int) -> Outcome:
    """The outcome in a tool's result."""
    try:
        data = json.loads(content)
    except ValueError:
        data = content
    status = data.get("status") if isinstance(data, dict) else None
    text = _text(data, content)
    if status == "awaiting_approval":
        return Outcome("waiting", data, str(data.get("summary") or ""), at)
    if status == "interrupted":
        return Outcome("interrupted", data, text, at)
    if is_error or (isinstance(data, dict) and "error" in data):
        return Outcome("error", data, text, at)
    return Outcome("refused" if status in _REFUSED else "done", data, text, at)


def _text(data: Any, content: str) -> str:
    if isinstance(data, dict):
        for key in ("error", "message", "reason", "summary"):
            if isinstance(data.get(key), str):
                return str(data[key])
    return data if isinstance(data, str) else content


@dataclass
class Desk:
    """One turn's calls. `ask` gives a call's outcome, or None and puts the call on `wanted`."""

    entries: tuple[Entry, ...]
    tools: frozenset[str]
    wanted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asker: str | None = None
    """Whose request is being gone through, where several people ask and a call has to say so."""

    def has(self, tool: str) -> bool:
        """Whether the tool is offered."""
        return tool in self.tools

    def ask(self, tool: str, arguments: dict[str, Any]) -> Outcome | None:
        """The first outcome of exactly this call."""
        for entry in self.entries:
            if entry.call.name == tool and _bare(entry.call.arguments) == arguments:
                return entry.outcome
        self._want(tool, arguments)
        return None

    def campaigns(self, *, after: int = -1) -> CampaignList | None:
        """The first list of campaigns that came later than message `after`; wanted if there is none."""
        for entry in self.entries:
            if entry.call.name == LIST and entry.outcome.at > after:
                return campaign_list(entry.outcome)
        if self.has(LIST):
            self._want(LIST, {})
        return None

    def list_error(self) -> str | None:
        """Why the campaigns could not be listed, if that is so."""
        outcomes = [entry.outcome for entry in self.entries if entry.call.name == LIST]
        return outcomes[0].text if outcomes and campaign_list(outcomes[0]) is None else None

    def _want(self, tool: str, arguments: dict[str, Any]) -> None:
        if (tool, arguments) not in [(name, _bare(known)) for name, known in self.wanted]:
            self.wanted.append((tool, arguments if self.asker is None else {**arguments, ASKED_BY: self.asker}))


def _bare(arguments: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, whoever asks."""
    return {name: value for name, value in arguments.items() if name != ASKED_BY}


def campaign_list(outcome: Outcome) -> CampaignList | None:
    """The list in an outcome, or None if it is none."""
    try:
        return CampaignList.model_validate(outcome.data)
    except ValidationError:
        return None
