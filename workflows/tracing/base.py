"""Spans: one opens before every run, step, model call, tool call and wait, and closes after, whatever happens."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import uuid4

from workflows.errors import ControlFlow
from workflows.tracing.redaction import redact


@dataclass(slots=True)
class Span:
    """One span. `status` is open, ok, error, or interrupted (control flow ended it); times are aware UTC."""

    name: str
    kind: str
    tenant: str
    trace_id: str
    run_id: str | None
    parent_id: str | None
    started_at: datetime
    span_id: str = field(default_factory=lambda: uuid4().hex[:16])
    status: str = "open"
    ended_at: datetime | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


class SpanSink(Protocol):
    """Where finished spans go. `put` must not block and must not raise."""

    def put(self, span: Span) -> None:
        """Take a finished, redacted span."""
        ...


_current: ContextVar[Span | None] = ContextVar("threadline_span", default=None)


def current_span() -> Span | None:
    """The span this task runs in."""
    return _current.get()


class Tracer:
    """Opens spans under the current one, and hands finished ones to the sink, redacted."""

    def __init__(self, sink: SpanSink | None = None) -> None:
        self._sink = sink

    @contextmanager
    def root(self, name: str, *, tenant: str, trace_id: str, run_id: str, **attributes: Any) -> Iterator[Span]:
        """The span of a run. A resumed run stays in its trace: the trace id is the run's own."""
        span = Span(name, "run", tenant, trace_id, run_id, None, datetime.now(UTC), attributes=attributes)
        with self._open(span):
            yield span

    @contextmanager
    def span(self, name: str, *, kind: str, **attributes: Any) -> Iterator[Span]:
        """A span below the current one."""
        parent = _current.get()
        tenant, trace_id = (parent.tenant, parent.trace_id) if parent else ("", uuid4().hex)
        run_id, parent_id = (parent.run_id, parent.span_id) if parent else (None, None)
        with self._open(
            Span(name, kind, tenant, trace_id, run_id, parent_id, datetime.now(UTC), attributes=attributes)
        ) as span:
            yield span

    @contextmanager
    def _open(self, span: Span) -> Iterator[Span]:
        token = _current.set(span)
        began = time.perf_counter()
        try:
            yield span
            span.status = "ok"
        except (ControlFlow, GeneratorExit) as flow:
            span.status = "interrupted"
            span.attributes["flow"] = type(flow).__name__
            raise
        except BaseException as error:
            span.status = "error"
            span.attributes["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            _current.reset(token)
            span.attributes["duration_ms"] = round((time.perf_counter() - began) * 1000, 3)
            span.ended_at = datetime.now(UTC)
            if self._sink is not None:
                span.attributes = redact(span.attributes)
                self._sink.put(span)
