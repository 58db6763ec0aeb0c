"""Spans in storage: written in batches, known while they are open, and closed for whoever died. One suite, every store."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import structlog

from tests.conformance.conftest import AnyStore
from tests.conformance.engines import Boot, in_state, kill
from tests.conformance.store.acts import a_run
from tests.waiting import until
from workflows import Effect, RunState, StepContext, step, workflow
from workflows.storage import Insert, Select, StoreUnavailableError
from workflows.storage.tables import SPANS, TRACES
from workflows.storage.traces import SpanKey, SpanRow, packed
from workflows.tracing import Span, StoreSink, Tracer, root_id
from workflows.tracing.lost import close_lost
from workflows.tracing.store import LIMIT

AT = datetime(2026, 1, 1, 9, 0, 0, 123456, tzinfo=UTC)
LEASE = timedelta(seconds=30)


def row(span_id: str, **changes: Any) -> SpanRow:
    whole = SpanRow("T1", "trace", span_id, None, "run", "s", "step", "ok", AT, AT + timedelta(seconds=1), {"n": 1})
    return whole._replace(**changes)


def still_open(span_id: str, owner: str = "A") -> SpanRow:
    return row(span_id, status="open", ended_at=None, owner=owner)


async def put(store: AnyStore, *rows: SpanRow, were_open: Sequence[SpanRow] = ()) -> None:
    """Store rows as what they are: open ones singly, ended ones packed."""
    await store.put_open_spans([each for each in rows if each.status == "open"])
    ended = packed(each for each in rows if each.status != "open")
    await store.put_spans(ended, were_open=[key(each) for each in were_open])


def key(span: SpanRow) -> SpanKey:
    return SpanKey(*span[:3])


async def stored(store: AnyStore, *, tenant: str = "T1") -> dict[str, SpanRow]:
    """What a reader finds, by id: each but once."""
    rows = await store.spans(tenant=tenant)
    assert len({key(each) for each in rows}) == len(rows)
    return {each.span_id: each for each in rows}


async def open_rows(store: AnyStore) -> set[str]:
    """The spans that are rows of their own."""
    return {each["span_id"] for each in await store.read(Select(SPANS, {"tenant": "T1"}))}


async def worker(store: AnyStore, worker_id: str) -> None:
    await store.register(worker_id, host="h", deployment="", lease=LEASE)


class TestOperations:
    async def test_a_batch_is_stored_as_it_is(self, store: AnyStore) -> None:
        odd = row("b", parent_id="a", run_id=None, status="error", attributes={"text": "\0 é 🚀"})
        own = row("c", run_id="trace", started_at=AT - timedelta(days=3), ended_at=None)
        await put(store, row("a"), odd, own)
        assert await stored(store) == {"a": row("a"), "b": odd, "c": own}

    async def test_spans_of_one_trace_that_are_written_together_are_one_row(self, store: AnyStore) -> None:
        await put(store, *(row(str(n)) for n in range(50)), row("x", trace_id="other"))
        rows = await store.read(Select(TRACES, {"tenant": "T1"}, order=("spans",)))
        assert [each["spans"] for each in rows] == [1, 50]
        assert len(rows[1]["body"]) < 50 * 20
        assert await open_rows(store) == set()

    async def test_a_batch_whose_reply_was_lost_may_be_sent_again_with_others(self, store: AnyStore) -> None:
        for names in ("ab", "ab", "abc"):
            await put(store, *(row(name) for name in names))
        assert set(await stored(store)) == {"a", "b", "c"}
        assert len(await store.read(Select(TRACES, {"tenant": "T1"}))) == 2

    async def test_an_open_span_is_brought_up_to_date_when_it_ends(self, store: AnyStore) -> None:
        await put(store, still_open("a"), still_open("z"))
        await put(store, row("a", attributes={"n": 2}), row("b"), row("c"), were_open=[row("a"), row("c")])
        spans = await stored(store)
        assert {name: each.status for name, each in spans.items()} == {"a": "ok", "b": "ok", "c": "ok", "z": "open"}
        assert spans["a"].attributes == {"n": 2}
        assert await open_rows(store) == {"z"}

    async def test_an_open_span_never_replaces_a_finished_one(self, store: AnyStore) -> None:
        await put(store, row("a"))
        await put(store, still_open("a"))
        assert (await stored(store))["a"].status == "ok"

    async def test_the_same_span_id_in_another_trace_or_tenant_is_another_span(self, store: AnyStore) -> None:
        await put(store, row("a"), row("a", tenant="T2"), row("a", trace_id="other"))
        assert len(await store.spans(tenant="T1")) == 2

    async def test_nothing_at_all_may_be_stored(self, store: AnyStore) -> None:
        await store.put_spans([])
        await store.put_open_spans([])
        assert await stored(store) == {}

    async def test_only_the_open_spans_of_the_workers_named_are_closed(self, store: AnyStore) -> None:
        await put(store, still_open("a", "A"), still_open("b", "B"), row("c", owner="A"))
        assert sorted(await store.open_span_owners()) == ["A", "B"]
        (closed,) = await store.interrupt_spans(["A"])
        assert (closed.span_id, closed.status) == ("a", "interrupted")
        spans = await stored(store)
        assert {name: each.status for name, each in spans.items()} == {"a": "interrupted", "b": "open", "c": "ok"}
        assert spans["a"] == closed
        assert closed.ended_at is not None
        assert abs(closed.ended_at - await store.now()) < timedelta(seconds=30)
        assert await open_rows(store) == {"b"}
        assert await store.interrupt_spans([]) == []

    async def test_a_span_that_was_taken_for_lost_tells_how_it_really_ended(self, store: AnyStore) -> None:
        """A worker that was reaped while it was paused revives and closes its spans itself."""
        await put(store, still_open("a"), still_open("b"))
        await store.interrupt_spans(["A"])
        let_go = row("b", status="interrupted", attributes={"flow": "Suspended"})
        await put(store, row("a"), let_go, were_open=[row("a"), row("b")])
        assert await stored(store) == {"a": row("a"), "b": let_go}

    async def test_the_row_of_a_version_before_is_read_too(self, store: AnyStore) -> None:
        """It stored ended spans as rows of their own, with the worker that had them open for a while."""
        old = still_open("a")._replace(status="ok", ended_at=AT)
        for each in (old, still_open("b")._replace(status="interrupted"), old._replace(span_id="c", tenant="T2")):
            await store.write(Insert(SPANS, each._asdict()))
        assert (await stored(store))["a"] == old
        await put(store, row("b"), were_open=[row("b")])
        assert {name: each.status for name, each in (await stored(store)).items()} == {"a": "ok", "b": "ok"}
        assert await open_rows(store) == {"a"}


class TestReading:
    async def test_a_trace_is_that_of_its_tenant(self, store: AnyStore) -> None:
        await put(store, row("a"), still_open("b"), row("c", trace_id="other"), row("d", tenant="T2"))
        assert {each.span_id for each in await store.spans(tenant="T1", trace_id="trace")} == {"a", "b"}
        assert await store.spans(tenant="T3", trace_id="trace") == []
        assert {each.span_id for each in await store.spans(tenant="T2", run_id="run", trace_id="trace")} == {"d"}

    async def test_a_run_has_its_own_spans_of_the_trace_its_row_names_or_that_is_called_after_it(
        self, store: AnyStore
    ) -> None:
        run_id = await store.start(a_run(trace_id="trace"))
        await put(store, row("a", run_id=run_id), row("b"), still_open("c")._replace(run_id=run_id))
        assert {each.span_id for each in await store.spans(tenant="T1", run_id=run_id)} == {"a", "c"}
        await put(store, row("d", trace_id="gone", run_id="gone"), row("e", trace_id="gone"))
        assert {each.span_id for each in await store.spans(tenant="T1", run_id="gone")} == {"d"}
        assert await store.spans(tenant="T2", run_id=run_id) == []

    async def test_they_come_by_their_start_and_the_youngest_if_there_are_too_many(self, store: AnyStore) -> None:
        for n in (3, 1, 2):
            await put(store, *(row(f"{n}{m}", started_at=AT + timedelta(minutes=n, seconds=m)) for m in (1, 0)))
        await put(store, still_open("open")._replace(started_at=AT + timedelta(minutes=2, seconds=9)))
        found = [each.span_id for each in await store.spans(tenant="T1")]
        assert found == ["10", "11", "20", "21", "open", "30", "31"]
        assert [each.span_id for each in await store.spans(tenant="T1", limit=4)] == found[-4:]


class TestLost:
    async def test_the_spans_of_a_worker_that_is_gone_are_closed_once(self, make_store: Callable[[], AnyStore]) -> None:
        stores = [make_store(), make_store()]
        for each in stores:
            await each.open()
        await worker(stores[0], "alive")
        await put(stores[0], still_open("a", "gone"), still_open("b", "gone"), still_open("c", "alive"))
        kept = Kept()
        counts = await asyncio.gather(*(close_lost(each, [kept]) for each in stores * 2))
        assert sum(counts) == 2
        assert sorted(span.span_id for span in kept.spans) == ["a", "b"]
        assert {span.status for span in kept.spans} == {"interrupted"}
        assert kept.spans[0].attributes == {"n": 1}
        assert (await stored(stores[0]))["c"].status == "open"
        for each in stores:
            await each.close()


class Kept:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def put(self, span: Span) -> None:
        self.spans.append(span)


class TestSink:
    async def test_a_span_that_ends_soon_is_written_once_and_one_that_lasts_twice(self, store: AnyStore) -> None:
        sink = StoreSink(store, owner=lambda: "A", interval_s=0)
        tracer = Tracer(sink)
        with tracer.root("w", tenant="T1", trace_id="t", run_id="r"):
            await sink.flush()
            (span,) = (await stored(store)).values()
            assert (span.status, span.owner, span.ended_at, span.span_id) == (
                "open",
                "A",
                None,
                root_id("r"),
            )
            with tracer.span("short", kind="step"):
                pass
        await sink.flush()
        assert {each.name: each.status for each in (await stored(store)).values()} == {"w": "ok", "short": "ok"}

    async def test_a_process_that_is_no_worker_stores_no_open_spans(self, store: AnyStore) -> None:
        sink = StoreSink(store, interval_s=0)
        with Tracer(sink).root("w", tenant="T1", trace_id="t", run_id="r"):
            await sink.flush()
            assert await stored(store) == {}
        await sink.flush()
        assert len(await stored(store)) == 1

    async def test_what_an_open_span_holds_is_redacted_too(self, store: AnyStore) -> None:
        sink = StoreSink(store, owner=lambda: "A", interval_s=0)
        with Tracer(sink).root("w", tenant="T1", trace_id="t", run_id="r", url="redis://u:hunter2@h"):
            await sink.flush()
            assert "hunter2" not in str(await stored(store))

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ("x" * 10_000_000, "too_long"),
            (float("nan"), "odd"),
            ("\ud83d", "unstorable"),
            ({1: {2, 3}}, "odd"),
            (Exception("xoxb-1234567890-abcdefgh"), "[redacted]"),
            ("nul \0 byte", "odd"),
        ],
    )
    async def test_a_value_that_is_odd_or_huge_harms_no_other_span(
        self, store: AnyStore, value: Any, shown: str
    ) -> None:
        sink = StoreSink(store)
        tracer = Tracer(sink)
        with (
            tracer.root("nul \0 name \ud83d", tenant="T1", trace_id="t", run_id="r"),
            tracer.span("s", kind="step") as span,
        ):
            span.attributes["odd"] = value
        await sink.flush()
        spans = {each.kind: each for each in (await stored(store)).values()}
        assert set(spans) == {"run", "step"}
        assert shown in json.dumps(spans["step"].attributes)
        assert len(json.dumps(spans["step"].attributes)) < 1_000

    async def test_while_storage_is_away_spans_wait_and_the_newest_are_dropped_beyond_the_limit(
        self, store: AnyStore
    ) -> None:
        away = Away(store)
        sink = StoreSink(away)  # type: ignore[arg-type]
        tracer = Tracer(sink)
        for _ in range(LIMIT + 7):
            with tracer.span("s", kind="step"):
                pass
        with pytest.raises(StoreUnavailableError):
            await sink.flush()
        assert sink.dropped == 7
        away.away = False
        with structlog.testing.capture_logs() as logs:
            await sink.flush()
        assert [(each["event"], each["count"]) for each in logs] == [("spans_dropped", 7)]
        assert len(await store.spans(tenant="", limit=2 * LIMIT)) == LIMIT

    async def test_a_batch_that_may_have_arrived_is_sent_again_as_it_was(self, store: AnyStore) -> None:
        lossy = Lossy(store)
        sink = StoreSink(lossy)  # type: ignore[arg-type]
        with Tracer(sink).root("w", tenant="T1", trace_id="t", run_id="r"):
            pass
        with pytest.raises(StoreUnavailableError):
            await sink.flush()
        with Tracer(sink).root("w", tenant="T1", trace_id="t", run_id="r", first=False):
            pass
        await sink.flush()
        rows = await store.read(Select(TRACES, {"tenant": "T1"}))
        assert [each["spans"] for each in rows] == [1, 1]
        assert len(await stored(store)) == 2

    async def test_an_open_span_that_may_have_arrived_is_gone_when_it_has_ended(self, store: AnyStore) -> None:
        lossy = Lossy(store)
        sink = StoreSink(lossy, owner=lambda: "A", interval_s=0)  # type: ignore[arg-type]
        tracer = Tracer(sink)
        with tracer.root("w", tenant="T1", trace_id="t", run_id="r"):
            with pytest.raises(StoreUnavailableError):
                await sink.flush()
            assert await open_rows(store) == {root_id("r")}
        await sink.flush()
        assert await open_rows(store) == set()
        assert [each.status for each in (await stored(store)).values()] == ["ok"]

    async def test_a_batch_that_can_never_be_stored_is_dropped_and_said(self, store: AnyStore) -> None:
        sink = StoreSink(Broken())  # type: ignore[arg-type]
        with Tracer(sink).span("s", kind="step"):
            pass
        with structlog.testing.capture_logs() as logs:
            await sink.flush()
        assert [(line["event"], line["count"]) for line in logs] == [("spans_dropped", 1)]
        assert sink.dropped == 1

    async def test_closing_writes_what_is_left(self, store: AnyStore) -> None:
        sink = StoreSink(store, interval_s=3600)
        sink.start()
        with Tracer(sink).root("w", tenant="T1", trace_id="t", run_id="r"):
            pass
        await sink.close()
        assert len(await stored(store)) == 1


class Away:
    """A store that can't be reached."""

    def __init__(self, store: AnyStore) -> None:
        self._store = store
        self.away = True

    async def put_spans(self, parts: Any, *, were_open: Any = ()) -> None:
        if self.away:
            raise StoreUnavailableError("away")
        await self._store.put_spans(parts, were_open=were_open)


