"""Traces: spans that survive restarts, redacted before they leave the process."""

from workflows.tracing.base import Span, SpanSink, Tracer, current_span
from workflows.tracing.redaction import redact
from workflows.tracing.store import StoreSink

__all__ = ["Span", "SpanSink", "StoreSink", "Tracer", "current_span", "redact"]
