"""Redis Streams under faults that only a real server and real processes can have: kills, restarts, freezes, FLUSHALL."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from redis.asyncio import Redis

from tests.servers import RedisServer
from tests.waiting import Seen, until
from workflows import Engine
from workflows.pubsub import Event, PubSubUnavailableError, RedisPubSub
from workflows.storage import MemoryStore

TOPIC = "T1:thread:C1:171.5"

# A member in a process of its own. It prints each event it gets, and never finishes with one of type "stick".
MEMBER = """
import asyncio, sys
from workflows.pubsub import RedisPubSub

async def handle(event):
    print(event.type, event.deliveries, flush=True)
    if event.type == "stick":
        await asyncio.Event().wait()

async def main():
    bus = RedisPubSub(sys.argv[1], "faults", min_idle_ms=400)
    await bus.subscribe(sys.argv[2], handle, group="g")
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def bus(private_redis: RedisServer) -> AsyncIterator[RedisPubSub]:
    bus = connect(private_redis)
    yield bus
    await bus.close()


@pytest.fixture
async def client(private_redis: RedisServer) -> AsyncIterator[Any]:
    async with Redis.from_url(private_redis.url, decode_responses=True) as client:
        yield client


def connect(server: RedisServer, **options: Any) -> RedisPubSub:
    # Ten seconds, since a loaded machine is no outage; a server that is down refuses at once all the same.
    quick = {"min_idle_ms": 400, "backoff": lambda _: 0.01, "timeout_s": 10.0}
    return RedisPubSub(server.url, "faults", **{**quick, **options})


async def publish(bus: RedisPubSub, *types: str, topic: str = TOPIC) -> None:
    for type_ in types:
        await bus.publish(topic, Event(type_))


async def reaches(bus: RedisPubSub, seen: Seen, type_: str) -> None:
    """Publish until it arrives: the time a client needs to come back is not ours to know."""

    async def arrived() -> bool:
        try:
            await publish(bus, type_)
        except PubSubUnavailableError:
            return False
        return type_ in seen.types

    await until(arrived, f"{type_} arrives")


