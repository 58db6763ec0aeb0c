"""The execution seam: where runs live and what drives them. Storage and workers of our own are the default; Temporal is another."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from workflows.definition.registry import Registry
from workflows.pubsub import Bus
from workflows.pubsub.base import Event, PubSub, PubSubUnavailableError
from workflows.pubsub.hints import hint, wake_topic
from workflows.storage.base import (
    DeadSignal,
    Fork,
    NewRun,
    Record,
    RedriveOutcome,
    RunRow,
    RunState,
    Signal,
    SignalOutcome,
    Store,
)
from workflows.storage.schema import Write
from workflows.tracing import Tracer
from workflows.workers.worker import Worker


class Runs(Protocol):
    """The operations on runs that an execution offers; their outcomes are described in `storage.base.Store`, which has them all."""

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

    async def dead_signals(self, *, tenant: str, limit: int = 100, before: str | None = None) -> list[DeadSignal]: ...

    async def fork(self, fork: Fork) -> bool: ...

    async def redrive(self, run_id: str, *, tenant: str) -> RedriveOutcome: ...


class Execution(Protocol):
    """Carries runs out. Everything but `open` may be used once it is open."""

    @property
    def runs(self) -> Runs: ...

    async def start(self, run: NewRun, *, writes: Sequence[Write] = (), fresh: bool = True) -> str:
        """Start a run, or return the id of the live one of its key. Not `fresh`: somebody may have started one of this id before."""
        ...

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        """Give a signal to the live run of a key, or start `run` with it."""
        ...

    def store(self, purpose: str) -> Store:
        """The store that keeps the runs, for what needs it. Raises UnsupportedError where none does, naming `purpose` and what to use."""
        ...

    async def open(self, workflows: Registry, *, pubsub: PubSub, tracer: Tracer) -> None:
        """Connect, and begin to work runs of `workflows` if this process is to. May be called again after it raised."""
        ...

    async def close(self) -> None:
        """Hand over every run that is worked here, and disconnect."""
        ...

    async def tell_workers(self, queue: str) -> None:
        """A run of this queue is due: have one who serves it look now. Only makes it quick."""
        ...


class StoreExecution:
    """Runs in the store, worked by this process's worker (None: other processes work them).

    A run that is started where a worker has room is that worker's from its first commit on.
    """

    def __init__(self, store: Store, pubsub: PubSub, worker: Callable[[], Worker | None]) -> None:
        self.runs: Runs = store
        self._store = store
        self._worker = worker
        self._pubsub = pubsub

    def store(self, purpose: str) -> Store:
        return self._store

    async def open(self, workflows: Registry, *, pubsub: PubSub, tracer: Tracer) -> None:
        if (worker := self._worker()) is not None:
            await worker.register()  # from here on nothing raises, so that `open` can be called again after what does
            await self._listen(worker)
            worker.start()

    async def start(self, run: NewRun, *, writes: Sequence[Write] = (), fresh: bool = True) -> str:
        worker = self._worker() if fresh else None  # two claims of one run under one fence would not know of each other
        own = run if worker is None else worker.reserve(run)
        if worker is None or own.owner is None:
            started = await self._store.start(run, writes=writes)
            await self.tell_workers(run.queue)
            return started
        try:
            outcome = await self._store.start_owned(own, writes=writes)
        except BaseException:
            worker.decline(own)
            raise
        if outcome.claimed:
            worker.begin(own)
        else:
            worker.decline(own)
            await self.tell_workers(run.queue)
        return outcome.run_id

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        worker = self._worker()
        own = run if worker is None else worker.reserve(run)
        if worker is None or own.owner is None:
            outcome = await self._store.signal_with_start(
                run, name=name, dedup_key=dedup_key, payload=payload, writes=writes
            )
            await self._tell_of(outcome)
            return outcome
        try:
            outcome = await self._store.signal_with_start(
                own, name=name, dedup_key=dedup_key, payload=payload, writes=writes
            )
        except BaseException:
            worker.decline(own)
            raise
        if outcome.claimed:
            worker.begin(own, [Signal(1, name, dedup_key, payload, created_at=datetime.now(UTC))])
        else:
            worker.decline(own)
            await self._tell_of(outcome)
        return outcome

    async def _tell_of(self, outcome: SignalOutcome) -> None:
        if outcome.queue is not None:
            await self.tell_workers(outcome.queue)

    async def tell_workers(self, queue: str) -> None:
        """Where the bus is away, at least this process's own. Polling finds the rest."""
        told = await hint(self._pubsub, wake_topic(queue), Event("wake"))
        if not told and (worker := self._worker()) is not None:
            worker.wake()

    async def _listen(self, worker: Worker) -> None:
        if isinstance(self._pubsub, Bus):
            self._pubsub.consumer = worker.worker_id  # so that an operator knows whose pending entries are whose
        handlers: tuple[tuple[str, Any, str | None], ...] = (
            *((wake_topic(queue), worker.woken, "workers") for queue in worker.queues),
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
