"""Dead letters: nothing lost, listed by pages, given back once, dropped for good."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import a_run, accept, claim, claimed, new_id, ok
from workflows.errors import InputError
from workflows.storage.base import DeadSignal, RunState, StepBatch


async def bury(store: AnyStore, *dedup_keys: str, key: str = "thread", tenant: str = "T1") -> list[DeadSignal]:
    """Messages that two runs in a row ended without reading, as dead letters, newest first."""
    for each in dedup_keys:
        await store.signal_with_start(
            a_run(key=key, tenant=tenant), name="message", dedup_key=each, payload=f'"{each}"'.encode()
        )
    for _ in range(2):
        (run,) = await claim(store, lease_s=10**8)
        await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=run.inbox_seq, successor_id=new_id())
    return await store.dead_signals(tenant=tenant)


async def test_a_letter_says_who_it_was_for_and_when_it_died(store: AnyStore) -> None:
    (letter,) = await bury(store, "m1")
    assert (letter.tenant, letter.workflow, letter.key, letter.signal.name) == ("T1", "w", "thread", "message")
    assert (letter.signal.dedup_key, letter.signal.payload, letter.signal.carried) == ("m1", b'"m1"', 1)
    assert abs(letter.died_at - await store.now()) < timedelta(minutes=1)


async def test_pages_are_newest_first_and_leave_none_out(store: AnyStore) -> None:
    for number in range(3):
        await store.set_clock_offset(timedelta(minutes=number))
        await bury(store, f"{number}a", f"{number}b", key=f"k{number}")
    every = [letter.signal.dedup_key for letter in await store.dead_signals(tenant="T1")]
    assert {key[0] for key in every[:2]} == {"2"}
    assert sorted(every) == ["0a", "0b", "1a", "1b", "2a", "2b"]
    pages, before = [], None
    while page := await store.dead_signals(tenant="T1", limit=4, before=before):
        pages.append([letter.signal.dedup_key for letter in page])
        before = page[-1].id
    assert [len(page) for page in pages] == [4, 2]
    assert [key for page in pages for key in page] == every


async def test_a_page_goes_on_after_a_letter_that_was_redriven_meanwhile(store: AnyStore) -> None:
    letters = await bury(store, "a", "b", "c")
    await store.drop_signal(letters[0].id, tenant="T1")
    rest = await store.dead_signals(tenant="T1", before=letters[0].id)
    assert [letter.id for letter in rest] == [letter.id for letter in letters[1:]]


async def test_a_letter_starts_a_run_with_it(store: AnyStore) -> None:
    (letter,) = await bury(store, "m1")
    run = a_run(key="thread", queue="tasks", priority=7)
    outcome = await store.redrive_signal(letter.id, run)
    assert outcome is not None
    assert (outcome.run_id, outcome.seq, outcome.started) == (run.run_id, 1, True)
    (signal,) = await store.inbox(run.run_id)
    assert (signal.name, signal.dedup_key, signal.payload, signal.carried) == ("message", "m1", b'"m1"', 0)
    assert signal.created_at == letter.signal.created_at
    row = await store.run(run.run_id)
    assert row is not None
    assert (row.queue, row.priority, row.state) == ("tasks", 7, RunState.READY)
    assert await store.dead_signals(tenant="T1") == []


async def test_a_letter_joins_the_live_run_of_its_key_and_wakes_it(store: AnyStore) -> None:
    (letter,) = await bury(store, "m1")
    run = await claimed(store, key="thread")
    assert await store.suspend(run.run_id, run.fence, inbox_seen=0, until=None)
    outcome = await store.redrive_signal(letter.id, a_run(key="thread"))
    assert outcome is not None
    assert (outcome.run_id, outcome.seq, outcome.started) == (run.run_id, 1, False)
    assert [each.run_id for each in await claim(store)] == [run.run_id]


async def test_it_can_be_carried_and_die_anew(store: AnyStore) -> None:
    (letter,) = await bury(store, "m1")
    await store.redrive_signal(letter.id, a_run(key="thread"))
    (run,) = await claim(store)
    outcome = await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    assert outcome.carried == 1
    (run,) = await claim(store)
    await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    assert [each.signal.dedup_key for each in await store.dead_signals(tenant="T1")] == ["m1"]


async def test_two_operators_at_once_give_it_back_once(make_store: Callable[[], AnyStore]) -> None:
    stores = [make_store(), make_store()]
    for each in stores:
        await each.open()
    (letter,) = await bury(stores[0], "m1")
    outcomes = await asyncio.gather(
        *(each.redrive_signal(letter.id, a_run(key="thread")) for each in stores * 3),
        *(each.drop_signal(letter.id, tenant="T1") for each in stores),
    )
    assert sum(bool(outcome) for outcome in outcomes) == 1
    runs = [run for run in await stores[0].runs(tenant="T1") if run.state is RunState.READY]
    assert len(runs) <= 1
    assert len(await stores[0].inbox(runs[0].run_id) if runs else [1]) == 1
    for each in stores:
        await each.close()


async def test_it_goes_only_to_its_own_tenant_workflow_and_key(store: AnyStore) -> None:
    (letter,) = await bury(store, "m1")
    for wrong in ({"tenant": "T2"}, {"workflow": "other"}, {"key": "elsewhere"}):
        assert await store.redrive_signal(letter.id, a_run(**{"key": "thread", **wrong})) is None
    assert not await store.drop_signal(letter.id, tenant="T2")
    assert [each.id for each in await store.dead_signals(tenant="T1")] == [letter.id]
    assert await store.dead_signals(tenant="T2", before=letter.id) == []


async def test_the_outside_event_stays_known_after_it_was_given_back(store: AnyStore) -> None:
    (letter,) = await bury(store, "m1")
    await store.redrive_signal(letter.id, a_run(key="thread"))
    assert (await accept(store, "m1")).duplicate


async def test_a_letter_of_a_run_without_a_key_can_only_be_dropped(store: AnyStore) -> None:
    run = await claimed(store)
    await store.signal(run.run_id, tenant="T1", name="m", dedup_key="d", payload=b"1")
    await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    (letter,) = await store.dead_signals(tenant="T1")
    assert letter.key is None
    assert await store.redrive_signal(letter.id, a_run()) is None
    assert await store.drop_signal(letter.id, tenant="T1")
    assert not await store.drop_signal(letter.id, tenant="T1")


async def test_a_signal_that_is_there_already_is_not_given_twice(store: AnyStore) -> None:
    """The live run has taken the same event: the letter goes, the run has it once."""
    (letter,) = await bury(store, "m1")
    run = await claimed(store, key="thread")
    await store.signal(run.run_id, tenant="T1", name="message", dedup_key="m1", payload=b"2")
    assert await store.redrive_signal(letter.id, a_run(key="thread")) is not None
    assert [each.payload for each in await store.inbox(run.run_id)] == [b"2"]
    (row,) = await store.runs(tenant="T1", states=[RunState.RUNNING])
    batch = StepBatch((ok("a"),), consumed=(1,), done=True, inbox_seen=row.inbox_seq)
    assert (await store.step(run.run_id, run.fence, batch)).recorded


@pytest.mark.parametrize(
    "text", ["", "x", "1.2", "a.1.r", "1.b.r", "1.2.", "1.1.\x00", "1.1.\ud800", f"{10**30}.1.r", f"1.{2**70}.r"]
)
async def test_what_is_no_id_is_refused(store: AnyStore, text: str) -> None:
    for refused in (
        store.redrive_signal(text, a_run(key="k")),
        store.drop_signal(text, tenant="T1"),
        store.dead_signal(text, tenant="T1"),
        store.dead_signals(tenant="T1", before=text),
    ):
        with pytest.raises(InputError, match="no id of a dead letter"):
            await refused


async def test_one_letter_is_found_by_its_tenant_alone(store: AnyStore) -> None:
    letters = await bury(store, "m1", "m2")
    assert [await store.dead_signal(each.id, tenant="T1") for each in letters] == letters
    assert await store.dead_signal(letters[0].id, tenant="T2") is None
    await store.drop_signal(letters[0].id, tenant="T1")
    assert await store.dead_signal(letters[0].id, tenant="T1") is None
