"""A turn's shape without an agent: what the engine alone costs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from bot.backends import TABLES
from tests.bench.subject import Session, Shape, Subject, WatchedStore
from workflows import Effect, Engine, StepContext, Workflow, step, workflow
from workflows.pubsub import MemoryPubSub, PubSub
from workflows.tracing import StoreSink

TENANT = "T1"
ANSWER = (
    "All 9 campaigns together spent 12,345.67 last week, 4.1 % more than the week before; clicks rose by 6.0 %. " * 2
)


@asynccontextmanager
async def running(dsn: str, pubsub: PubSub, *, clients: int) -> AsyncIterator[tuple[WatchedStore, Engine, StoreSink]]:
    """An engine as a worker process has it, over a database of its own; spans go to storage. Workflows are added before it opens."""
    store = WatchedStore(dsn, tables=TABLES, pool_size=max(clients, 10))
    sink = StoreSink(store)
    engine = Engine(store=store, pubsub=pubsub, concurrency=max(clients, 10), spans=sink)
    try:
        yield store, engine, sink
    finally:
        await sink.close()
        await engine.close()


class EngineTurn(Subject):
    """A step that reads the signal as the model would, parallel reads as its tools, again for each round; then the answer."""

    kind = "engine alone"

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._workflow = _workflow(shape)

    @asynccontextmanager
    async def open(self, dsn: str, *, clients: int) -> AsyncIterator[Session]:
        """Open the engine."""
        async with running(dsn, MemoryPubSub(quiet=True), clients=clients) as (store, engine, sink):
            engine.add(self._workflow)
            await engine.open()
            sink.start()

            async def turn() -> None:
                key = uuid4().hex
                outcome = await engine.signal_with_start(
                    self._workflow, tenant=TENANT, key=key, name="message", dedup_key=key, payload={"id": key}
                )
                assert outcome.run_id is not None
                await store.ended(outcome.run_id)

            yield Session(turn, sink.flush)


def _workflow(shape: Shape) -> Workflow[Any, Any]:
    reads = [step(id=f"read-{n}", effect=Effect.READ)(_read) for n in range(shape.calls)]
    model = step(id="model", effect=Effect.READ)(_model)
    one = workflow("round").then(model).parallel(*reads).map(_joined).commit()
    looped = workflow("engine-turn").dowhile(
        one, lambda _, count: count < shape.rounds, max_iterations=shape.rounds + 1
    )
    return looped.then(step(id="answer", effect=Effect.READ)(_answer)).commit()


async def _model(value: Any, ctx: StepContext) -> str:
    await ctx.signals.drain("message")
    return ANSWER[:100]


async def _read(value: str) -> dict[str, Any]:
    return {"campaign": "Brand Search", "spend_micros": 123_456_789, "clicks": 4321}


def _joined(values: dict[str, Any]) -> str:
    return f"{len(values)} results"


async def _answer(value: str) -> str:
    return ANSWER
