"""Engines as processes would have them, for the tests of every backend."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from workflows import Engine, RunState, Workflow
from workflows.pubsub import MemoryPubSub
from workflows.storage import MemoryStore, Store
from workflows.storage.base import DeadSignal
from workflows.temporal import TemporalExecution

Boot = Callable[..., Any]
"""`async with boot(workflow, …) as engine`: an engine as one process would have it. Data outlives it."""


def booting(make_store: Callable[[], Store]) -> Boot:
    """A `Boot` over stores that `make_store` makes."""

    @asynccontextmanager
    async def booted(*workflows: Workflow[Any, Any], **options: Any) -> AsyncIterator[Engine]:
        engine = Engine(
            store=make_store(),
            workflows=workflows,
            **{"pubsub": MemoryPubSub(), "poll_s": 0.05, "lease_s": 2, **options},
        )
        await engine.open()
        try:
            yield engine
        finally:
            await _leave(engine)

    return booted


def booting_in_temporal(address: str, fleet: str) -> Boot:
    """A `Boot` over a Temporal server."""

    @asynccontextmanager
    async def booted(*workflows: Workflow[Any, Any], **options: Any) -> AsyncIterator[Engine]:
        own = {
            "worker": options.pop("worker", True),
            "heartbeat_s": max(options.pop("lease_s", 2), 1),  # Temporal rounds up to a second
            "grace_s": options.pop("grace_s", 5),
        }
        execution = TemporalExecution(address, fleet=fleet, identity="test", **own)
        engine = Engine(store=MemoryStore(), pubsub=MemoryPubSub(), workflows=workflows, execution=execution, **options)
        await engine.open()
        try:
            yield engine
        finally:
            await engine.close()

    return booted


async def _leave(engine: Engine) -> None:
    """Close all but a memory store, which is the data itself."""
    store = engine.store
    if type(store).__name__ == "MemoryStore":
        engine.store = _KeepOpen(store)
    await engine.close()


class _KeepOpen:
    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def close(self) -> None:
        return None


async def until(condition: Callable[[], Awaitable[Any]], *, timeout_s: float = 20, every_s: float = 0.01) -> Any:
    """Wait until `condition` returns something true."""
    async with asyncio.timeout(timeout_s):
        while not (found := await condition()):
            await asyncio.sleep(every_s)
        return found


async def in_state(engine: Engine, run_id: str, *states: RunState, tenant: str = "default") -> None:
    async def there() -> bool:
        row = await engine.execution.runs.run(run_id, tenant=tenant)
        return row is not None and row.state in states

    await until(there, every_s=0.05 if isinstance(engine.execution, TemporalExecution) else 0.01)


async def move_clock(engine: Engine, offset: timedelta) -> None:
    """Set the clock that durable times are read from this much ahead."""
    owner: Any = engine.execution if isinstance(engine.execution, TemporalExecution) else engine.store
    await owner.set_clock_offset(offset)


async def kill(engine: Engine) -> None:
    """As kill -9 would: no release, no last write. What it held is freed once its lease has run out."""
    if isinstance(engine.execution, TemporalExecution):
        assert engine.execution.activities is not None
        engine.execution.activities.die()
        await engine.execution.stop_polling()
        return
    worker = engine.worker
    assert worker is not None
    for task in [*worker._loops, *(task for _, task in worker._held.values())]:
        task.cancel()
    await asyncio.gather(*worker._loops, *(task for _, task in worker._held.values()), return_exceptions=True)
    engine.worker = None  # so that closing the engine releases nothing


async def leave(engine: Engine) -> None:
    """As a process does that is asked to end: it hands over what it works."""
    if isinstance(engine.execution, TemporalExecution):
        await engine.execution.stop_polling()
        return
    assert engine.worker is not None
    await engine.worker.stop()


async def idle(engine: Engine) -> bool:
    """Whether it carries out nothing."""
    if isinstance(engine.execution, TemporalExecution):
        return engine.execution.activities is None or not engine.execution.activities.busy
    return engine.worker is None or not engine.worker._held


async def dead_letters(engine: Engine, tenant: str) -> list[DeadSignal]:
    """The signals of a tenant that nobody will read."""
    owner: Any = engine.execution.runs if isinstance(engine.execution, TemporalExecution) else engine.store
    letters: list[DeadSignal] = await owner.dead_signals(tenant=tenant)
    return letters