class Lossy:
    """A store that does the first thing it is asked, and whose reply is lost."""

    def __init__(self, store: AnyStore) -> None:
        self._store = store
        self._lost = False

    async def put_spans(self, parts: Any, *, were_open: Any = ()) -> None:
        await self._store.put_spans(parts, were_open=were_open)
        self._lose()

    async def put_open_spans(self, spans: Any) -> None:
        await self._store.put_open_spans(spans)
        self._lose()

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            raise StoreUnavailableError("lost")


class Broken:
    async def put_spans(self, parts: Any, *, were_open: Any = ()) -> None:
        raise TypeError("no such column")


class TestTraces:
    """What a reader finds after a run, through the engine."""

    async def test_a_killed_workers_open_spans_are_closed_and_the_next_claim_hangs_below_the_first(
        self, boot: Boot
    ) -> None:
        entered, calls = asyncio.Event(), []

        @step(effect=Effect.READ)
        async def work(n: int) -> int:
            calls.append(n)
            if len(calls) == 1:
                entered.set()
                await asyncio.Event().wait()
            return n

        flow = workflow("w").then(work).commit()
        async with boot(flow, worker=False) as web:
            run = await web.start(flow, 1, tenant="T1", run_id=str(uuid4()))
            async with boot(flow, lease_s=0.2) as first:
                await entered.wait()
                await until(lambda: _has(web.store, open=2), "the open spans of run and step")
                await kill(first)
                first._spans = NoSpans()  # a killed process closes nothing
            async with boot(flow, lease_s=0.2) as second:
                await in_state(second, run.id, RunState.DONE, tenant="T1")
                await until(lambda: _has(web.store, interrupted=2, ok=2), "what was open is closed")
            spans = list((await stored(web.store)).values())
        assert {span.trace_id for span in spans} == {run.id}
        roots = {span.status: span for span in spans if span.kind == "run"}
        steps = {span.status: span for span in spans if span.kind == "step"}
        assert (roots["interrupted"].span_id, roots["interrupted"].parent_id) == (root_id(run.id), None)
        assert roots["ok"].parent_id == root_id(run.id)
        assert steps["interrupted"].parent_id == root_id(run.id)
        assert steps["ok"].parent_id == roots["ok"].span_id
        assert [roots[status].attributes["attempt"] for status in ("ok", "interrupted")] == [2, 1]

    async def test_a_turns_waits_drains_and_background_runs_are_in_its_trace(self, boot: Boot) -> None:
        @step(effect=Effect.READ)
        async def double(n: int) -> int:
            return n * 2

        child = workflow("child").then(double).commit()

        @step(effect=Effect.READ)
        async def begin(value: None, ctx: StepContext) -> str:
            await ctx.signals.drain("message")
            await ctx.emit("token", text="a")
            await ctx.emit("token", text="b")
            return ctx.dispatch(child, 21)

        parent = workflow("parent").then(begin).wait_for("task", dict[str, Any]).commit()
        async with boot(parent, child) as engine:
            outcome = await engine.signal_with_start(parent, tenant="T1", key="thread", name="message", dedup_key="m")
            await (await engine.run(outcome.run_id or "", tenant="T1")).result(timeout=10)
            await until(lambda: _kinds(engine.store, {"run", "step", "drain", "wait"}), "its spans")
            await until(lambda: _child(engine.store), "the child's span")
            spans = await stored(engine.store)
        by_name: dict[str, list[SpanRow]] = {}
        for span in spans.values():
            by_name.setdefault(span.name, []).append(span)
        assert len({span.trace_id for span in spans.values()}) == 1
        assert by_name["begin"][0].attributes["published"] == 2
        assert by_name["drain_signals"][0].attributes["signals"] == ["1:message"]
        assert by_name["drain_signals"][0].parent_id == by_name["begin"][0].span_id
        assert "interrupted" in {span.status for span in by_name["task"]}  # it let go, and came back
        first = next(span for span in by_name["parent"] if span.span_id == root_id(outcome.run_id or ""))
        assert by_name["child"][0].parent_id == first.span_id


class NoSpans:
    async def close(self) -> None:
        return


async def _has(store: Any, **counts: int) -> bool:
    statuses = [span.status for span in (await stored(store)).values()]
    return all(statuses.count(status) == count for status, count in counts.items())


async def _kinds(store: Any, kinds: set[str]) -> bool:
    return kinds <= {span.kind for span in (await stored(store)).values()}


async def _child(store: Any) -> bool:
    return "child" in {span.name for span in (await stored(store)).values()}
