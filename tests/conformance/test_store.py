"""The storage operations: one suite, every backend."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.conftest import NOTES, AnyStore
from workflows.errors import SchemaError
from workflows.storage import Column, Delete, Insert, Is, Select, Update
from workflows.storage.base import (
    Hint,
    NewRun,
    Record,
    RunRow,
    RunState,
    Schedule,
    Status,
    StepBatch,
    StoreUnavailableError,
)
from workflows.storage.migrations import schemas_of
from workflows.storage.tables import APPROVALS

WORKFLOWS = [("w", "1")]


def new_id() -> str:
    return str(uuid4())


def a_run(**changes: Any) -> NewRun:
    return NewRun(**{"run_id": new_id(), "tenant": "T1", "workflow": "w", **changes})


def ok(path: str, output: bytes | None = b"1") -> Record:
    return Record(path, Status.OK, output)


async def claim(store: AnyStore, worker: str = "A", *, limit: int = 1, lease_s: float = 30) -> list[RunRow]:
    await store.register(worker, host="h", deployment="d", lease=timedelta(seconds=lease_s))
    return await store.claim(worker, queues=["default"], workflows=WORKFLOWS, limit=limit)


async def claimed(store: AnyStore, **changes: Any) -> RunRow:
    await store.start(a_run(**changes))
    return (await claim(store))[0]


async def accept(store: AnyStore, dedup: str = "m1", **changes: Any) -> Any:
    return await store.signal_with_start(
        a_run(key="thread", **changes), name="message", dedup_key=dedup, payload=b'"hi"'
    )


class TestClaim:
    async def test_a_due_run_is_claimed_once(self, store: AnyStore) -> None:
        run_id = await store.start(a_run())
        assert [run.run_id for run in await claim(store, "A")] == [run_id]
        assert await claim(store, "B") == []

    async def test_claiming_raises_fence_and_attempts(self, store: AnyStore) -> None:
        run = await claimed(store)
        assert (run.fence, run.attempts, run.owner, run.state) == (1, 1, "A", RunState.RUNNING)

    async def test_a_run_of_an_unknown_version_is_left_for_one_that_knows_it(self, store: AnyStore) -> None:
        await store.start(a_run(version="2"))
        assert await claim(store) == []

    async def test_a_run_that_is_not_due_is_left(self, store: AnyStore) -> None:
        await store.start(a_run(available_at=await store.now() + timedelta(hours=1)))
        assert await claim(store) == []
        await store.set_clock_offset(timedelta(hours=2))
        assert len(await claim(store)) == 1

    async def test_tenants_at_their_cap_are_left_out(self, store: AnyStore) -> None:
        await store.start(a_run())
        await store.register("A", host="h", deployment="d", lease=timedelta(seconds=9))
        assert await store.claim("A", queues=["default"], workflows=WORKFLOWS, limit=9, leave_out=["T1"]) == []

    async def test_racing_claims_share_the_runs(self, store: AnyStore) -> None:
        ids = {await store.start(a_run()) for _ in range(20)}
        taken = [
            run.run_id
            for batch in await asyncio.gather(*(claim(store, f"W{n}", limit=3) for n in range(10)))
            for run in batch
        ]
        assert len(taken) == len(set(taken))
        assert set(taken) <= ids

    async def test_only_one_live_run_per_key(self, store: AnyStore) -> None:
        first = await store.start(a_run(key="k"))
        assert await store.start(a_run(key="k")) == first
        assert await store.start(a_run(key="k", tenant="T2")) != first

    async def test_starting_the_same_id_twice_starts_once(self, store: AnyStore) -> None:
        run = a_run()
        assert await store.start(run) == await store.start(run)
        assert len(await store.runs(tenant="T1")) == 1


class TestStep:
    async def test_records_come_back_in_order(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.step(run.run_id, run.fence, StepBatch((ok("a", b"1"), ok("b", b"2"))))
        await store.step(run.run_id, run.fence, StepBatch((ok("c", None),)))
        loaded = await store.load(run.run_id)
        assert [(each.path, each.seq, each.output) for each in loaded] == [
            ("a", 1, b"1"),
            ("b", 2, b"2"),
            ("c", 3, None),
        ]

    async def test_progress_resets_attempts(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),)))
        row = await store.run(run.run_id)
        assert row is not None
        assert (row.attempts, row.step_seq) == (0, 1)

    async def test_a_stale_fence_writes_nothing(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.release("A", held=[])
        await claim(store, "B")
        outcome = await store.step(
            run.run_id, run.fence, StepBatch((ok("a"),), writes=(Insert(NOTES, {"tenant": "T1", "id": "n"}),))
        )
        assert (outcome.recorded, outcome.owned) == (False, False)
        assert await store.load(run.run_id) == []
        assert await store.read(Select(NOTES, {"tenant": "T1"})) == []

    async def test_the_identical_batch_again_is_the_same_write(self, store: AnyStore) -> None:
        run = await claimed(store)
        batch = StepBatch((ok("a"), ok("b")), writes=(Insert(NOTES, {"tenant": "T1", "id": "n"}),))
        assert (await store.step(run.run_id, run.fence, batch)).recorded
        again = await store.step(run.run_id, run.fence, batch)
        assert (again.recorded, again.owned) == (True, True)
        assert len(await store.load(run.run_id)) == 2

    async def test_an_earlier_owners_record_does_not_let_a_later_fence_pass_for_it(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),)))
        await store.release("A", held=[])
        later = (await claim(store, "B"))[0]
        outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),)))
        assert (outcome.recorded, outcome.owned) == (True, False)
        assert (await store.step(later.run_id, later.fence, StepBatch((ok("a"),)))).recorded is False

    async def test_the_last_step_ends_the_run_in_the_same_commit(self, store: AnyStore) -> None:
        run = await claimed(store)
        outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True, output=b"9"))
        row = await store.run(run.run_id)
        assert row is not None
        assert (outcome.recorded, outcome.owned, row.state, row.output, row.owner) == (
            True,
            False,
            RunState.DONE,
            b"9",
            None,
        )
        assert row.finished_at is not None

    async def test_a_lost_reply_of_the_end_is_safe(self, store: AnyStore) -> None:
        run = await claimed(store)
        batch = StepBatch((ok("a"),), done=True, output=b"9")
        await store.step(run.run_id, run.fence, batch)
        assert (await store.step(run.run_id, run.fence, batch)).recorded

    async def test_the_end_does_not_pass_a_signal_it_has_not_seen(self, store: AnyStore) -> None:
        await accept(store)
        run = (await claim(store))[0]
        await accept(store, "m2")
        outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True, inbox_seen=1))
        assert (outcome.recorded, outcome.owned, outcome.inbox_seq) == (False, True, 2)
        assert await store.load(run.run_id) == []

    async def test_the_end_does_not_pass_a_cancel(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.signal(run.run_id, tenant="T1", name="$cancel", dedup_key="c", payload=None)
        outcome = await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True, inbox_seen=1))
        assert (outcome.recorded, outcome.owned, outcome.cancel_requested) == (False, True, True)

    async def test_signals_used_are_consumed_with_the_step_that_used_them(self, store: AnyStore) -> None:
        await accept(store)
        await accept(store, "m2")
        run = (await claim(store))[0]
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,)))
        assert [each.dedup_key for each in await store.inbox(run.run_id)] == ["m2"]

    async def test_rows_of_upper_floors_ride_in_the_same_commit(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.write(Insert(NOTES, {"tenant": "T1", "id": "old"}), Insert(NOTES, {"tenant": "T1", "id": "gone"}))
        writes = (
            Insert(
                NOTES, {"tenant": "T1", "id": "new", "n": 3, "body": {"a": [1, None]}, "raw": b"\x00", "ratio": 0.5}
            ),
            Update(NOTES, {"tenant": "T1", "id": "old"}, {"n": 7, "done": True}),
            Delete(NOTES, {"tenant": "T1", "id": "gone"}),
        )
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),), writes=writes))
        rows = await store.read(Select(NOTES, {"tenant": "T1"}, order=("id",)))
        assert [(row["id"], row["n"], row["done"], row["body"], row["raw"], row["ratio"]) for row in rows] == [
            ("new", 3, False, {"a": [1, None]}, b"\x00", 0.5),
            ("old", 7, True, None, None, None),
        ]

    async def test_children_and_hints_are_part_of_the_step(self, store: AnyStore) -> None:
        run = await claimed(store)
        child = a_run(parent_id=run.run_id, parent_path="a", input=b"5")
        await store.step(
            run.run_id, run.fence, StepBatch((ok("a"),), hints=(Hint("t", "e", {"x": 1}),), children=(child,))
        )
        assert await store.drain_hints() == [Hint("t", "e", {"x": 1})]
        assert await store.drain_hints() == []
        row = await store.run(child.run_id)
        assert row is not None
        assert (row.parent_id, row.input, row.tenant) == (run.run_id, b"5", "T1")

    async def test_a_childs_end_wakes_its_parents_key(self, store: AnyStore) -> None:
        parent = await claimed(store, key="thread")
        child = a_run(parent_id=parent.run_id, parent_path="a")
        await store.step(parent.run_id, parent.fence, StepBatch((ok("a"),), children=(child,)))
        assert await store.suspend(parent.run_id, parent.fence, inbox_seen=0, until=None)
        (running,) = await claim(store, "B")
        assert running.run_id == child.run_id
        await store.step(child.run_id, running.fence, StepBatch((ok("x"),), done=True, successor_id=new_id()))
        assert [each.name for each in await store.inbox(parent.run_id)] == ["task"]
        row = await store.run(parent.run_id)
        assert row is not None
        assert row.state is RunState.READY


class TestSuspend:
    async def test_a_suspended_run_is_held_by_nobody(self, store: AnyStore) -> None:
        run = await claimed(store)
        assert await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)
        row = await store.run(run.run_id)
        assert row is not None
        assert (row.state, row.owner, row.available_at) == (RunState.SUSPENDED, None, None)
        assert await claim(store) == []

    async def test_it_wakes_when_its_time_comes(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.suspend(run.run_id, run.fence, inbox_seen=0, until=await store.now() + timedelta(minutes=5))
        assert await claim(store) == []
        await store.set_clock_offset(timedelta(minutes=6))
        assert [each.run_id for each in await claim(store)] == [run.run_id]

    async def test_a_signal_wakes_it_at_once(self, store: AnyStore) -> None:
        run = await claimed(store, key="thread")
        await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)
        outcome = await accept(store)
        assert (outcome.run_id, outcome.started) == (run.run_id, False)
        assert [each.run_id for each in await claim(store)] == [run.run_id]

    async def test_it_does_not_sleep_past_a_signal_it_has_not_seen(self, store: AnyStore) -> None:
        run = await claimed(store, key="thread")
        await accept(store)
        assert not await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)

    async def test_a_stale_owner_cannot_suspend(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.release("A", held=[])
        await claim(store, "B")
        assert not await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)


class TestSignalWithStart:
    async def test_the_first_message_starts_a_run_and_the_next_joins_it(self, store: AnyStore) -> None:
        first, second = await accept(store), await accept(store, "m2")
        assert (first.started, first.seq, second.started, second.seq) == (True, 1, False, 2)
        assert first.run_id == second.run_id

    async def test_a_copy_changes_nothing(self, store: AnyStore) -> None:
        await accept(store)
        copy = await accept(store)
        assert (copy.duplicate, copy.run_id) == (True, None)
        assert len(await store.runs(tenant="T1")) == 1

    async def test_a_copy_is_known_after_its_run_has_ended(self, store: AnyStore) -> None:
        await accept(store)
        run = (await claim(store))[0]
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,), done=True, inbox_seen=1))
        assert (await accept(store)).duplicate

    async def test_a_copy_writes_no_rows(self, store: AnyStore) -> None:
        for number in range(2):
            await store.signal_with_start(
                a_run(key="thread"),
                name="message",
                dedup_key="m",
                payload=None,
                writes=[Insert(NOTES, {"tenant": "T1", "id": str(number)})],
            )
        assert [row["id"] for row in await store.read(Select(NOTES, {"tenant": "T1"}))] == ["0"]

    async def test_the_same_key_and_message_of_two_tenants_do_not_meet(self, store: AnyStore) -> None:
        one, two = await accept(store), await accept(store, tenant="T2")
        assert one.run_id != two.run_id
        assert not two.duplicate

    async def test_racing_messages_start_one_run_and_are_all_kept(self, make_store: Callable[[], AnyStore]) -> None:
        stores = [make_store() for _ in range(3)]
        for each in stores:
            await each.open()
        outcomes = await asyncio.gather(*(accept(stores[n % 3], f"m{n}") for n in range(24)))
        assert len({outcome.run_id for outcome in outcomes}) == 1
        assert sorted(outcome.seq for outcome in outcomes) == list(range(1, 25))
        assert sum(outcome.started for outcome in outcomes) == 1
        for each in stores:
            await each.close()

    async def test_racing_copies_are_accepted_once(self, make_store: Callable[[], AnyStore]) -> None:
        stores = [make_store() for _ in range(3)]
        for each in stores:
            await each.open()
        outcomes = await asyncio.gather(*(accept(stores[n % 3]) for n in range(12)))
        assert sum(not outcome.duplicate for outcome in outcomes) == 1
        for each in stores:
            await each.close()


class TestSignal:
    async def test_another_tenants_run_cannot_be_signalled(self, store: AnyStore) -> None:
        run_id = await store.start(a_run())
        outcome = await store.signal(run_id, tenant="T2", name="x", dedup_key="d", payload=None)
        assert outcome.run_id is None
        assert await store.inbox(run_id) == []

    async def test_the_same_signal_again_is_a_duplicate(self, store: AnyStore) -> None:
        run_id = await store.start(a_run())
        await store.signal(run_id, tenant="T1", name="x", dedup_key="d", payload=None)
        assert (await store.signal(run_id, tenant="T1", name="x", dedup_key="d", payload=None)).duplicate

    async def test_an_ended_run_takes_none(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True))
        outcome = await store.signal(run.run_id, tenant="T1", name="x", dedup_key="d", payload=None)
        assert (outcome.run_id, outcome.duplicate) == (None, False)

    async def test_what_a_signal_said_is_known_after_it_was_used(self, store: AnyStore) -> None:
        await accept(store)
        run = (await claim(store))[0]
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,)))
        assert await store.signal_payload(run.run_id, "m1") == b'"hi"'
        assert await store.signal_payload(run.run_id, "m2") is None


class TestEnd:
    async def test_unread_signals_go_in_order_to_a_successor(self, store: AnyStore) -> None:
        for number in range(3):
            await accept(store, f"m{number}")
        run = (await claim(store))[0]
        await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,)))
        successor = new_id()
        outcome = await store.end(
            run.run_id, run.fence, RunState.FAILED, inbox_seen=3, successor_id=successor, error={"type": "X"}
        )
        assert (outcome.ended, outcome.successor, outcome.carried) == (True, successor, 2)
        assert [(each.seq, each.dedup_key, each.carried) for each in await store.inbox(successor)] == [
            (1, "m1", 1),
            (2, "m2", 1),
        ]
        ended, next_run = await store.run(run.run_id), await store.run(successor)
        assert ended is not None
        assert next_run is not None
        assert (ended.state, ended.error, next_run.state, next_run.inbox_seq) == (
            RunState.FAILED,
            {"type": "X"},
            RunState.READY,
            2,
        )

    async def test_a_signal_carried_before_becomes_a_dead_letter(self, store: AnyStore) -> None:
        await accept(store)
        run = (await claim(store))[0]
        await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
        second = (await claim(store))[0]
        outcome = await store.end(second.run_id, second.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
        assert (outcome.successor, outcome.carried) == (None, 0)
        assert [
            (each.key, each.signal.dedup_key, each.signal.payload) for each in await store.dead_signals(tenant="T1")
        ] == [("thread", "m1", b'"hi"')]
        assert await store.dead_signals(tenant="T2") == []

    async def test_it_does_not_pass_a_signal_it_has_not_seen(self, store: AnyStore) -> None:
        await accept(store)
        run = (await claim(store))[0]
        await accept(store, "m2")
        assert not (await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())).ended

    async def test_a_stale_owner_cannot_end(self, store: AnyStore) -> None:
        run = await claimed(store)
        await store.release("A", held=[])
        await claim(store, "B")
        assert not (await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id())).ended

    async def test_a_lost_reply_is_safe(self, store: AnyStore) -> None:
        run = await claimed(store)
        for _ in range(2):
            assert (
                await store.end(run.run_id, run.fence, RunState.CANCELLED, inbox_seen=0, successor_id=new_id())
            ).ended

    async def test_the_engines_own_signals_start_no_successor(self, store: AnyStore) -> None:
        run = await claimed(store, key="thread")
        await store.signal(run.run_id, tenant="T1", name="$cancel", dedup_key="c", payload=None)
        outcome = await store.end(run.run_id, run.fence, RunState.CANCELLED, inbox_seen=1, successor_id=new_id())
        assert (outcome.ended, outcome.successor) == (True, None)

    async def test_a_failed_child_wakes_its_parent(self, store: AnyStore) -> None:
        parent = await claimed(store, key="thread")
        child = a_run(parent_id=parent.run_id, parent_path="a")
        await store.step(parent.run_id, parent.fence, StepBatch((ok("a"),), children=(child,), done=True))
        (running,) = await claim(store, "B")
        await store.end(child.run_id, running.fence, RunState.FAILED, inbox_seen=0, successor_id=new_id())
        (live,) = await store.runs(tenant="T1", key="thread", states=[RunState.READY])
        assert [each.name for each in await store.inbox(live.run_id)] == ["task"]


class TestWorkers:
    async def test_a_dead_workers_runs_are_freed_after_its_lease(self, store: AnyStore) -> None:
        run = await claimed(store)
        assert await store.reap() == ([], [])
        await store.set_clock_offset(timedelta(minutes=5))
        assert await store.reap() == ([run.run_id], [])
        assert [each.run_id for each in await claim(store, "B")] == [run.run_id]

    async def test_a_reaped_worker_cannot_beat_again(self, store: AnyStore) -> None:
        await claimed(store)
        assert await store.beat("A", lease=timedelta(seconds=9))
        await store.set_clock_offset(timedelta(minutes=5))
        await store.reap()
        assert not await store.beat("A", lease=timedelta(seconds=9))

    async def test_a_beating_worker_keeps_its_runs(self, store: AnyStore) -> None:
        await claimed(store)
        await store.set_clock_offset(timedelta(seconds=25))
        await store.beat("A", lease=timedelta(seconds=30))
        await store.set_clock_offset(timedelta(seconds=50))
        assert await store.reap() == ([], [])

    async def test_a_run_out_of_attempts_is_handed_to_the_reaper_to_end(self, store: AnyStore) -> None:
        run = await claimed(store, max_attempts=1)
        await store.set_clock_offset(timedelta(minutes=5))
        freed, dead = await store.reap()
        assert freed == []
        assert [(each.run_id, each.fence) for each in dead] == [(run.run_id, run.fence + 1)]
        assert (await store.end(run.run_id, dead[0].fence, RunState.DEAD, inbox_seen=0, successor_id=new_id())).ended

    async def test_release_gives_back_only_what_is_not_held_and_counts_as_no_attempt(self, store: AnyStore) -> None:
        for _ in range(2):
            await store.start(a_run())
        held, lost = await claim(store, limit=2)
        assert await store.release("A", held=[held.run_id]) == [lost.run_id]
        (again,) = await claim(store, "B")
        assert (again.run_id, again.attempts, again.fence) == (lost.run_id, 1, 3)

    async def test_a_run_that_breaks_its_worker_counts_its_attempts_until_it_is_dead(self, store: AnyStore) -> None:
        run = await claimed(store, max_attempts=2)
        await store.abandon("A", run.run_id, delay=timedelta(seconds=30))
        assert await claim(store) == []
        await store.set_clock_offset(timedelta(seconds=31))
        await store.beat("A", lease=timedelta(minutes=10))
        (again,) = await claim(store, lease_s=600)
        assert again.attempts == 2
        await store.abandon("A", run.run_id, delay=timedelta(seconds=30))
        freed, dead = await store.reap()
        assert (freed, [each.run_id for each in dead]) == ([], [run.run_id])

    async def test_a_worker_that_was_reaped_claims_nothing(self, store: AnyStore) -> None:
        await claimed(store)
        await store.start(a_run())
        await store.set_clock_offset(timedelta(minutes=5))
        await store.reap()
        assert await store.claim("A", queues=["default"], workflows=WORKFLOWS, limit=5) == []


class TestApprovals:
    async def ask(self, store: AnyStore, approval_id: str = "a1", *, minutes: int = 60) -> None:
        values = {"tenant": "T1", "id": approval_id, "workflow": "w", "key": "thread", "body": {"tool": "x"}}
        await store.write(Insert(APPROVALS, {**values, "expires_at": await store.now() + timedelta(minutes=minutes)}))

    async def decide(self, store: AnyStore, decision: str = "approved", **changes: Any) -> tuple[bool, str | None]:
        values = {
            "tenant": "T1",
            "approval_id": "a1",
            "by": "U1",
            "reason": None,
            "successor_id": new_id(),
            "version": "1",
        }
        return await store.decide(decision=decision, **{**values, **changes})

    async def test_a_decision_wakes_the_thread_in_the_same_commit(self, store: AnyStore) -> None:
        await self.ask(store)
        decided, run_id = await self.decide(store)
        assert decided
        assert run_id is not None
        assert [each.name for each in await store.inbox(run_id)] == ["approval"]
        (row,) = await store.read(Select(APPROVALS, {"tenant": "T1", "id": "a1"}))
        assert (row["state"], row["by_user"]) == ("approved", "U1")

    async def test_the_first_answer_wins(self, store: AnyStore) -> None:
        await self.ask(store)
        answers = await asyncio.gather(self.decide(store), self.decide(store, "denied"), self.decide(store))
        assert sum(decided for decided, _ in answers) == 1

    async def test_an_expired_one_cannot_be_approved_but_can_expire(self, store: AnyStore) -> None:
        await self.ask(store, minutes=5)
        assert not (await self.decide(store, "expired"))[0]
        await store.set_clock_offset(timedelta(minutes=6))
        assert await store.expired_approvals() == [("T1", "a1", "w")]
        assert not (await self.decide(store))[0]
        assert (await self.decide(store, "expired"))[0]
        assert await store.expired_approvals() == []

    async def test_another_tenant_cannot_decide(self, store: AnyStore) -> None:
        await self.ask(store)
        assert not (await self.decide(store, tenant="T2"))[0]


class TestSchedules:
    async def weekly(self, store: AnyStore) -> Schedule:
        entry = Schedule(
            "T1",
            "weekly",
            "w",
            "1",
            "0 9 * * 1",
            "Europe/Berlin",
            await store.now() - timedelta(seconds=1),
            input=b"{}",
        )
        await store.put_schedule(entry)
        return (await store.schedules(tenant="T1"))[0]

    async def test_two_clocks_fire_once(self, make_store: Callable[[], AnyStore]) -> None:
        stores = [make_store(), make_store()]
        for each in stores:
            await each.open()
        entry = await self.weekly(stores[0])
        following = entry.next_at + timedelta(days=7)
        fired = await asyncio.gather(
            *(each.tick(entry, next_at=following, run=a_run(input=entry.input)) for each in stores * 3)
        )
        assert sum(fired) == 1
        (after,) = await stores[0].schedules(tenant="T1")
        assert (after.next_at, after.last_at) == (following, entry.next_at)
        assert len(await stores[0].runs(tenant="T1")) == 1
        for each in stores:
            await each.close()

    async def test_due_ones_are_listed_and_paused_ones_are_not(self, store: AnyStore) -> None:
        entry = await self.weekly(store)
        assert [each.name for each in await store.schedules(due=True)] == ["weekly"]
        await store.put_schedule(Schedule("T1", "weekly", "w", "1", entry.spec, entry.tz, entry.next_at, paused=True))
        assert await store.schedules(due=True) == []

    async def test_one_can_be_deleted_by_its_own_tenant_only(self, store: AnyStore) -> None:
        await self.weekly(store)
        assert not await store.delete_schedule(tenant="T2", name="weekly")
        assert await store.delete_schedule(tenant="T1", name="weekly")


class TestRows:
    async def test_every_query_must_name_a_tenant(self) -> None:
        for make in (
            lambda: Select(NOTES, {"id": "x"}),
            lambda: Insert(NOTES, {"id": "x"}),
            lambda: Update(NOTES, {}, {"n": 1}),
            lambda: Delete(NOTES, {"tenant": None}),
        ):
            with pytest.raises(ValueError, match="tenant"):
                make()

    async def test_a_column_that_does_not_exist_is_named(self) -> None:
        with pytest.raises(ValueError, match="notes has no column 'nope'"):
            Select(NOTES, {"tenant": "T1", "nope": 1})

    async def test_conditions_order_and_limit(self, store: AnyStore) -> None:
        at = datetime(2026, 11, 1, tzinfo=UTC)
        await store.write(
            *(Insert(NOTES, {"tenant": "T1", "id": str(n), "n": n, "at": at + timedelta(days=n)}) for n in range(5))
        )
        query = Select(
            NOTES, {"tenant": "T1", "n": Is(">=", 1), "at": Is("<", at + timedelta(days=4))}, order=("-n",), limit=2
        )
        assert [(row["n"], row["at"]) for row in await store.read(query)] == [
            (3, at + timedelta(days=3)),
            (2, at + timedelta(days=2)),
        ]
        assert [
            row["n"] for row in await store.read(Select(NOTES, {"tenant": "T1", "n": Is("in", [0, 4])}, order=("n",)))
        ] == [0, 4]
        assert await store.read(Select(NOTES, {"tenant": "T1", "n": Is("in", [])})) == []
        assert len(await store.read(Select(NOTES, {"tenant": "T1", "body": None}))) == 5
        assert await store.read(Select(NOTES, {"tenant": "T1", "body": Is("!=", None)})) == []

    async def test_conflicts_do_nothing_replace_or_fail(self, store: AnyStore) -> None:
        row = {"tenant": "T1", "id": "x", "n": 1}
        await store.write(Insert(NOTES, row))
        assert await store.write(Insert(NOTES, {**row, "n": 2})) == 0
        await store.write(Insert(NOTES, {**row, "n": 3}, on_conflict="replace"))
        assert (await store.read(Select(NOTES, {"tenant": "T1"})))[0]["n"] == 3
        with pytest.raises(Exception, match=r"(?i)unique"):
            await store.write(Insert(NOTES, {**row, "n": 4}, on_conflict="fail"))

    async def test_several_writes_are_one_transaction(self, store: AnyStore) -> None:
        with pytest.raises(Exception, match=r"(?i)unique"):
            await store.write(
                Insert(NOTES, {"tenant": "T1", "id": "x"}),
                Insert(NOTES, {"tenant": "T1", "id": "x"}, on_conflict="fail"),
            )
        assert await store.read(Select(NOTES, {"tenant": "T1"})) == []

    async def test_text_is_data_never_sql(self, store: AnyStore) -> None:
        text = "'; drop table notes; --"
        await store.write(Insert(NOTES, {"tenant": text, "id": text, "body": {"k": "\u0000\U0001f600"}}))
        (row,) = await store.read(Select(NOTES, {"tenant": text}))
        assert (row["id"], row["body"]) == (text, {"k": "\u0000\U0001f600"})


class TestLife:
    async def test_data_of_another_schema_is_refused_with_what_to_do(
        self, make_store: Callable[[], AnyStore], backend: str
    ) -> None:
        if backend == "memory":
            return  # memory has no older data
        first = make_store()
        await first.open()
        await first.close()
        other = make_store()
        wider = replace(NOTES, columns=(*NOTES.columns, Column("more", "text")))
        other._schemas = (*other._schemas[:-1], *schemas_of(wider))
        with pytest.raises(SchemaError, match="reset"):
            await other.open()
        await other.close()

    async def test_a_closed_store_says_so(self, make_store: Callable[[], AnyStore]) -> None:
        store = make_store()
        await store.open()
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await store.ping()

    async def test_runs_are_listed_newest_first_by_tenant_and_paged(self, store: AnyStore) -> None:
        ids = sorted([await store.start(a_run(run_id=f"00{n}")) for n in range(5)], reverse=True)
        await store.start(a_run(tenant="T2"))
        page = await store.runs(tenant="T1", limit=3)
        assert [run.run_id for run in page] == ids[:3]
        assert [run.run_id for run in await store.runs(tenant="T1", limit=3, before=page[-1].run_id)] == ids[3:]
        assert await store.run(ids[0], tenant="T2") is None
