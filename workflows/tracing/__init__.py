"""Traces: spans that survive restarts, redacted before they leave the process."""

from workflows.tracing.base import RunningSink, Span, SpanSink, WatchingSink
from workflows.tracing.fan import Fan
from workflows.tracing.redaction import redact
from workflows.tracing.store import StoreSink
from workflows.tracing.tracer import OpenSpan, Tracer, current_span, root_id

__all__ = [
    "Fan",
    "OpenSpan",
    "RunningSink",
    "Span",
    "SpanSink",
    "StoreSink",
    "Tracer",
    "WatchingSink",
    "current_span",
    "redact",
    "root_id",
]
