"""What is over goes when its time has come; what lives, or what something alive needs, stays."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.conftest import NOTES, AnyStore
from tests.conformance.store.acts import a_run, accept, claim, claimed, new_id, ok
from tests.conformance.store.test_blobs import LARGE, ROUTES, blobs
from workflows.storage import Delete, Insert, Is, Retention, Select, Swept, Table, Update
from workflows.storage.ageing import rows_of_tenants
from workflows.storage.base import Fork, RunRow, RunState, StepBatch
from workflows.storage.tables import APPROVALS, FIRINGS, RECEIVED, RUNS, SIGNALS, SPANS, STEPS, TRACES
from workflows.storage.traces import SpanRow, packed

KEEP = Retention(
    runs_days=10, spans_days=5, approvals_days=10, firings_days=10, dead_letters_days=6, received_days=8, blobs_days=1
)


async def pass_days(store: AnyStore, days: float) -> None:
    await store.set_clock_offset(timedelta(days=days))


async def done(store: AnyStore, **changes: Any) -> RunRow:
    """A run with a record and a signal, done."""
    await store.start(a_run(**changes))
    (run,) = await claim(store, lease_s=10**8)
    await store.signal(run.run_id, tenant=run.tenant, name="m", dedup_key="m", payload=b"1")
    batch = StepBatch((ok("a"),), consumed=(1,), done=True, inbox_seen=1, output=b"9")
    assert (await store.step(run.run_id, run.fence, batch)).recorded
    return run


async def ended_below(store: AnyStore, parent_id: str) -> str:
    """A background run of another one, ended, with a record: its end has been told already. Returns its id."""
    run = {
        "run_id": new_id(),
        "tenant": "T1",
        "workflow": "w",
        "state": "done",
        "parent_id": parent_id,
        "parent_path": "a",
    }
    record = {"run_id": run["run_id"], "path": "a", "seq": 1, "fence": 1, "status": "ok"}
    await store.write(Insert(RUNS, {**run, "finished_at": await store.now()}), Insert(STEPS, record))
    return run["run_id"]


async def rows_of(store: AnyStore, run_id: str) -> list[dict[str, Any]]:
    return [row for table in (RUNS, STEPS, SIGNALS) for row in await store.read(_by_run(table, run_id))]


def _by_run(table: Table, run_id: str) -> Select:
    return Select(table, {"run_id": run_id} if table.shared else {"run_id": run_id, "tenant": "T1"})


def a_span(tenant: str, at: Any, *, status: str = "ok", span_id: str = "s") -> SpanRow:
    return SpanRow(tenant, "t", span_id, None, None, "x", "step", status, at, at, {}, "A")


class TestRuns:
    async def test_an_ended_run_goes_with_its_records_and_signals_after_its_days_and_not_before(
        self, store: AnyStore
    ) -> None:
        run = await done(store)
        await pass_days(store, 9.9)
        assert (await store.sweep(KEEP)).runs == 0
        assert len(await rows_of(store, run.run_id)) == 3
        await pass_days(store, 10.1)
        assert (await store.sweep(KEEP)).runs == 1
        assert await rows_of(store, run.run_id) == []

    @pytest.mark.parametrize("state", [RunState.READY, RunState.RUNNING, RunState.SUSPENDED])
    async def test_a_living_run_stays_however_old(self, store: AnyStore, state: RunState) -> None:
        run_id = await store.start(a_run())
        if state is not RunState.READY:
            (run,) = await claim(store)
            await store.step(run_id, run.fence, StepBatch((ok("a"),)))
            if state is RunState.SUSPENDED:
                assert await store.suspend(run_id, run.fence, inbox_seen=0, until=None)
        await pass_days(store, 1000)
        assert (await store.sweep(KEEP)).runs == 0
        row = await store.run(run_id)
        assert row is not None
        assert row.state is state

    async def test_a_dead_run_that_was_redriven_stays(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.end(run.run_id, run.fence, RunState.DEAD, inbox_seen=0, successor_id=new_id())
        assert (await store.redrive(run.run_id, tenant="T1")).redriven
        await pass_days(store, 11)
        assert (await store.sweep(KEEP)).runs == 0

    async def test_what_a_living_child_will_wake_stays_until_it_has_ended(self, store: AnyStore) -> None:
        parent = await claimed(store, key="thread")
        child = a_run(parent_id=parent.run_id, parent_path="a")
        await store.step(parent.run_id, parent.fence, StepBatch((ok("a"),), children=(child,), done=True))
        await pass_days(store, 11)
        assert (await store.sweep(KEEP)).runs == 0
        (running,) = await claim(store, "B", lease_s=10**8)
        await store.step(
            child.run_id, running.fence, StepBatch((ok("x"),), done=True, successor_id=new_id(), wakes_parent=True)
        )
        assert (await store.sweep(KEEP)).runs == 1
        assert await store.run(parent.run_id) is None
        assert await store.run(child.run_id) is not None

    async def test_a_task_whose_result_a_living_run_may_read_stays(self, store: AnyStore) -> None:
        parent = await claimed(store)
        child = a_run(parent_id=parent.run_id, parent_path="a")
        await store.step(parent.run_id, parent.fence, StepBatch((ok("a"),), children=(child,)))
        (running,) = await claim(store, "B")
        await store.step(child.run_id, running.fence, StepBatch((ok("x"),), done=True))
        await pass_days(store, 11)
        assert (await store.sweep(KEEP)).runs == 0

    async def test_the_source_of_a_living_fork_stays(self, store: AnyStore) -> None:
        source = await done(store)
        fork = Fork(new_id(), source.run_id, "T1", cut=1, input=b"2")
        assert await store.fork(fork)
        await pass_days(store, 11)
        assert (await store.sweep(KEEP)).runs == 0
        (run,) = await claim(store, lease_s=10**8)
        await store.step(run.run_id, run.fence, StepBatch((ok("z"),), done=True, inbox_seen=run.inbox_seq))
        assert (await store.sweep(KEEP)).runs == 1
        assert await store.run(source.run_id) is None

    async def test_a_batch_is_bounded(self, store: AnyStore) -> None:
        for _ in range(5):
            await done(store)
        await pass_days(store, 11)
        assert [(await store.sweep(KEEP, limit=2)).runs for _ in range(4)] == [2, 2, 1, 0]

    async def test_several_clocks_share_the_work(self, make_store: Callable[[], AnyStore]) -> None:
        stores = [make_store(), make_store()]
        for each in stores:
            await each.open()
        for _ in range(6):
            await done(stores[0])
        await pass_days(stores[0], 11)
        swept = await asyncio.gather(*(each.sweep(KEEP, limit=2) for each in stores * 4))
        rest = await stores[0].sweep(KEEP)
        assert sum(each.runs for each in (*swept, rest)) == 6
        assert await stores[0].read(Select(STEPS, {})) == []
        for each in stores:
            await each.close()


class TestRows:
    async def test_ended_spans_go_by_their_start(self, store: AnyStore) -> None:
        now = await store.now()
        old, new = now - timedelta(days=5.1), now - timedelta(days=4.9)
        for spans in ({"old": old, "older": old}, {"new": new}):
            await store.put_spans(packed(a_span("T1", at, span_id=name) for name, at in spans.items()))
        await store.put_open_spans([a_span("T1", old, status="open", span_id="open")])
        for name, at in (("row of old", old), ("row of new", new)):  # as the version before stored them
            await store.write(Insert(SPANS, a_span("T1", at, span_id=name)._asdict()))
        assert (await store.sweep(KEEP)).spans == 3
        assert {span.span_id for span in await store.spans(tenant="T1")} == {"new", "open", "row of new"}

    async def test_spans_that_were_written_together_stay_as_long_as_the_youngest(self, store: AnyStore) -> None:
        now = await store.now()
        ages = {"old": timedelta(days=5.1), "new": timedelta(days=4.9)}
        await store.put_spans(packed(a_span("T1", now - age, span_id=name) for name, age in ages.items()))
        assert (await store.sweep(KEEP)).spans == 0
        await pass_days(store, 0.2)
        assert (await store.sweep(KEEP)).spans == 2
        assert await store.read(Select(TRACES, {"tenant": "T1"})) == []

    async def test_decided_approvals_go_and_pending_ones_stay(self, store: AnyStore) -> None:
        for name in ("decided", "pending"):
            values: dict[str, Any] = {"tenant": "T1", "id": name, "workflow": "w", "key": "k", "body": {}}
            await store.write(Insert(APPROVALS, {**values, "expires_at": await store.now() + timedelta(days=100)}))
        await store.decide("decided", a_run(), decision="denied", by="U", reason=None)
        await pass_days(store, 11)
        assert (await store.sweep(KEEP)).approvals == 1
        assert [row["id"] for row in await store.read(Select(APPROVALS, {"tenant": "T1"}))] == ["pending"]

    async def test_firings_go_and_queued_ones_stay(self, store: AnyStore) -> None:
        for name in ("started", "skipped", "queued"):
            values = {"tenant": "T1", "schedule": "s", "run_id": name, "due_at": await store.now(), "status": name}
            await store.write(Insert(FIRINGS, values))
        await pass_days(store, 11)
        assert (await store.sweep(KEEP)).firings == 2
        assert [row["run_id"] for row in await store.read(Select(FIRINGS, {"tenant": "T1"}))] == ["queued"]

    async def letter(self, store: AnyStore) -> None:
        await accept(store)
        for _ in range(2):
            (run,) = await claim(store, lease_s=10**8)
            await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())

    async def test_dead_letters_go(self, store: AnyStore) -> None:
        await self.letter(store)
        await pass_days(store, 6.1)
        assert (await store.sweep(KEEP)).dead_letters == 1
        assert await store.dead_signals(tenant="T1") == []

    async def test_the_key_of_an_event_goes_after_its_days(self, store: AnyStore) -> None:
        await accept(store)
        await pass_days(store, 7.9)
        assert (await store.sweep(KEEP)).received == 0
        assert (await accept(store)).duplicate
        await pass_days(store, 8.1)
        assert (await store.sweep(KEEP)).received == 1
        assert await store.read(Select(RECEIVED, {"tenant": "T1"})) == []

    async def test_the_key_of_an_event_stays_as_long_as_its_letter(self, store: AnyStore) -> None:
        """A letter that waited for weeks before it died."""
        await accept(store)
        await pass_days(store, 7)
        for _ in range(2):
            (run,) = await claim(store, lease_s=10**8)
            await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
        await pass_days(store, 12)
        assert (await store.sweep(KEEP)).received == 0
        assert (await accept(store)).duplicate
        await pass_days(store, 13.1)
        swept = await store.sweep(KEEP)
        assert (swept.dead_letters, swept.received) == (1, 1)

    async def test_nothing_goes_from_a_store_where_all_is_young(self, store: AnyStore) -> None:
        await done(store)
        await self.letter(store)
        await store.put_spans(packed([a_span("T1", await store.now())]))
        assert await store.sweep(KEEP) == Swept()


class TestBlobs:
    @pytest.mark.parametrize("route", [each for each in ROUTES if each != "dead_signals"])
    async def test_what_a_row_refers_to_stays_and_can_be_read(self, store: AnyStore, route: str) -> None:
        assert await ROUTES[route](store, LARGE) == LARGE
        for days in (1.1, 2.2, 3.3):
            await pass_days(store, days)
            assert (await store.sweep(KEEP)).blobs == 0
        assert await blobs(store) == [LARGE]

    async def test_a_letter_keeps_its_payload(self, store: AnyStore) -> None:
        await ROUTES["dead_signals"](store, LARGE)
        await pass_days(store, 11)
        await store.write(Update(RUNS, {"tenant": "T1"}, {"finished_at": await store.now()}))
        assert (await store.sweep(Retention(dead_letters_days=40))).blobs == 0
        (letter,) = await store.dead_signals(tenant="T1")
        assert letter.signal.payload == LARGE

    async def test_what_nothing_refers_to_goes_after_its_time(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.step(run.run_id, run.fence, StepBatch((ok("a", LARGE),), done=True))
        await pass_days(store, 11)
        assert (await store.sweep(KEEP)).runs == 1
        assert await blobs(store) == [LARGE]
        await pass_days(store, 12.1)
        assert (await store.sweep(KEEP)).blobs == 1
        assert await blobs(store) == []

    async def test_another_tenants_rows_keep_only_its_own(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.start(a_run(tenant="T2", workflow="other", input=LARGE))
        await store.step(run.run_id, run.fence, StepBatch((ok("a", LARGE),), done=True))
        for days in (11, 13):
            await pass_days(store, days)
            await store.sweep(KEEP)
        assert (await blobs(store, "T1"), await blobs(store, "T2")) == ([], [LARGE])

    async def test_one_that_is_referred_to_anew_begins_its_time_anew(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.step(run.run_id, run.fence, StepBatch((ok("a", LARGE),), done=True))
        await pass_days(store, 10.5)
        assert (await store.sweep(KEEP)).runs == 1
        await pass_days(store, 11.4)
        second = await store.start(a_run(input=LARGE))
        await store.write(Delete(RUNS, {"tenant": "T1", "run_id": second}))
        await pass_days(store, 12)
        assert (await store.sweep(KEEP)).blobs == 0
        await pass_days(store, 12.5)
        assert (await store.sweep(KEEP)).blobs == 1

    async def test_those_in_use_do_not_keep_the_others_from_being_looked_at(self, store: AnyStore) -> None:
        for number in range(3):
            await store.start(a_run(input=LARGE + b"%d" % number, workflow="other"))
        run = await claimed(store)
        await store.step(run.run_id, run.fence, StepBatch((ok("a", LARGE),), done=True))
        await pass_days(store, 11)
        assert sum([(await store.sweep(KEEP, limit=1)).blobs for _ in range(4)]) == 1
        assert len(await blobs(store)) == 3


class TestForget:
    async def everything(self, store: AnyStore, tenant: str) -> None:
        """Rows in every table that has a tenant."""
        at = await store.now()
        await store.put_spans(packed([a_span(tenant, at)]))
        await store.put_open_spans([a_span(tenant, at, status="open", span_id="open")])
        await store.start(a_run(tenant=tenant, input=LARGE, workflow="other"))
        values: dict[str, Any] = {"tenant": tenant, "id": "a", "workflow": "w", "key": "k", "body": {}}
        await store.write(
            Insert(APPROVALS, {**values, "expires_at": await store.now()}), Insert(NOTES, {"tenant": tenant, "id": "n"})
        )
        for number in range(3):
            await accept(store, f"m{number}", tenant=tenant)
        for _ in range(2):
            (run,) = await claim(store, lease_s=10**8)
            await store.step(run.run_id, run.fence, StepBatch((ok("a"),)))
            await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=run.inbox_seq, successor_id=new_id())

    async def remains(self, store: AnyStore, tenant: str) -> dict[str, int]:
        tables = (RUNS, *rows_of_tenants(store.tables))
        counts = {table.name: len(await store.read(Select(table, {"tenant": tenant}))) for table in tables}
        return {name: count for name, count in counts.items() if count}

    async def test_everything_of_a_tenant_goes_and_nothing_of_another(self, store: AnyStore) -> None:
        for tenant in ("T1", "T2"):
            await self.everything(store, tenant)
        theirs = await self.remains(store, "T2")
        assert {"runs", "spans", "traces", "received", "dead_signals", "approvals", "blobs", "notes"} <= theirs.keys()
        while await store.forget("T1"):
            pass
        assert await self.remains(store, "T1") == {}
        assert await self.remains(store, "T2") == theirs
        ids = {run.run_id for run in await store.runs(tenant="T2")}
        for table in (STEPS, SIGNALS):
            assert {row["run_id"] for row in await store.read(Select(table, {}))} <= ids
            assert await store.read(Select(table, {"run_id": Is("in", sorted(ids))}))

    async def test_it_goes_in_bounded_batches(self, store: AnyStore) -> None:
        for number in range(5):
            await store.write(Insert(NOTES, {"tenant": "T1", "id": str(number)}))
        assert [await store.forget("T1", limit=2) for _ in range(4)] == [2, 2, 1, 0]

    async def test_a_worker_that_holds_one_of_its_runs_finds_it_gone(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.forget("T1")
        outcome = await store.step(
            run.run_id, run.fence, StepBatch((ok("a"),), writes=(Insert(NOTES, {"tenant": "T1", "id": "n"}),))
        )
        assert (outcome.recorded, outcome.owned) == (False, False)
        assert await self.remains(store, "T1") == {}

    async def test_it_must_be_said_which(self, store: AnyStore) -> None:
        with pytest.raises(ValueError, match="which tenant"):
            await store.forget("")


class TestRunsOfKeys:
    """`forget_runs`: what ended under a prefix goes with what came of it, and nothing else."""

    async def test_ended_runs_go_with_what_came_of_them_and_others_stay(self, store: AnyStore) -> None:
        gone = await done(store, key="C1:1")
        others = [
            await done(store, **each)
            for each in ({"key": "C11:1"}, {"key": "xC1:1"}, {"key": None}, {"key": "C1:1", "tenant": "T2"})
        ]
        child = await ended_below(store, gone.run_id)
        grandchild = await ended_below(store, child)
        assert await store.forget_runs("T1", under="C1:") == 3
        assert await store.forget_runs("T1", under="C1:") == 0
        for run_id in (gone.run_id, child, grandchild):
            assert await rows_of(store, run_id) == []
        for each in others:
            assert await store.run(each.run_id) is not None
            assert len(await store.read(_by_run(STEPS, each.run_id))) == 1

    async def test_it_goes_in_batches_that_leave_nothing_without_its_origin(self, store: AnyStore) -> None:
        above = (await done(store, key="C1:1")).run_id
        for _ in range(4):
            above = await ended_below(store, above)
        assert [await store.forget_runs("T1", under="C1:", limit=2) for _ in range(4)] == [2, 2, 1, 0]
        assert await store.runs(tenant="T1") == []

    @pytest.mark.parametrize("state", [RunState.READY, RunState.RUNNING])
    async def test_what_lives_and_what_it_needs_stays(self, store: AnyStore, state: RunState) -> None:
        ended = await done(store, key="C1:1")
        await store.start(a_run(key="C1:1"))
        child = await store.start(a_run(parent_id=ended.run_id, parent_path="a"))
        if state is RunState.RUNNING:
            assert len(await claim(store, limit=2)) == 2
        assert await store.forget_runs("T1", under="C1:") == 0
        assert await store.run(ended.run_id) is not None
        assert await store.run(child) is not None

    async def test_a_prefix_is_no_pattern(self, store: AnyStore) -> None:
        await done(store, key="C1:1")
        for each in ("C_:", "C%", "c1:", "C1:1:", "1:"):
            assert await store.forget_runs("T1", under=each) == 0

    @pytest.mark.parametrize(("tenant", "under"), [("", "C1:"), ("T1", "")])
    async def test_it_must_be_said_whose_and_which(self, store: AnyStore, tenant: str, under: str) -> None:
        with pytest.raises(ValueError, match="which tenant"):
            await store.forget_runs(tenant, under=under)


class TestSettings:
    @pytest.mark.parametrize(
        ("days", "said"),
        [
            ({"received_days": 6.9, "dead_letters_days": 5}, "at least 7"),
            ({"received_days": 30, "dead_letters_days": 30}, "more than dead_letters_days"),
            ({"runs_days": 0}, "runs_days must be more than 0"),
            ({"spans_days": -1}, "spans_days must be more than 0"),
            ({"blobs_days": float("nan")}, "blobs_days"),
        ],
    )
    def test_settings_that_would_lose_something_are_refused(self, days: dict[str, float], said: str) -> None:
        with pytest.raises(ValueError, match=said):
            Retention(**days)
