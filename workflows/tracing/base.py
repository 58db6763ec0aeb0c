"""Spans: what one is, and where finished ones go."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

Status = Literal["open", "ok", "error", "interrupted"]
"""`interrupted`: control flow ended it (a suspension, a worker that leaves), or its process died and a reaper closed it."""


@dataclass(slots=True, eq=False)
class Span:
    """One span. `trace_id` is that of its run, `span_id` 16 hexadecimal digits; times are aware UTC, of its process's clock.

    `attributes` hold JSON-able values; GenAI's semantic conventions name those of model and tool calls. They are raw while the span
    is open and redacted once it has ended.
    """

    name: str
    kind: str
    tenant: str
    trace_id: str
    run_id: str | None
    parent_id: str | None
    started_at: datetime
    span_id: str
    attributes: dict[str, Any] = field(default_factory=dict)
    status: Status = "open"
    ended_at: datetime | None = None


class SpanSink(Protocol):
    """Where finished spans go. `put` must not block and must not raise."""

    def put(self, span: Span) -> None:
        """Take a finished, redacted span."""
        ...


@runtime_checkable
class WatchingSink(SpanSink, Protocol):
    """A sink that is told of spans when they open, too, so that those of a process that dies are known."""

    def began(self, span: Span) -> None:
        """Take note of an open span. It is `put` when it has ended."""
        ...


@runtime_checkable
class RunningSink(SpanSink, Protocol):
    """A sink with work of its own in the background."""

    def start(self) -> None:
        """Begin. An event loop runs."""
        ...

    async def close(self) -> None:
        """Write what is left and stop, within a few seconds whatever the other side does. Does not raise."""
        ...
