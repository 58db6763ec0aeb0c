"""Large payloads: kept apart once per tenant, and nobody notices."""

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import a_run, accept, claim, claimed, new_id, ok
from workflows.errors import BlobMissingError
from workflows.storage import Delete, Insert, Select, Store
from workflows.storage.base import Firing, FiringStatus, Fork, NewRun, RunRow, RunState, Schedule, StepBatch
from workflows.storage.blobs import LIMIT
from workflows.storage.tables import APPROVALS, BLOBS, RUNS, STEPS

LARGE = b'"' + b"x" * LIMIT + b'"'


async def blobs(store: AnyStore, tenant: str = "T1") -> list[bytes]:
    return [row["body"] for row in await store.read(Select(BLOBS, {"tenant": tenant}))]


async def lose(store: AnyStore, tenant: str = "T1") -> None:
    """What a broken backup may look like."""
    await store.write(Delete(BLOBS, {"tenant": tenant}))


async def found(store: AnyStore, run_id: str) -> RunRow:
    run = await store.run(run_id)
    assert run is not None
    return run


async def through_start_and_run(store: AnyStore, value: bytes) -> Any:
    return (await found(store, await store.start(a_run(input=value)))).input


async def through_start_owned(store: AnyStore, value: bytes) -> Any:
    await store.register("A", host="h", deployment="d", lease=timedelta(seconds=30))
    started = await store.start_owned(a_run(input=value, owner="A"))
    assert started.claimed
    return (await found(store, started.run_id)).input


async def through_claim(store: AnyStore, value: bytes) -> Any:
    return (await claimed(store, input=value)).input


async def through_reap(store: AnyStore, value: bytes) -> Any:
    await claimed(store, input=value, max_attempts=1)
    await store.set_clock_offset(timedelta(minutes=5))
    (dead,) = (await store.reap()).dead
    return dead.input


async def through_step_and_load(store: AnyStore, value: bytes) -> Any:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a", None), ok("b", value), ok("c", b"1"))))
    return [record.output for record in await store.load(run.run_id)][1]


async def through_done(store: AnyStore, value: bytes) -> Any:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), done=True, output=value))
    return (await found(store, run.run_id)).output


async def through_a_child(store: AnyStore, value: bytes) -> Any:
    run = await claimed(store)
    child = a_run(parent_id=run.run_id, parent_path="a", input=value)
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), children=(child,)))
    return (await found(store, child.run_id)).input


async def through_end(store: AnyStore, value: bytes) -> Any:
    run = await claimed(store)
    await store.end(run.run_id, run.fence, RunState.DONE, inbox_seen=0, successor_id=new_id(), output=value)
    return (await found(store, run.run_id)).output


async def through_signal_with_start_and_inbox(store: AnyStore, value: bytes) -> Any:
    outcome = await store.signal_with_start(a_run(key="k"), name="m", dedup_key="d", payload=value)
    assert outcome.run_id is not None
    return (await store.inbox(outcome.run_id))[0].payload


async def through_the_input_of_signal_with_start(store: AnyStore, value: bytes) -> Any:
    run = a_run(key="k", input=value)
    await store.signal_with_start(run, name="m", dedup_key="d", payload=None)
    return (await found(store, run.run_id)).input


async def through_signal_and_signal_payload(store: AnyStore, value: bytes) -> Any:
    run_id = await store.start(a_run())
    await store.signal(run_id, tenant="T1", name="m", dedup_key="d", payload=value)
    return await store.signal_payload(run_id, "d")


async def through_a_successor(store: AnyStore, value: bytes) -> Any:
    await store.signal_with_start(a_run(key="k"), name="m", dedup_key="d", payload=value)
    (run,) = await claim(store)
    successor = new_id()
    await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=successor)
    return (await store.inbox(successor))[0].payload


async def through_dead_signals(store: AnyStore, value: bytes) -> Any:
    run = await claimed(store)
    await store.signal(run.run_id, tenant="T1", name="m", dedup_key="d", payload=value)
    await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    return (await store.dead_signals(tenant="T1"))[0].signal.payload


async def through_one_dead_signal(store: AnyStore, value: bytes) -> Any:
    await through_dead_signals(store, value)
    (letter,) = await store.dead_signals(tenant="T1")
    found = await store.dead_signal(letter.id, tenant="T1")
    assert found is not None
    return found.signal.payload


async def through_a_decision(store: AnyStore, value: bytes) -> Any:
    row: dict[str, Any] = {
        "tenant": "T1",
        "id": "a1",
        "workflow": "w",
        "key": "k",
        "body": {},
        "expires_at": await store.now() + timedelta(days=1),
    }
    await store.write(Insert(APPROVALS, row))
    outcome = await store.decide("a1", a_run(input=value), decision="approved", by="U1", reason=None)
    return (await found(store, outcome.run_id or "")).input


