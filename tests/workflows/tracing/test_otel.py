"""The bridge to OpenTelemetry, on its real SDK and a real OTLP/HTTP server on loopback."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from workflows import Effect, Engine, step, workflow
from workflows.pubsub import MemoryPubSub
from workflows.storage import MemoryStore
from workflows.tracing import Tracer, root_id
from workflows.tracing.otel import OtelSink, span_number, trace_number

TRACE = "0199a1b2-1111-7222-8333-444455556666"
RUN: dict[str, Any] = {"tenant": "T1", "trace_id": TRACE, "run_id": TRACE}


class Collector:
    """An OTLP/HTTP server that keeps what it is sent; while `gate` is not set, requests hang."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.taken = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.taken.release()
                collector.gate.wait()
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    @property
    def spans(self) -> list[Any]:
        """The spans received, as protobuf messages."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collector() -> Iterator[Collector]:
    it = Collector()
    thread = threading.Thread(target=it.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield it
    finally:
        it.gate.set()
        it.server.shutdown()
        it.server.server_close()
        thread.join()


async def export(work: Any, **options: Any) -> list[ReadableSpan]:
    """The spans that `work(tracer)` leaves with an exporter of the SDK."""
    exporter = InMemorySpanExporter()
    sink = OtelSink(exporter, **options)
    work(Tracer(sink))
    await sink.close()
    return list(exporter.get_finished_spans())


async def test_a_runs_spans_arrive_in_one_trace_with_their_parents() -> None:
    def work(tracer: Tracer) -> None:
        with tracer.root("turn", **RUN), tracer.span("step", kind="step"), tracer.span("chat m", kind="model"):
            pass
        with tracer.root("turn", **RUN, first=False):
            pass

    chat, step_, first, second = await export(work)
    assert {span.context.trace_id for span in (chat, step_, first, second)} == {int(TRACE.replace("-", ""), 16)}
    assert first.parent is None
    assert [span.parent.span_id for span in (chat, step_, second) if span.parent] == [
        step_.context.span_id,
        first.context.span_id,
        first.context.span_id,
    ]
    assert first.context.span_id == int(root_id(TRACE), 16)
    assert [span.kind for span in (chat, step_, first)] == [SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.CONSUMER]


async def test_attributes_pass_under_their_own_names() -> None:
    def work(tracer: Tracer) -> None:
        with tracer.root("turn", **RUN), tracer.span("chat m", kind="model") as span:
            span.attributes.update(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.usage.input_tokens": 12,
                    "gen_ai.response.finish_reasons": ["tool_calls"],
                    "mixed": [1, "a"],
                    "nested": {"at": datetime(2026, 1, 1, tzinfo=UTC)},
                    "nothing": None,
                    "api_key": "sk-abcdefghijklmnopqrst",
                }
            )

    chat = (await export(work))[0]
    assert dict(chat.attributes or {}) == {
        "threadline.kind": "model",
        "threadline.tenant": "T1",
        "threadline.run_id": TRACE,
        "threadline.status": "ok",
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "mixed": '[1,"a"]',
        "nested": '{"at":"2026-01-01T00:00:00Z"}',
        "api_key": "[redacted]",
    }


async def test_a_failed_span_is_an_error_there_and_an_interrupted_one_is_none() -> None:
    def work(tracer: Tracer) -> None:
        with pytest.raises(ValueError, match="no"), tracer.root("turn", **RUN), tracer.span("s", kind="step"):
            raise ValueError("no")
        with pytest.raises(asyncio.CancelledError), tracer.span("left", kind="step"):
            raise asyncio.CancelledError

    failed, _, left = await export(work)
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "ValueError: no")
    assert left.status.status_code is StatusCode.UNSET
    assert (left.attributes or {})["threadline.status"] == "interrupted"


async def test_a_real_collector_gets_the_service_the_ids_and_the_times() -> None:
    with collector() as there:
        sink = OtelSink(endpoint=there.url, service="worker", attributes={"deployment.environment.name": "test"})
        before = datetime.now(UTC)
        with Tracer(sink).root("turn", **RUN):
            pass
        await sink.close()
        (span,) = there.spans
        resource = {
            each.key: each.value.string_value for each in there.requests[0].resource_spans[0].resource.attributes
        }
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("worker", "test")
    assert span.trace_id.hex() == TRACE.replace("-", "")
    assert span.span_id.hex() == root_id(TRACE)
    assert before.timestamp() * 1e9 - 1000 <= span.start_time_unix_nano <= span.end_time_unix_nano
    assert there.requests[0].resource_spans[0].scope_spans[0].scope.name == "threadline.workflows"


async def test_the_environments_service_name_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from the environment")

    def work(tracer: Tracer) -> None:
        with tracer.root("turn", **RUN):
            pass

    (span,) = await export(work, service="by the constructor")
    assert span.resource.attributes["service.name"] == "from the environment"


async def test_a_collector_that_hangs_holds_up_neither_the_work_nor_the_end() -> None:
    """Runs end, closing returns, and no more spans than the limit are kept meanwhile."""

    @step(effect=Effect.READ)
    async def double(n: int) -> int:
        return n * 2

    flow = workflow("w").then(double).commit()
    with collector() as there, structlog.testing.capture_logs() as logs:
        there.gate.clear()
        sink = OtelSink(endpoint=there.url, limit=100, close_s=0.2)
        async with Engine(
            store=MemoryStore(), pubsub=MemoryPubSub(quiet=True), workflows=[flow], poll_s=0.05, exporters=[sink]
        ) as engine:
            runs = [await engine.start(flow, n) for n in range(150)]
            assert [await run.result(timeout=20) for run in runs] == [2 * n for n in range(150)]
            await asyncio.to_thread(there.taken.acquire)
            gc.collect()
            kept = [each for each in gc.get_objects() if isinstance(each, ReadableSpan)]
            assert len(kept) <= 2 * 100  # those that wait, and the batch in the request
    assert "spans_not_exported" in [line["event"] for line in logs]


class Refusing(SpanExporter):
    """An exporter that fails."""

    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError("refused")


async def test_an_exporter_that_fails_harms_nothing() -> None:
    sink = OtelSink(Refusing())
    with Tracer(sink).root("turn", **RUN):
        pass
    await sink.close()


@pytest.mark.parametrize(
    ("text", "number"),
    [(TRACE, int(TRACE.replace("-", ""), 16)), ("a" * 32, int("a" * 32, 16))],
)
def test_a_trace_whose_id_is_a_number_keeps_it(text: str, number: int) -> None:
    assert trace_number(text) == number


@pytest.mark.parametrize("text", ["", "0" * 32, f"{TRACE}-p", "thread C1", "\ud83d"])
def test_any_other_id_gets_a_number_that_is_valid_and_always_the_same(text: str) -> None:
    assert 0 < trace_number(text) < 2**128
    assert 0 < span_number(text) < 2**64
    code = f"from workflows.tracing.otel import trace_number; print(trace_number({text!r}))"
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(elsewhere.stdout) == trace_number(text)


def test_the_sdk_is_loaded_only_by_whoever_exports() -> None:
    code = "import sys, workflows, workflows.tracing.otel; print([m for m in sys.modules if m.startswith('opentelemetry.sdk.trace')])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(ImportError, match=r"threadline\[otel\]"):
        OtelSink()


async def test_spans_wait_for_no_collector_while_there_is_none() -> None:
    """Nobody listens there: the work goes on, and the end comes in its time."""
    sink = OtelSink(endpoint="http://127.0.0.1:9/v1/traces", close_s=0.2)
    with Tracer(sink).root("turn", **RUN):
        pass
    async with asyncio.timeout(5):
        await sink.close()
