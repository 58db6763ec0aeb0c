"""What a run costs, counted on the connection: statements per step, and bytes per iteration of a turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from agent.guidance import Guidance
from agent.loop import make_agent
from agent.messages import MESSAGES, arrived
from agent.models.base import Finished, Message, ModelEvent, ModelRequest, Person, Text, ToolCall
from agent.thread import Thread
from agent.tools import Toolbox, ToolContext, tool
from bot.backends import TABLES
from tests.agent.standins import EveryoneIsThemselves, QuietChannel
from tests.waiting import until
from workflows import Effect, Engine, Interrupted, Run, StepContext, Workflow, step, workflow
from workflows.pubsub import MemoryPubSub
from workflows.storage import PostgresStore, Select


class CountingStore(PostgresStore):
    """Keeps the text of every statement its connections send."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, tables=TABLES, pool_size=1)
        self.statements: list[str] = []

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        async with super()._connection() as connection:
            with connection.query_logger(self._log):
                yield connection

    def _log(self, record: asyncpg.connection.LoggedQuery) -> None:
        self.statements.append(record.query)


@step(effect=Effect.READ)
async def read(n: int) -> int:
    return n + 1


@step(effect=Effect.PURE)
async def pure(n: int) -> int:
    return n


@step(effect=Effect.IRREVERSIBLE)
async def spend(n: int) -> int | Interrupted:
    return n


async def _look(key: str, value: int, ctx: StepContext) -> int | None:
    return None


@step(effect=Effect.RECONCILE, reconcile=_look)
async def post(n: int) -> int:
    return n


async def cost(dsn: str, flow: Workflow[Any, Any], *, apart: bool = False) -> int:
    """Statements from the start of a run to its end. `apart`: another process starts it, so that it has to be claimed."""
    store, observer = CountingStore(dsn), PostgresStore(dsn, tables=TABLES)
    async with Engine(
        store=store, pubsub=MemoryPubSub(), workflows=[flow], poll_s=3600, lease_s=3600, spans=_NoSpans()
    ) as engine:
        await (await engine.start(flow, 1)).result(timeout=10)  # connections learn types at their first statement
        await observer.open()
        await until(lambda: engine.worker is not None and not engine.worker._held, "the worker to be idle")
        store.statements.clear()
        if apart:
            starter = Engine(store=store, pubsub=engine.pubsub, worker=False, spans=_NoSpans())
            run = await starter.start(flow, 1)
        else:
            run = await engine.start(flow, 1)
        await Run(observer, MemoryPubSub(), run.id, tenant="default", poll_s=0.01).result(timeout=10)
        last = max(index for index, text in enumerate(store.statements) if "insert into steps" in text)
        await observer.close()
        return last + 1


class _NoSpans:
    def put(self, span: Any) -> None:
        return None


@pytest.mark.parametrize(("apart", "beside"), [(False, 1), (True, 2)])
async def test_a_run_of_k_steps_is_k_plus_one_statements_or_two_where_it_is_claimed(
    engine_database: str, *, apart: bool, beside: int
) -> None:
    flow = workflow("w")
    for number in range(6):
        flow = flow.then(read.named(f"read-{number}"))  # type: ignore[assignment]
    assert await cost(engine_database, flow.commit(), apart=apart) == 6 + beside


async def test_an_intent_shares_the_write_of_the_step_before_it(engine_database: str) -> None:
    assert await cost(engine_database, workflow("w").then(read).then(post).then(read.named("again")).commit()) == 3 + 1


async def test_a_reconcile_and_an_irreversible_step_cost_one_intent_each(engine_database: str) -> None:
    flow = workflow("w").then(read).parallel(post, spend.named("spend")).commit()
    assert await cost(engine_database, flow) <= 3 + 1 + 2


async def test_pure_steps_write_nothing_of_their_own(engine_database: str) -> None:
    flow = (
        workflow("w")
        .then(pure)
        .then(read)
        .then(pure.named("pure-2"))
        .map(lambda n: n)
        .then(pure.named("pure-3"))
        .commit()
    )
    assert await cost(engine_database, flow) == 1 + 1


async def test_arms_that_finish_together_share_one_write(engine_database: str) -> None:
    arms = [read.named(f"arm-{number}") for number in range(5)]
    assert await cost(engine_database, workflow("w").then(pure).parallel(*arms).commit()) == 1 + 1


class Asking:
    """A model that asks for one tool call after another, then answers."""

    name = "scripted"

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self.made = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.made += 1
        more = self.made <= self._calls
        part = ToolCall(id=f"c{self.made}", name="look", arguments={"n": self.made}) if more else Text(text="Done.")
        yield Finished(message=Message(role="assistant", parts=(part,)), stop="tool_calls" if more else "end")

    async def close(self) -> None:
        return None


@tool(effect=Effect.READ)
async def look(ctx: ToolContext, *, n: int) -> dict[str, int]:
    """Look at n."""
    return {"n": n}


async def _turn(dsn: str, iterations: int, key: str) -> int:
    """Bytes that one turn of so many iterations stores."""
    store = PostgresStore(dsn, tables=TABLES)
    engine = Engine(store=store, pubsub=MemoryPubSub(), poll_s=0.05, spans=_NoSpans())
    agent = make_agent(
        store=store, model=Asking(iterations), toolbox=Toolbox([look]), guidance=Guidance(), channel=QuietChannel(),
        people=EveryoneIsThemselves(), tracer=engine.tracer, max_iterations=iterations + 5,
    )  # fmt: skip
    engine.add(*agent.workflows)
    thread = Thread(tenant="T1", channel=key, root="1.0")
    async with engine:
        message = Message(role="user", parts=(Text(text="go"),), author=Person(id="U1", name="U1"))
        outcome = await engine.signal_with_start(
            agent.turn,
            tenant="T1",
            key=thread.key,
            name="message",
            dedup_key=key,
            payload={"id": "1.0"},
            writes=[arrived(thread, "1.0", message)],
        )
        assert outcome.run_id is not None
        await (await engine.run(outcome.run_id, tenant="T1")).result(timeout=60)
        records = await store.load(outcome.run_id)
        rows = await store.read(Select(MESSAGES, {"tenant": "T1", "thread": thread.key}))
        assert len(rows) == 2 * iterations + 2
        return sum(len(record.path) + len(record.output or b"") for record in records) + sum(
            len(str(row)) for row in rows
        )


async def test_a_turn_of_twice_the_iterations_stores_twice_the_bytes(engine_database: str) -> None:
    """P10: storage is linear."""
    half, whole = await _turn(engine_database, 50, "half"), await _turn(engine_database, 100, "whole")
    assert 1.8 < whole / half < 2.1
