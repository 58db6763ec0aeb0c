"""Approvals: decided once."""

import asyncio
from datetime import timedelta
from typing import Any

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import a_run
from workflows.storage import Insert, Select
from workflows.storage.base import DecideOutcome
from workflows.storage.tables import APPROVALS


async def ask(store: AnyStore, approval_id: str = "a1", *, minutes: int = 60) -> None:
    values = {"tenant": "T1", "id": approval_id, "workflow": "w", "key": "thread", "body": {"tool": "x"}}
    await store.write(Insert(APPROVALS, {**values, "expires_at": await store.now() + timedelta(minutes=minutes)}))


async def decide(store: AnyStore, decision: str = "approved", **changes: Any) -> DecideOutcome:
    return await store.decide("a1", a_run(**changes), decision=decision, by="U1", reason=None)


async def test_a_decision_wakes_the_thread_in_the_same_commit(store: AnyStore) -> None:
    await ask(store)
    outcome = await decide(store)
    assert outcome.decided
    assert outcome.run_id is not None
    assert [each.name for each in await store.inbox(outcome.run_id)] == ["approval"]
    (row,) = await store.read(Select(APPROVALS, {"tenant": "T1", "id": "a1"}))
    assert (row["state"], row["by_user"]) == ("approved", "U1")


async def test_the_first_answer_wins(store: AnyStore) -> None:
    await ask(store)
    answers = await asyncio.gather(decide(store), decide(store, "denied"), decide(store))
    assert sum(answer.decided for answer in answers) == 1


async def test_an_expired_one_cannot_be_approved_but_can_expire(store: AnyStore) -> None:
    await ask(store, minutes=5)
    assert not (await decide(store, "expired")).decided
    await store.set_clock_offset(timedelta(minutes=6))
    assert await store.expired_approvals() == [("T1", "a1", "w")]
    assert not (await decide(store)).decided
    assert (await decide(store, "expired")).decided
    assert await store.expired_approvals() == []


async def test_another_tenant_cannot_decide(store: AnyStore) -> None:
    await ask(store)
    assert not (await decide(store, tenant="T2")).decided


async def test_the_run_it_begins_has_all_that_it_was_given(store: AnyStore) -> None:
    await ask(store)
    given: dict[str, Any] = {
        "queue": "gpu",
        "priority": 7,
        "trace_id": "t1",
        "deployment": "blue",
        "max_attempts": 9,
        "version": "3",
    }
    outcome = await decide(store, **given)
    assert outcome.queue == "gpu"
    row = await store.run(outcome.run_id or "")
    assert row is not None
    assert {name: getattr(row, name) for name in given} == given
    assert (row.workflow, row.key) == ("w", "thread")


async def test_it_says_the_queue_of_the_live_run_it_wakes(store: AnyStore) -> None:
    await ask(store)
    live = await store.start(a_run(key="thread", queue="gpu"))
    outcome = await decide(store, queue="slow")
    assert (outcome.run_id, outcome.queue) == (live, "gpu")
