"""Signals: accepted once, and never slept past."""

import asyncio
from collections.abc import Callable

from tests.conformance.conftest import NOTES, AnyStore
from tests.conformance.store.acts import a_run, accept, claim, claimed, ok
from workflows.storage import Insert, Select
from workflows.storage.base import (
    StepBatch,
)


async def test_the_first_message_starts_a_run_and_the_next_joins_it(store: AnyStore) -> None:
    first, second = await accept(store), await accept(store, "m2")
    assert (first.started, first.seq, second.started, second.seq) == (True, 1, False, 2)
    assert first.run_id == second.run_id


async def test_a_copy_changes_nothing(store: AnyStore) -> None:
    await accept(store)
    copy = await accept(store)
    assert (copy.duplicate, copy.run_id) == (True, None)
    assert len(await store.runs(tenant="T1")) == 1


async def test_a_copy_is_known_after_its_run_has_ended(store: AnyStore) -> None:
    await accept(store)
    run = (await claim(store))[0]
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,), done=True, inbox_seen=1))
    assert (await accept(store)).duplicate


async def test_a_copy_writes_no_rows(store: AnyStore) -> None:
    for number in range(2):
        await store.signal_with_start(
            a_run(key="thread"),
            name="message",
            dedup_key="m",
            payload=None,
            writes=[Insert(NOTES, {"tenant": "T1", "id": str(number)})],
        )
    assert [row["id"] for row in await store.read(Select(NOTES, {"tenant": "T1"}))] == ["0"]


async def test_the_same_key_and_message_of_two_tenants_do_not_meet(store: AnyStore) -> None:
    one, two = await accept(store), await accept(store, tenant="T2")
    assert one.run_id != two.run_id
    assert not two.duplicate


async def test_racing_messages_start_one_run_and_are_all_kept(make_store: Callable[[], AnyStore]) -> None:
    stores = [make_store() for _ in range(3)]
    for each in stores:
        await each.open()
    outcomes = await asyncio.gather(*(accept(stores[n % 3], f"m{n}") for n in range(24)))
    assert len({outcome.run_id for outcome in outcomes}) == 1
    assert sorted(outcome.seq for outcome in outcomes) == list(range(1, 25))
    assert sum(outcome.started for outcome in outcomes) == 1
    for each in stores:
        await each.close()


async def test_racing_copies_are_accepted_once(make_store: Callable[[], AnyStore]) -> None:
    stores = [make_store() for _ in range(3)]
    for each in stores:
        await each.open()
    outcomes = await asyncio.gather(*(accept(stores[n % 3]) for n in range(12)))
    assert sum(not outcome.duplicate for outcome in outcomes) == 1
    for each in stores:
        await each.close()


async def test_another_tenants_run_cannot_be_signalled(store: AnyStore) -> None:
    run_id = await store.start(a_run())
    outcome = await store.signal(run_id, tenant="T2", name="x", dedup_key="d", payload=None)
    assert outcome.run_id is None
    assert await store.inbox(run_id) == []


async def test_the_same_signal_again_is_a_duplicate(store: AnyStore) -> None:
    run_id = await store.start(a_run())
    await store.signal(run_id, tenant="T1", name="x", dedup_key="d", payload=None)
    assert (await store.signal(run_id, tenant="T1", name="x", dedup_key="d", payload=None)).duplicate


async def test_an_ended_run_takes_none(store: AnyStore) -> None:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True))
    outcome = await store.signal(run.run_id, tenant="T1", name="x", dedup_key="d", payload=None)
    assert (outcome.run_id, outcome.duplicate) == (None, False)


async def test_what_a_signal_said_is_known_after_it_was_used(store: AnyStore) -> None:
    await accept(store)
    run = (await claim(store))[0]
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), consumed=(1,)))
    assert await store.signal_payload(run.run_id, "m1") == b'"hi"'
    assert await store.signal_payload(run.run_id, "m2") is None
