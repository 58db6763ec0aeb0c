"""What a scripted provider answers, in no provider's words; each server says it in its own protocol."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Call:
    """A tool call; `pieces` are its JSON as the provider streams it, cut wherever."""

    id: str
    name: str
    pieces: Sequence[str]


@dataclass(frozen=True)
class Answer:
    """A streamed answer. `cut_after`: the connection is cut after so many events. `hold_after`: it falls silent for good then.

    `fail_after`: an error event (overloaded) comes in the stream then. `input_tokens` counts all input, cached included.
    """

    text: Sequence[str] = ()
    calls: Sequence[Call] = ()
    stop: Literal["end", "tool_calls", "max_tokens", "refusal"] = "end"
    input_tokens: int = 20
    cached_tokens: int = 0
    output_tokens: int = 5
    model: str = "model-1"
    cut_after: int | None = None
    hold_after: int | None = None
    fail_after: int | None = None


@dataclass(frozen=True)
class Failure:
    """An HTTP error; `kind` is the provider's name for it."""

    status: int
    kind: str = "api_error"
    message: str = "it failed"
    headers: dict[str, str] = field(default_factory=dict)
