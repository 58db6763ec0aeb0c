"""Spans to OpenTelemetry, over OTLP/HTTP or any exporter of its SDK. Needs the extra `otel`, imported at first use.

Ids are mapped and not made anew, so that a run that was taken over by another process stays in one trace there, too. Attribute names
pass as they are: those of model and tool calls follow the semantic conventions for generative AI already.
"""

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_core import to_json

from workflows.storage.moments import EPOCH, MICROSECOND
from workflows.tracing.base import Span
from workflows.tracing.redaction import redact

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import SpanContext

SCOPE = "threadline.workflows"
PRIMITIVE = (str, bool, int, float)


class OtelSink:
    """A sink that exports finished spans in batches, from a thread of its own.

    `exporter`: any of the SDK's; by default OTLP over HTTP to `endpoint` (a full URL, such as http://collector:4318/v1/traces), or to
    where the environment's OTEL_EXPORTER_OTLP_… point. `service` and `attributes` describe this process; OTEL_SERVICE_NAME and
    OTEL_RESOURCE_ATTRIBUTES go before them. At most `limit` spans wait while the other side is slow or away: then the oldest are
    dropped. `close` waits `close_s` seconds at most. Raises ImportError if the extra is not installed.
    """

    def __init__(
        self,
        exporter: "SpanExporter | None" = None,
        *,
        endpoint: str | None = None,
        service: str = "threadline",
        attributes: Mapping[str, str] | None = None,
        limit: int = 4_096,
        close_s: float = 5.0,
    ) -> None:
        try:
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope

            if exporter is None:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                exporter = OTLPSpanExporter(endpoint)
        except ImportError as error:
            raise ImportError(f"exporting spans needs `pip install threadline[otel]`: {error}") from error
        own = Resource.create({"service.name": service, **(attributes or {})})
        self._resource = own.merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope(SCOPE)
        self._processor = BatchSpanProcessor(exporter, max_queue_size=limit, max_export_batch_size=min(512, limit))
        self._close_s = close_s

    def put(self, span: Span) -> None:
        self._processor.on_end(self._readable(span))

    def start(self) -> None:
        """Nothing: the SDK's thread runs from the first."""

    async def close(self) -> None:
        """Export what is left. Shutting down joins the SDK's thread, which may hang in a request: a thread that nobody waits for does it."""
        loop = asyncio.get_running_loop()
        closed = asyncio.Event()

        def shut_down() -> None:
            self._processor.shutdown()  # type: ignore[no-untyped-call]
            with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
                loop.call_soon_threadsafe(closed.set)

        threading.Thread(target=shut_down, name="otel shutdown", daemon=True).start()
        try:
            async with asyncio.timeout(self._close_s):
                await closed.wait()
        except TimeoutError:
            structlog.get_logger().warning("spans_not_exported", reason=f"no answer within {self._close_s} s")

    def _readable(self, span: Span) -> "ReadableSpan":
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanKind, Status, StatusCode

        trace = trace_number(span.trace_id)
        kinds = {"run": SpanKind.CONSUMER, "model": SpanKind.CLIENT, "publish": SpanKind.PRODUCER}
        failed = span.status == "error"
        return ReadableSpan(
            span.name,
            context=_context(trace, span.span_id),
            parent=_context(trace, span.parent_id) if span.parent_id else None,
            resource=self._resource,
            attributes=_attributes(span),
            kind=kinds.get(span.kind, SpanKind.INTERNAL),
            status=Status(StatusCode.ERROR, str(span.attributes.get("error", ""))) if failed else Status(),
            start_time=_nanoseconds(span.started_at),
            end_time=_nanoseconds(span.ended_at or span.started_at),
            instrumentation_scope=self._scope,
        )


def trace_number(trace_id: str) -> int:
    """The 128-bit number of a trace: a UUID's own, or else derived from the text."""
    return _number(trace_id.replace("-", ""), bits=128)


def span_number(span_id: str) -> int:
    """The 64-bit number of a span."""
    return _number(span_id, bits=64)


def _number(text: str, *, bits: int) -> int:
    try:
        number = int(text, 16) if len(text) == bits // 4 else 0
    except ValueError:
        number = 0
    # Zero is no valid id; a derived one is the same in every process.
    return number or int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=bits // 8).digest())


def _context(trace: int, span_id: str) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(trace, span_number(span_id), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _attributes(span: Span) -> dict[str, Any]:
    values: dict[str, Any] = {
        "threadline.kind": span.kind,
        "threadline.tenant": span.tenant,
        "threadline.status": span.status,
        **({"threadline.run_id": span.run_id} if span.run_id else {}),
    }
    for name, value in span.attributes.items():
        if value is not None:
            values[name] = _value(value)
    return values


def _value(value: Any) -> Any:
    """What OpenTelemetry takes as a value: a primitive, a list of one kind of primitive, or else its JSON."""
    if isinstance(value, PRIMITIVE):
        return value
    if (
        isinstance(value, list)
        and value
        and isinstance(value[0], PRIMITIVE)
        and {type(value[0])} == set(map(type, value))
    ):
        return tuple(value)
    return to_json(value, fallback=lambda each: redact(str(each))).decode()


def _nanoseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND * 1_000