async def through_a_redriven_letter(store: AnyStore, value: bytes) -> Any:
    await store.signal_with_start(a_run(key="k"), name="m", dedup_key="d", payload=value)
    for _ in range(2):
        (run,) = await claim(store)
        await store.end(run.run_id, run.fence, RunState.FAILED, inbox_seen=1, successor_id=new_id())
    (letter,) = await store.dead_signals(tenant="T1")
    outcome = await store.redrive_signal(letter.id, a_run(key="k"))
    assert outcome is not None
    assert outcome.run_id is not None
    return (await store.inbox(outcome.run_id))[0].payload


async def through_put_schedule_and_schedules(store: AnyStore, value: bytes) -> Any:
    await store.put_schedule(Schedule("T1", "s", "w", "1", "0 9 * * 1", "UTC", await store.now(), input=value))
    return (await store.schedules(tenant="T1"))[0].input


async def scheduled(store: AnyStore, value: bytes) -> tuple[Schedule, Firing, NewRun]:
    entry = Schedule("T1", "s", "w", "1", "0 9 * * 1", "UTC", await store.now(), input=value)
    stored = await store.put_schedule(entry)
    assert stored.input == value
    assert await store.schedule(tenant="T1", name="s") == stored
    run = a_run(input=value)
    return stored, Firing("T1", "s", run.run_id, entry.next_at, status=FiringStatus.QUEUED), run


async def through_tick(store: AnyStore, value: bytes) -> Any:
    entry, firing, run = await scheduled(store, value)
    moved = replace(entry, next_at=entry.next_at + timedelta(days=7))
    assert await store.tick(entry, moved=moved, firing=firing, run=run) is FiringStatus.STARTED
    return (await found(store, run.run_id)).input


async def through_fire_now(store: AnyStore, value: bytes) -> Any:
    _, firing, run = await scheduled(store, value)
    assert await store.fire_now(firing, run) is FiringStatus.STARTED
    return (await found(store, run.run_id)).input


async def through_start_firing(store: AnyStore, value: bytes) -> Any:
    entry, firing, run = await scheduled(store, value)
    moved = replace(entry, next_at=entry.next_at + timedelta(days=7))
    assert await store.tick(entry, moved=moved, firing=firing, run=None) is FiringStatus.QUEUED
    assert await store.start_firing(firing, run)
    return (await found(store, run.run_id)).input


async def forked(store: AnyStore, value: bytes) -> Fork:
    run = await claimed(store, input=b"1")
    await store.step(run.run_id, run.fence, StepBatch((ok("a", value),), done=True))
    fork = Fork(new_id(), run.run_id, "T1", cut=2, input=value, records=(ok("b", value),))
    assert await store.fork(fork)
    return fork


async def through_a_forks_input(store: AnyStore, value: bytes) -> Any:
    return (await found(store, (await forked(store, value)).run_id)).input


async def through_a_forks_records(store: AnyStore, value: bytes) -> Any:
    first, second = await store.load((await forked(store, value)).run_id)
    assert first.output == second.output
    return first.output


async def through_write_and_read(store: AnyStore, value: bytes) -> Any:
    await store.write(Insert(RUNS, {"run_id": "r", "tenant": "T1", "workflow": "w", "input": value}))
    return (await store.read(Select(RUNS, {"tenant": "T1"})))[0]["input"]


async def through_a_rider(store: AnyStore, value: bytes) -> Any:
    values = {"run_id": "r", "tenant": "T1", "workflow": "w", "input": value}
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a"),), writes=(Insert(RUNS, values),)))
    return (await found(store, "r")).input


async def through_read_of_records(store: AnyStore, value: bytes) -> Any:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("a", value),)))
    return (await store.read(Select(STEPS, {"run_id": run.run_id})))[0]["output"]


ROUTES: dict[str, Callable[[AnyStore, bytes], Awaitable[Any]]] = {
    name.removeprefix("through_"): each for name, each in globals().items() if name.startswith("through_")
}
NO_VALUES = {"runs", "totals"}
"""A list leaves large values behind, since each run has its own; sums are of whole numbers."""


def test_every_operation_that_carries_values_is_among_the_routes() -> None:
    carrying = re.compile(r"\b(bytes|NewRun|RunRow|StepBatch|Record|Signal|DeadSignal|Schedule|Fork|Write|Select)\b")
    acts: tuple[Callable[..., Any], ...] = (*ROUTES.values(), forked, scheduled, found, claim)
    sources = "".join(inspect.getsource(each) for each in acts)
    for name, operation in inspect.getmembers(Store, inspect.isfunction):
        if carrying.search(str(inspect.signature(operation))) and name not in NO_VALUES:
            assert f"store.{name}(" in sources, f"no route goes through {name}"


