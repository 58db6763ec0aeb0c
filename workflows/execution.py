"""The execution seam: where runs live and what drives them. Storage and workers of our own are the default; Temporal is another."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import structlog

from workflows.pubsub.base import PubSub, PubSubUnavailableError
from workflows.registry import Registry
from workflows.storage.base import Fork, NewRun, Record, RunRow, RunState, Signal, SignalOutcome, Store
from workflows.storage.schema import Write
from workflows.worker import Worker


class Runs(Protocol):
    """The operations on runs that an execution offers; their outcomes are described in `storage.base.Store`, which has them all."""

    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str: ...

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome: ...

    async def signal(
        self, run_id: str, *, tenant: str, name: str, dedup_key: str, payload: bytes | None
    ) -> SignalOutcome: ...

    async def signal_payload(self, run_id: str, dedup_key: str) -> bytes | None: ...

    async def inbox(self, run_id: str) -> list[Signal]: ...

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None: ...

    async def runs(
        self,
        *,
        tenant: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]: ...

    async def load(self, run_id: str) -> list[Record]: ...

    async def fork(self, fork: Fork) -> bool: ...

    async def redrive(self, run_id: str, *, tenant: str) -> tuple[bool, str | None]: ...


class Execution(Protocol):
    """Carries runs out. `runs` may be used once it is open."""

    @property
    def runs(self) -> Runs: ...

    async def open(self, workflows: Registry) -> None:
        """Connect, and begin to work runs of `workflows` if this process is to. May be called again after it raised."""
        ...

    async def close(self) -> None:
        """Hand over every run that is worked here, and disconnect."""
        ...

    def wake(self) -> None:
        """Something is due: look now. Only makes it quick."""
        ...


class StoreExecution:
    """Runs in the store, worked by this process's worker (None: other processes work them)."""

    def __init__(self, store: Store, pubsub: PubSub, worker: Callable[[], Worker | None]) -> None:
        self.runs: Runs = store
        self._worker = worker
        self._pubsub = pubsub

    async def open(self, workflows: Registry) -> None:
        if (worker := self._worker()) is not None:
            await worker.register()  # from here on nothing raises, so that `open` can be called again after what does
            await self._listen(worker)
            worker.start()

    async def _listen(self, worker: Worker) -> None:
        handlers: tuple[tuple[str, Any, str | None], ...] = (
            ("wake", worker.woken, "workers"),
            ("control", worker.controlled, None),
        )
        for topic, handler, group in handlers:
            try:
                await self._pubsub.subscribe(topic, handler, group=group)
            except PubSubUnavailableError as error:
                structlog.get_logger().warning("pubsub_unavailable", topic=topic, error=str(error), fallback="polling")

    async def close(self) -> None:
        if (worker := self._worker()) is not None:
            await worker.stop()

    def wake(self) -> None:
        if (worker := self._worker()) is not None:
            worker.wake()