@contextmanager
def member_process(server: RedisServer, topic: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", MEMBER, server.url, topic]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            yield process
        finally:
            process.kill()


async def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return (await asyncio.to_thread(process.stdout.readline)).strip()


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_subscriber_comes_back_after_the_server_was_killed(
    private_redis: RedisServer, bus: RedisPubSub, group: str | None
) -> None:
    seen = Seen()
    await bus.subscribe(TOPIC, seen, group=group)
    await publish(bus, "before")
    await seen.reach(1)
    private_redis.kill()
    with pytest.raises(PubSubUnavailableError):
        await publish(bus, "lost")
    private_redis.start()
    await reaches(bus, seen, "after")
    assert seen.types[0] == "before"
    assert "gap" not in seen.types  # its file was flushed at every write, so nothing was lost


@pytest.mark.parametrize("group", [None, "g"])
async def test_the_blocking_read_comes_back_too(private_redis: RedisServer, group: str | None) -> None:
    """Nobody looks for a quarter of an hour without being woken: only the reader can tell of what comes after the restart."""
    bus = connect(private_redis, min_idle_ms=3_600_000)
    seen = Seen()
    await bus.subscribe(TOPIC, seen, group=group)
    await publish(bus, "before")
    await seen.reach(1)
    private_redis.kill()
    private_redis.start()
    await reaches(bus, seen, "after")
    await bus.close()


async def test_an_outage_is_logged_once_when_it_begins_and_once_when_it_ends(private_redis: RedisServer) -> None:
    with structlog.testing.capture_logs() as logs:
        bus = connect(private_redis)
        seen = Seen()
        await bus.subscribe(TOPIC, seen)
        await publish(bus, "before")
        private_redis.kill()
        for _ in range(20):
            with pytest.raises(PubSubUnavailableError):
                await publish(bus, "lost")
        private_redis.start()
        await reaches(bus, seen, "after")
        await bus.close()
    assert [entry["event"] for entry in logs] == ["pubsub_unavailable", "pubsub_available_again"]


async def test_what_was_pending_at_the_kill_is_acknowledged_or_delivered_after_it(
    private_redis: RedisServer, bus: RedisPubSub, client: Any
) -> None:
    """The handler finishes while the server is away; it is told of it afterwards, and not delivered again."""
    gate = asyncio.Event()
    seen = Seen(gate=gate)
    await bus.subscribe(TOPIC, seen, group="g")
    await publish(bus, "a", "b")
    await seen.start(1)
    private_redis.kill()
    gate.set()
    await seen.reach(1)
    private_redis.start()
    await seen.reach(2)
    key = f"faults:{{p0}}:{TOPIC}"

    async def settled() -> bool:
        return bool((await client.xpending(key, "g"))["pending"] == 0)

    await until(settled, "both are acknowledged")
    assert seen.types == ["a", "b"]


async def test_publishing_while_the_server_is_down_fails_at_once(private_redis: RedisServer, bus: RedisPubSub) -> None:
    private_redis.stop()
    begun = asyncio.get_running_loop().time()
    with pytest.raises(PubSubUnavailableError, match="Redis does not answer"):
        await publish(bus, "a")
    assert asyncio.get_running_loop().time() - begun < 0.5


async def test_publishing_to_a_frozen_server_fails_within_its_limit(private_redis: RedisServer) -> None:
    """Also for many publishers at once: each waits its own second, and none waits for the others."""
    bus = connect(private_redis, timeout_s=1.0)
    await publish(bus, "a")
    private_redis.pause()
    begun = asyncio.get_running_loop().time()
    results = await asyncio.gather(*(publish(bus, "b") for _ in range(200)), return_exceptions=True)
    assert {type(result) for result in results} == {PubSubUnavailableError}
    assert asyncio.get_running_loop().time() - begun < 1.8
    begun = asyncio.get_running_loop().time()
    with pytest.raises(PubSubUnavailableError, match="a moment ago"):
        await publish(bus, "c")
    assert asyncio.get_running_loop().time() - begun < 0.1  # whoever comes next does not wait at all
    private_redis.resume()
    await bus.close()


async def test_a_subscriber_survives_a_server_that_freezes(private_redis: RedisServer) -> None:
    bus = connect(private_redis, block_ms=100, timeout_s=0.2)
    seen = Seen()
    await bus.subscribe(TOPIC, seen)
    private_redis.pause()
    with pytest.raises(PubSubUnavailableError):
        await publish(bus, "lost")
    private_redis.resume()
    await reaches(bus, seen, "after")
    await bus.close()


async def test_subscribing_while_the_server_is_down_begins_when_it_is_back(
    private_redis: RedisServer, bus: RedisPubSub
) -> None:
    watcher, member = Seen(), Seen()
    private_redis.stop()
    await bus.subscribe(TOPIC, watcher)
    await bus.subscribe(TOPIC, member, group="g")
    private_redis.start()
    await reaches(bus, watcher, "after")
    await reaches(bus, member, "after")
    assert watcher.types[0] == "gap"  # what it missed before it began, nobody can tell


async def test_flush_says_that_the_server_is_down(private_redis: RedisServer, bus: RedisPubSub) -> None:
    await bus.subscribe(TOPIC, Seen())
    private_redis.stop()
    with pytest.raises(PubSubUnavailableError):
        await bus.flush()


async def test_closing_while_the_server_is_down_or_frozen_ends_in_time(private_redis: RedisServer) -> None:
    bus = connect(private_redis, timeout_s=1.0)
    await bus.subscribe(TOPIC, Seen())
    await bus.subscribe(TOPIC, Seen(), group="g")
    await publish(bus, "a")
    private_redis.pause()
    async with asyncio.timeout(6):
        await bus.close()


async def test_flushall_makes_groups_anew_and_they_see_what_is_published_since(
    private_redis: RedisServer, bus: RedisPubSub, client: Any
) -> None:
    watcher, member = Seen(), Seen()
    await bus.subscribe(TOPIC, watcher)
    await bus.subscribe(TOPIC, member, group="g")
    await publish(bus, "before")
    await bus.flush()
    await client.flushall()
    await publish(bus, "after")
    await member.reach(2)
    await watcher.reach(3)
    assert member.types == ["before", "after"]
    assert watcher.types == ["before", "gap", "after"]


async def test_flushall_under_a_running_handler_and_a_waiting_retry_harms_nothing(
    bus: RedisPubSub, client: Any
) -> None:
    gate = asyncio.Event()
    seen, failing = Seen(gate=gate), Seen(fail=1)
    await bus.subscribe(TOPIC, seen, group="g")
    await bus.subscribe(TOPIC, failing, group="f")
    await publish(bus, "a")
    await seen.start(1)
    await client.flushall()
    gate.set()
    await publish(bus, "b")
    await until(lambda: "b" in seen.types and "b" in failing.types, "both go on")


async def test_every_key_has_a_time_to_live(bus: RedisPubSub, client: Any) -> None:
    failing = Seen(fail=99)
    await bus.subscribe("T1:run:1", Seen())
    await bus.subscribe(TOPIC, failing, group="g")
    await bus.subscribe("wake", Seen(), group="workers")
    await bus.subscribe("T1:run:2", Seen(), group="made by joining")
    await publish(bus, "a")
    await publish(bus, "b", topic="wake")
    await publish(bus, "c", topic="T1:run:nobody listens")

    async def buried() -> bool:
        return bool(await bus.dead_letters())

    await until(buried, "a dead letter")
    ttls = {key: await client.pttl(key) for key in await client.keys("*")}
    assert {key.split(":")[1] for key in ttls} == {"{p0}", "dead", "reader"}
    assert min(ttls.values()) > 0
    assert max(ttl for key, ttl in ttls.items() if ":dead:" not in key) <= 3_600_000


async def test_a_topic_that_a_group_makes_anew_has_a_time_to_live(bus: RedisPubSub, client: Any) -> None:
    await bus.subscribe(TOPIC, Seen(), group="g")
    await client.flushall()

    async def made() -> bool:
        return bool(await client.exists(f"faults:{{p0}}:{TOPIC}"))

    await until(made, "the group is made anew")
    assert await client.pttl(f"faults:{{p0}}:{TOPIC}") > 0


async def test_a_topic_with_a_live_subscriber_does_not_expire(private_redis: RedisServer, client: Any) -> None:
    bus = connect(private_redis, min_idle_ms=100, ttl_s=100)
    await bus.subscribe(TOPIC, Seen())
    await publish(bus, "a")
    key = f"faults:{{p0}}:{TOPIC}"
    await client.pexpire(key, 5_000)

    async def renewed() -> bool:
        return int(await client.pttl(key)) > 50_000

    await until(renewed, "its TTL is renewed")
    await bus.close()


async def test_keys_name_the_tenant_and_carry_their_partitions_hash_tag(
    private_redis: RedisServer, client: Any
) -> None:
    bus = connect(private_redis, partitions=32)
    seen = Seen()
    topics = [f"T{n}:thread:{n}" for n in range(40)]
    for topic in topics:
        await bus.subscribe(topic, seen)
        await publish(bus, topic, topic=topic)
    await seen.reach(40)
    assert sorted(seen.types) == sorted(topics)
    keys = [key for key in await client.keys("*") if ":reader:" not in key]
    tags = {key.split(":")[1] for key in keys}
    assert sorted(key.split(":", 2)[2] for key in keys) == sorted(topics)
    assert len(tags) > 5
    assert tags <= {f"{{p{n}}}" for n in range(32)}
    await bus.close()


async def test_all_topics_of_a_process_share_one_blocking_connection(bus: RedisPubSub, client: Any) -> None:
    for number in range(30):
        await bus.subscribe(f"T1:run:{number}", Seen())
    await bus.flush()
    blocked = [entry for entry in await client.client_list() if "b" in entry["flags"]]
    assert len(blocked) == 1
    assert len(await client.client_list()) <= 20


async def test_a_new_topic_is_heard_while_the_blocking_read_lasts(private_redis: RedisServer) -> None:
    """The control entry ends the read; without it the event would come with the next one, a minute later."""
    bus = connect(private_redis, block_ms=60_000, min_idle_ms=600_000)
    first, second = Seen(), Seen()
    await bus.subscribe("T1:run:1", first)
    await publish(bus, "a", topic="T1:run:1")
    await first.reach(1)
    await bus.subscribe("T1:run:2", second)
    await bus.flush()
    other = connect(private_redis)
    await publish(other, "b", topic="T1:run:2")
    await second.reach(1)
    await bus.close()
    await other.close()


async def test_a_blocking_read_outlasts_the_clients_own_timeout(private_redis: RedisServer, client: Any) -> None:
    """redis-py by itself cuts a blocking read off after five seconds and sends it again; ours must just last."""

    async def lasts() -> bool:
        return any("b" in entry["flags"] and int(entry["idle"]) >= 6 for entry in await client.client_list())

    with structlog.testing.capture_logs() as logs:
        bus = connect(private_redis, block_ms=20_000)
        seen = Seen()
        await bus.subscribe(TOPIC, seen, group="g")
        await until(lasts, "one read lasts six seconds")
        await publish(bus, "a")
        await seen.reach(1)
        await bus.close()
    assert logs == []


async def test_a_consumer_that_left_is_forgotten(bus: RedisPubSub, client: Any) -> None:
    for _ in range(3):
        await bus.unsubscribe(await bus.subscribe(TOPIC, Seen(), group="g"))
    assert await client.xinfo_consumers(f"faults:{{p0}}:{TOPIC}", "g") == []


async def test_a_workers_consumer_bears_its_id(private_redis: RedisServer, client: Any) -> None:
    """Whose pending entries are whose, an operator sees in XINFO CONSUMERS."""
    async with Engine(store=MemoryStore(), pubsub=connect(private_redis), poll_s=0.05) as engine:
        assert engine.worker is not None
        key, worker_id = "faults:{p0}:wake", engine.worker.worker_id

        async def known() -> bool:
            consumers = await client.xinfo_consumers(key, "workers") if await client.exists(key) else []
            return [each["name"].rsplit("-", 1)[0] for each in consumers] == [worker_id]

        await until(known, "the worker's consumer")


async def test_a_cancelled_publisher_leaves_the_connections_usable(bus: RedisPubSub, client: Any) -> None:
    for _ in range(50):
        task = asyncio.create_task(publish(bus, "cancelled"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    offsets = await asyncio.gather(*(bus.publish(TOPIC, Event(str(n))) for n in range(100)))
    stored = {offset: fields["type"] for offset, fields in await client.xrange(f"faults:{{p0}}:{TOPIC}")}
    assert [stored[offset] for offset in offsets] == [str(n) for n in range(100)]


@pytest.mark.process
async def test_connections_closed_under_running_calls_are_an_outage_and_no_other_error(
    private_redis: RedisServer,
) -> None:
    """A client closes connections when one of its commands has failed, whatever others are about to write on them."""
    bus = RedisPubSub(private_redis.url)
    log: Any = bus._log
    pool = log._client.connection_pool
    stop = asyncio.Event()

    async def close_them() -> None:
        while not stop.is_set():
            await pool.disconnect(inuse_connections=True)
            await asyncio.sleep(0.0005)

    closing = asyncio.create_task(close_them())
    told = await asyncio.gather(
        *(bus.publish("T1:thread:C1:1.1", Event("e", {"n": n})) for n in range(3000)), return_exceptions=True
    )
    stop.set()
    await closing
    assert {type(each) for each in told if isinstance(each, BaseException)} == {PubSubUnavailableError}

    async def published() -> bool:
        try:
            await bus.publish("T1:thread:C1:1.1", Event("after"))
        except PubSubUnavailableError:
            return False
        return True

    await until(published, "the bus to be used again")
    await bus.close()


async def test_another_process_takes_over_when_a_member_is_killed(private_redis: RedisServer, bus: RedisPubSub) -> None:
    with member_process(private_redis, TOPIC) as first, member_process(private_redis, TOPIC) as second:
        assert {await line(first), await line(second)} == {"ready"}
        await publish(bus, "stick")
        lines = [asyncio.create_task(line(process)) for process in (first, second)]
        (done,), (waiting,) = await asyncio.wait(lines, return_when=asyncio.FIRST_COMPLETED)
        assert done.result() == "stick 1"
        holder = first if done is lines[0] else second
        os.kill(holder.pid, signal.SIGKILL)
        async with asyncio.timeout(15):
            assert await waiting == "stick 2"


@pytest.mark.process
async def test_processes_with_one_prefix_share_the_work(
    private_redis: RedisServer, bus: RedisPubSub, client: Any
) -> None:
    with member_process(private_redis, "wake") as first, member_process(private_redis, "wake") as second:
        assert {await line(first), await line(second)} == {"ready"}
        mine = Seen()
        await bus.subscribe("wake", mine, group="g")
        await publish(bus, *(str(n) for n in range(300)), topic="wake")
        await bus.flush()

        async def settled() -> bool:
            return bool((await client.xpending("faults:{p0}:wake", "g"))["pending"] == 0)

        await until(settled, "the other processes have acknowledged theirs")
        first.terminate()
        second.terminate()
        outputs = [await asyncio.to_thread(process.communicate) for process in (first, second)]
    theirs = [printed.split()[0] for output, _ in outputs for printed in output.splitlines()]
    assert sorted(map(int, theirs + mine.types)) == list(range(300))
