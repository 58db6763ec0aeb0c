"""Spans: their parents, their ends, their times, and what a sink gets to see of them."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from workflows.errors import Suspended
from workflows.tracing import Fan, Span, Tracer, current_span, root_id

RUN: dict[str, Any] = {"tenant": "T1", "trace_id": "trace", "run_id": "run-1"}


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.begun: list[Span] = []
        self.spans: list[Span] = []

    def began(self, span: Span) -> None:
        self.begun.append(span)

    def put(self, span: Span) -> None:
        self.spans.append(span)


@pytest.fixture
def sink() -> Kept:
    return Kept()


@pytest.fixture
def tracer(sink: Kept) -> Tracer:
    return Tracer(sink)


def test_a_span_belongs_to_the_one_it_was_opened_in(tracer: Tracer, sink: Kept) -> None:
    with tracer.root("w", **RUN) as run, tracer.span("s", kind="step", path="s") as step:
        assert current_span() is step
        assert step.parent_id == run.span_id
        assert (step.tenant, step.trace_id, step.run_id) == ("T1", "trace", "run-1")
    assert current_span() is None
    assert [span.name for span in sink.spans] == ["s", "w"]
    assert [span.name for span in sink.begun] == ["w", "s"]


async def test_tasks_that_run_at_once_do_not_become_each_others_parents(tracer: Tracer, sink: Kept) -> None:
    async def arm(name: str) -> None:
        with tracer.span(name, kind="step") as span:
            await asyncio.sleep(0)
            assert current_span() is span

    with tracer.root("w", **RUN) as run:
        await asyncio.gather(*(arm(str(n)) for n in range(5)))
    assert {span.parent_id for span in sink.spans[:-1]} == {run.span_id}


def test_the_first_claims_span_is_known_to_every_later_one(tracer: Tracer, sink: Kept) -> None:
    with tracer.root("w", **RUN) as first:
        pass
    with Tracer(sink).root("w", **RUN, first=False) as second:
        pass
    assert first.span_id == root_id("run-1") == second.parent_id
    assert second.span_id != first.span_id
    assert first.parent_id is None


def test_a_background_runs_span_hangs_below_that_of_the_run_that_began_it(tracer: Tracer) -> None:
    with tracer.root("child", tenant="T1", trace_id="trace", run_id="run-2", parent_run="run-1") as span:
        assert span.parent_id == root_id("run-1")


@pytest.mark.parametrize(
    ("error", "status", "attributes"),
    [
        (ValueError("no"), "error", {"error": "ValueError: no"}),
        (asyncio.CancelledError(), "interrupted", {"flow": "CancelledError"}),
        (Suspended(), "interrupted", {"flow": "Suspended"}),
        (KeyboardInterrupt(), "error", {"error": "KeyboardInterrupt: "}),
    ],
)
def test_a_span_is_closed_whatever_ends_it(
    tracer: Tracer, sink: Kept, error: BaseException, status: str, attributes: dict[str, Any]
) -> None:
    with pytest.raises(type(error)), tracer.span("s", kind="step"):
        raise error
    (span,) = sink.spans
    assert (span.status, span.attributes) == (status, attributes)
    assert span.ended_at is not None
    assert current_span() is None


def test_an_error_of_ten_megabytes_is_cut(tracer: Tracer, sink: Kept) -> None:
    with pytest.raises(ValueError, match="x"), tracer.span("s", kind="step"):
        raise ValueError("x" * 10_000_000)
    assert len(sink.spans[0].attributes["error"]) == 2_000


def test_a_sink_sees_no_secret(tracer: Tracer, sink: Kept) -> None:
    def work() -> None:
        with tracer.span("s", kind="step", url="redis://u:hunter2@h") as span:
            span.attributes["api_key"] = "whatever"
            raise ValueError("refused xoxb-1234567890-abcdefgh")

    with pytest.raises(ValueError, match="xoxb"):
        work()
    assert not any(secret in str(sink.spans) for secret in ("hunter2", "whatever", "xoxb"))


def test_a_span_ends_after_it_began_also_when_the_wall_clock_is_set_back(sink: Kept) -> None:
    times = iter([datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 11, tzinfo=UTC)])
    with Tracer(sink, clock=lambda: next(times)).span("s", kind="step"):
        pass
    span = sink.spans[0]
    assert span.ended_at is not None
    assert timedelta(0) <= span.ended_at - span.started_at < timedelta(seconds=5)


def test_ids_come_from_the_generator_that_was_given(sink: Kept) -> None:
    for _ in range(2):
        with Tracer(sink, rng=random.Random(7)).span("s", kind="step"):
            pass
    assert sink.spans[0].span_id == sink.spans[1].span_id
    assert len(sink.spans[0].span_id) == 16


def test_ids_of_two_processes_differ(sink: Kept) -> None:
    for _ in range(2):
        with Tracer(sink).span("s", kind="step"):
            pass
    assert sink.spans[0].span_id != sink.spans[1].span_id


def test_without_a_sink_spans_still_know_their_parents() -> None:
    with Tracer().root("w", **RUN) as run, Tracer().span("s", kind="step") as span:
        assert span.parent_id == run.span_id


class Broken:
    def put(self, span: Span) -> None:
        raise RuntimeError("full")

    def began(self, span: Span) -> None:
        raise RuntimeError("full")

    def start(self) -> None:
        return None

    async def close(self) -> None:
        raise RuntimeError("stuck")


async def test_a_sink_that_fails_costs_the_others_nothing(sink: Kept) -> None:
    fan = Fan(Broken(), sink)
    fan.start()
    with structlog.testing.capture_logs() as logs:
        with Tracer(fan).span("s", kind="step"):
            pass
        await fan.close()
    assert [span.name for span in sink.spans] == ["s"]
    assert [span.name for span in sink.begun] == ["s"]
    assert [line["event"] for line in logs] == ["span_not_taken", "span_not_taken", "span_sink_not_closed"]
