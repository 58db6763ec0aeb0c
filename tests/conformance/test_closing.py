"""Closing an engine leaves nothing behind: no task, no thread, no connection, whatever it was in the middle of. Every store, every bus."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
import redis.asyncio as redis

from tests.conformance.conftest import AnyStore
from tests.conformance.engines import in_state
from tests.waiting import until
from workflows import Effect, Engine, RunState, StepContext, step, workflow
from workflows.pubsub import MemoryPubSub, RedisPubSub
from workflows.storage import PostgresStore, StoreUnavailableError


class Stage:
    """A workflow that can be stopped anywhere, and the engine on it."""

    def __init__(self, make: Callable[..., Engine]) -> None:
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.left: list[str] = []

        async def works(n: int, ctx: StepContext) -> int:
            self.begun.set()
            try:
                await self.gate.wait()
            finally:
                self.left.append(ctx.path)
            return n

        async def asks(n: int, ctx: StepContext) -> int:
            return await ctx.suspend({}, resume=int)

        self.working = workflow("working").then(step(id="works", effect=Effect.READ)(works)).commit()
        self.asking = workflow("asking").then(step(id="asks", effect=Effect.READ)(asks)).commit()
        self.napping = workflow("napping").sleep(3600).commit()
        self.arms = (
            workflow("arms")
            .parallel(step(id="a", effect=Effect.READ)(works), step(id="b", effect=Effect.READ)(asks))
            .commit()
        )
        flows = (self.working, self.asking, self.napping, self.arms)
        self.engine = make(workflows=flows, clock=True, poll_s=0.05, grace_s=0.05)

    async def idle(self) -> None:
        """It has nothing to do."""

    async def in_a_step(self) -> None:
        await self.engine.start(self.working, 1)
        await self.begun.wait()

    async def in_an_arm(self) -> None:
        await self.engine.start(self.arms, 1)
        await self.begun.wait()

    async def asleep(self) -> None:
        run = await self.engine.start(self.napping, 1)
        await in_state(self.engine, run.id, RunState.SUSPENDED)

    async def asking_somebody(self) -> None:
        run = await self.engine.start(self.asking, 1)
        await in_state(self.engine, run.id, RunState.SUSPENDED)

    async def asked_to_stop(self) -> None:
        run = await self.engine.start(self.working, 1)
        await self.begun.wait()
        await run.cancel()

    async def watched(self) -> None:
        """Somebody waits for its result and reads its events."""
        run = await self.engine.start(self.working, 1)
        await self.begun.wait()
        self.watchers = [asyncio.create_task(run.result(timeout=60)), asyncio.create_task(_read(run))]
        await asyncio.sleep(0)

    async def draining(self) -> None:
        await self.in_a_step()
        serving = asyncio.create_task(self.engine.serve())
        self.engine.drain()
        await serving

    async def with_its_work_done(self) -> None:
        self.gate.set()
        run = await self.engine.start(self.working, 1)
        assert await run.result(timeout=10) == 1


async def _read(run: Any) -> None:
    async for _ in run.events():
        pass


MOMENTS = (
    "idle", "in_a_step", "in_an_arm", "asleep", "asking_somebody", "asked_to_stop", "watched", "draining", "with_its_work_done",
)  # fmt: skip


class Left:
    """What there is beside the test: tasks, threads, connections to PostgreSQL and to Redis."""

    def __init__(self, dsn: str | None, redis_url: str | None, name: str = "") -> None:
        """`name`: what connections to Redis call themselves."""
        self._dsn, self._redis_url, self._name = dsn, redis_url, name
        self._tasks, self._threads = asyncio.all_tasks(), set(threading.enumerate())

    async def nothing(self) -> None:
        """Fail unless all is gone, within a moment for what ends by itself."""
        await until(lambda: not self._more(), f"what is left: {self._more()}", deadline_s=5)
        if self._dsn is not None:
            await until(self._no_session, "no session on PostgreSQL is left", deadline_s=5)
        if self._redis_url is not None:
            await until(self._no_client, "no connection to Redis is left", deadline_s=5)

    def _more(self) -> list[str]:
        """Tasks but for the test's own, and threads but for those of the loop."""
        tasks = asyncio.all_tasks() - self._tasks - {asyncio.current_task()}
        threads = set(threading.enumerate()) - self._threads
        return [str(task) for task in tasks] + [each.name for each in threads if not each.name.startswith("asyncio")]

    async def something(self) -> bool:
        """Whether there is something of each kind, as there is while an engine is open."""
        sessions = self._dsn is None or not await self._no_session()
        return bool(self._more()) and sessions and (self._redis_url is None or not await self._no_client())

    async def _no_session(self) -> bool:
        connection = await asyncpg.connect(self._dsn)
        try:
            return not await connection.fetchval(
                "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
                " and backend_type = 'client backend'"
            )
        finally:
            await connection.close()

    async def _no_client(self) -> bool:
        client = redis.Redis.from_url(self._redis_url or "")
        try:
            return not [each for each in await client.client_list() if each["name"] == self._name]
        finally:
            await client.aclose()


