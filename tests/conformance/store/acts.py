"""What store tests do again and again: a run, a claim, a message."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from tests.conformance.conftest import AnyStore
from workflows.storage.base import NewRun, Record, RunRow, Status

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
