"""Opens spans. One opens before every run, step, model call, tool call, drain, wait and publish, and closes after, whatever happens."""

import random
import time
from asyncio import CancelledError
from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from types import TracebackType
from typing import Any
from uuid import uuid4

from workflows.errors import ControlFlow
from workflows.tracing.base import Span, SpanSink, WatchingSink
from workflows.tracing.redaction import redact

_current: ContextVar[Span | None] = ContextVar("threadline_span", default=None)
ERROR_CHARS = 2_000


def current_span() -> Span | None:
    """The span this task runs in."""
    return _current.get()


def root_id(run_id: str) -> str:
    """The id of a run's first span: derived, so that what comes after a crash, in another process, knows its parent."""
    return blake2b(run_id.encode(), digest_size=8).hexdigest()


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Tracer:
    """Opens spans under the current one, and hands finished ones to the sink, redacted."""

    def __init__(
        self,
        sink: SpanSink | None = None,
        *,
        clock: Callable[[], datetime] = _utc_now,
        rng: random.Random | None = None,
    ) -> None:
        self._sink = sink
        self._began = sink.began if isinstance(sink, WatchingSink) else None
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 — ids, not secrets

    def root(
        self,
        name: str,
        *,
        tenant: str,
        trace_id: str,
        run_id: str,
        first: bool = True,
        parent_run: str | None = None,
        **attributes: Any,
    ) -> "OpenSpan":
        """The span of one claim of a run. The first claim's is the run's own, below that of `parent_run` if there is one; those of later
        claims hang below it, so that a trace shows in one place how often a run was taken up.
        """
        parent = (root_id(parent_run) if parent_run else None) if first else root_id(run_id)
        span_id = root_id(run_id) if first else self._new_id()
        span = Span(name, "run", tenant, trace_id, run_id, parent, self._clock(), span_id, attributes)
        return OpenSpan(self, span)

    def span(self, name: str, *, kind: str, parent: Span | None = None, **attributes: Any) -> "OpenSpan":
        """A span below `parent`, or else below the current one."""
        parent = parent or _current.get()
        if parent is None:
            span = Span(name, kind, "", uuid4().hex, None, None, self._clock(), self._new_id(), attributes)
        else:
            span = Span(
                name, kind, parent.tenant, parent.trace_id, parent.run_id, parent.span_id, self._clock(), self._new_id(), attributes
            )  # fmt: skip
        return OpenSpan(self, span)

    def _new_id(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"

    def began(self, span: Span) -> None:
        """A span was entered."""
        if self._began is not None:
            self._began(span)

    def ended(self, span: Span) -> None:
        """A span was left: nothing raw goes further."""
        if self._sink is not None:
            span.attributes = redact(span.attributes)
            self._sink.put(span)


class OpenSpan:
    """A span as a context manager. A class of its own, because a generator costs three times as much and a turn opens ten."""

    __slots__ = ("_began", "_span", "_token", "_tracer")

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span

    def __enter__(self) -> Span:
        self._token: Token[Span | None] = _current.set(self._span)
        self._began = time.perf_counter()
        self._tracer.began(self._span)
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        span = self._span
        # The wall clock may be set in between; a duration may not.
        span.ended_at = span.started_at + timedelta(seconds=time.perf_counter() - self._began)
        _current.reset(self._token)
        if error is None:
            span.status = "ok"
        elif isinstance(error, ControlFlow | GeneratorExit | CancelledError):
            span.status = "interrupted"
            span.attributes["flow"] = type(error).__name__
        else:
            span.status = "error"
            span.attributes["error"] = f"{type(error).__name__}: {error}"[:ERROR_CHARS]
        self._tracer.ended(span)