@pytest.mark.parametrize("route", ROUTES)
async def test_a_large_value_comes_back_as_it_was_and_is_kept_once(store: AnyStore, route: str) -> None:
    assert await ROUTES[route](store, LARGE) == LARGE
    assert await blobs(store) == [LARGE]


@pytest.mark.parametrize("route", ROUTES)
async def test_a_small_value_stays_in_its_row(store: AnyStore, route: str) -> None:
    small = LARGE[:LIMIT]
    assert await ROUTES[route](store, small) == small
    assert await blobs(store) == []


@pytest.mark.parametrize("route", ROUTES)
async def test_a_value_that_looks_like_a_reference_is_none(store: AnyStore, route: str) -> None:
    """Else whoever knows a digest could read what is kept under it."""
    await store.start(a_run(input=LARGE, tenant="T2", workflow="other"))
    (row,) = await store.runs(tenant="T2")
    reference = row.input
    assert reference is not None
    assert len(reference) < 100
    assert await ROUTES[route](store, reference) == reference


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x00" * (LIMIT + 1)], ids=("empty", "nul", "nuls"))
async def test_any_bytes_come_back(store: AnyStore, value: bytes) -> None:
    assert await through_step_and_load(store, value) == value


async def test_ten_megabytes_are_stored_and_come_back(store: AnyStore) -> None:
    value = b'"' + b"\xc3\xa4" * (5 * 1024 * 1024) + b'"'
    run = await claimed(store, input=value)
    assert run.input == value
    await store.step(
        run.run_id, run.fence, StepBatch(tuple(ok(path, value) for path in "abc"), done=True, output=value)
    )
    assert [record.output for record in await store.load(run.run_id)] == [value] * 3
    assert await blobs(store) == [value]


async def test_tenants_with_the_same_value_have_one_each(store: AnyStore) -> None:
    for tenant in ("T1", "T1", "T2"):
        await store.start(a_run(tenant=tenant, input=LARGE))
    assert (await blobs(store, "T1"), await blobs(store, "T2")) == ([LARGE], [LARGE])
    await lose(store, "T1")
    (theirs,) = await store.runs(tenant="T2")
    assert (await found(store, theirs.run_id)).input == LARGE


async def test_what_is_refused_keeps_nothing(store: AnyStore) -> None:
    run = await claimed(store)
    await store.release("A", held=[])
    await claim(store, "B")
    await store.step(run.run_id, run.fence, StepBatch((ok("a", LARGE),)))
    await store.step(run.run_id, run.fence, StepBatch((), done=True, output=LARGE))
    await store.end(run.run_id, run.fence, RunState.DONE, inbox_seen=0, successor_id=new_id(), output=LARGE)
    await store.signal(run.run_id, tenant="T2", name="m", dedup_key="d", payload=LARGE)
    await accept(store)
    await store.signal_with_start(a_run(key="thread"), name="message", dedup_key="m1", payload=LARGE)
    assert await blobs(store) == []


async def test_claims_of_several_tenants_bring_each_its_own(store: AnyStore) -> None:
    for tenant in ("T1", "T2"):
        await store.start(a_run(tenant=tenant, input=LARGE + tenant.encode()))
    assert {(run.tenant, run.input) for run in await claim(store, limit=5)} == {
        (tenant, LARGE + tenant.encode()) for tenant in ("T1", "T2")
    }


async def test_a_record_whose_value_is_gone_is_named(store: AnyStore) -> None:
    run = await claimed(store)
    await store.step(run.run_id, run.fence, StepBatch((ok("small"), ok("each[3]", LARGE))))
    await lose(store)
    with pytest.raises(BlobMissingError, match=rf"the output of each\[3\] in run {run.run_id} is gone"):
        await store.load(run.run_id)


async def test_a_run_whose_input_is_gone_is_named_and_keeps_no_other_from_being_claimed(store: AnyStore) -> None:
    lost = await store.start(a_run(input=LARGE))
    await store.start(a_run(input=b"1"))
    await lose(store)
    assert {run.run_id == lost for run in await claim(store, limit=2)} == {True, False}
    with pytest.raises(BlobMissingError, match=f"the input of run {lost}"):
        await store.run(lost)


async def test_a_signal_whose_payload_is_gone_is_named(store: AnyStore) -> None:
    outcome = await store.signal_with_start(a_run(key="k"), name="m", dedup_key="d", payload=LARGE)
    assert outcome.run_id is not None
    await lose(store)
    with pytest.raises(BlobMissingError, match=rf"the payload of the signal 1 \(m\) of run {outcome.run_id}"):
        await store.inbox(outcome.run_id)
