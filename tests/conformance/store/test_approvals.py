"""Approvals: decided once."""

import asyncio
from datetime import timedelta
from typing import Any

from tests.conformance.conftest import AnyStore
from tests.conformance.store.acts import new_id
from workflows.storage import Insert, Select
from workflows.storage.tables import APPROVALS


async def ask(store: AnyStore, approval_id: str = "a1", *, minutes: int = 60) -> None:
    values = {"tenant": "T1", "id": approval_id, "workflow": "w", "key": "thread", "body": {"tool": "x"}}
    await store.write(Insert(APPROVALS, {**values, "expires_at": await store.now() + timedelta(minutes=minutes)}))


async def decide(store: AnyStore, decision: str = "approved", **changes: Any) -> tuple[bool, str | None]:
    values = {
        "tenant": "T1",
        "approval_id": "a1",
        "by": "U1",
        "reason": None,
        "successor_id": new_id(),
        "version": "1",
    }
    return await store.decide(decision=decision, **{**values, **changes})


async def test_a_decision_wakes_the_thread_in_the_same_commit(store: AnyStore) -> None:
    await ask(store)
    decided, run_id = await decide(store)
    assert decided
    assert run_id is not None
    assert [each.name for each in await store.inbox(run_id)] == ["approval"]
    (row,) = await store.read(Select(APPROVALS, {"tenant": "T1", "id": "a1"}))
    assert (row["state"], row["by_user"]) == ("approved", "U1")


async def test_the_first_answer_wins(store: AnyStore) -> None:
    await ask(store)
    answers = await asyncio.gather(decide(store), decide(store, "denied"), decide(store))
    assert sum(decided for decided, _ in answers) == 1


async def test_an_expired_one_cannot_be_approved_but_can_expire(store: AnyStore) -> None:
    await ask(store, minutes=5)
    assert not (await decide(store, "expired"))[0]
    await store.set_clock_offset(timedelta(minutes=6))
    assert await store.expired_approvals() == [("T1", "a1", "w")]
    assert not (await decide(store))[0]
    assert (await decide(store, "expired"))[0]
    assert await store.expired_approvals() == []


async def test_another_tenant_cannot_decide(store: AnyStore) -> None:
    await ask(store)
    assert not (await decide(store, tenant="T2"))[0]