@pytest.fixture(params=["memory", "redis"])
def bus(request: pytest.FixtureRequest) -> Callable[[], MemoryPubSub | RedisPubSub]:
    if request.param == "memory":
        return lambda: MemoryPubSub(quiet=True)
    prefix = request.getfixturevalue("redis_prefix")
    url = urlsplit(request.getfixturevalue("redis_url"))._replace(query=f"client_name={prefix}").geturl()
    return lambda: RedisPubSub(url, prefix)


@pytest.fixture
async def left(request: pytest.FixtureRequest, backend: str, make_store: object) -> Left:
    dsn = request.getfixturevalue("engine_database") if backend == "postgres" else None
    url = request.getfixturevalue("redis_url") if "redis" in request.node.name else None
    return Left(dsn, url, request.getfixturevalue("redis_prefix"))


@pytest.mark.parametrize("moment", MOMENTS)
async def test_whatever_it_was_doing(
    left: Left, make_store: Callable[[], AnyStore], bus: Callable[[], Any], moment: str
) -> None:
    stage = Stage(lambda **options: Engine(store=make_store(), pubsub=bus(), **options))
    await stage.engine.open()
    await getattr(stage, moment)()
    assert await left.something()
    await stage.engine.close()
    for watcher in getattr(stage, "watchers", []):
        watcher.cancel()
        await asyncio.wait({watcher})
    await left.nothing()


async def test_before_it_was_opened(left: Left, make_store: Callable[[], AnyStore], bus: Callable[[], Any]) -> None:
    await Engine(store=make_store(), pubsub=bus()).close()
    await left.nothing()


async def test_twice(left: Left, make_store: Callable[[], AnyStore], bus: Callable[[], Any]) -> None:
    engine = Engine(store=make_store(), pubsub=bus())
    await engine.open()
    await engine.close()
    await engine.close()
    await left.nothing()


class Refusing(MemoryPubSub):
    """A bus that lets nobody listen."""

    async def subscribe(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("nobody may listen")


async def test_what_was_opened_before_something_could_not_be_is_closed_again(
    left: Left, make_store: Callable[[], AnyStore]
) -> None:
    with pytest.raises(RuntimeError, match="nobody may listen"):
        async with Engine(store=make_store(), pubsub=Refusing(quiet=True), clock=True):
            pass
    await left.nothing()


class Breaking(MemoryPubSub):
    """A bus that can't be closed in good order."""

    async def close(self) -> None:
        await super().close()
        raise RuntimeError("it does not close")


async def test_what_does_not_close_keeps_nothing_else_open(left: Left, make_store: Callable[[], AnyStore]) -> None:
    with pytest.raises(RuntimeError, match="it does not close"):
        async with Engine(store=make_store(), pubsub=Breaking(quiet=True), clock=True):
            pass
    await left.nothing()


async def test_a_store_that_is_away() -> None:
    left = Left(None, None)
    store = PostgresStore("postgresql://postgres@127.0.0.1:1/nowhere", timeout_s=1)
    with pytest.raises(StoreUnavailableError):
        async with Engine(store=store, pubsub=MemoryPubSub(quiet=True), clock=True):
            pass
    await left.nothing()
