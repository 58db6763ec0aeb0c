"""The bus on a real Redis Cluster of two nodes: each partition's keys on one of them, and what happens when one goes away."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.servers import RedisServer, free_port
from tests.waiting import Seen, until
from workflows.pubsub import Event, PubSubUnavailableError, RedisPubSub

TOPICS = [f"T{n}:thread:{n}" for n in range(24)]


class Node(RedisServer):
    """One node of a cluster."""

    name = "redis-node"

    def __init__(self) -> None:
        super().__init__()
        self.cluster_port = free_port()

    def _command(self) -> list[str]:
        options = {"cluster-enabled": "yes", "cluster-config-file": "nodes.conf", "cluster-port": self.cluster_port}
        return [*super()._command(), *(str(word) for key, value in options.items() for word in (f"--{key}", value))]


async def ask(node: Node, *command: Any) -> Any:
    client: Any
    async with Redis.from_url(node.url, decode_responses=True) as client:
        return await client.execute_command(*command)


@pytest.fixture
async def nodes() -> AsyncIterator[list[Node]]:
    """Two masters that share the slots."""
    nodes = [Node(), Node()]
    for node in nodes:
        node.start()
    await ask(nodes[0], "CLUSTER", "ADDSLOTSRANGE", 0, 8191)
    await ask(nodes[1], "CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
    await ask(nodes[0], "CLUSTER", "MEET", "127.0.0.1", nodes[1].port, nodes[1].cluster_port)

    async def formed() -> bool:
        return all(["cluster_state:ok" in str(await ask(node, "CLUSTER", "INFO")) for node in nodes])

    await until(formed, "the cluster to form")
    yield nodes
    for node in nodes:
        node.close()


def connect(node: Node, **options: Any) -> RedisPubSub:
    quick: dict[str, Any] = {"min_idle_ms": 400, "max_deliveries": 1, "block_ms": 500, "timeout_s": 5.0}
    return RedisPubSub(node.url, "cluster", cluster=True, partitions=8, **{**quick, **options})


async def test_topics_are_spread_over_the_nodes_and_every_key_of_one_is_together(nodes: list[Node]) -> None:
    """Fan-out, groups, dead letters and their redrive, through either node."""
    one, two = connect(nodes[0]), connect(nodes[1])
    watcher, member = Seen(), Seen(fail=len(TOPICS))
    for topic in TOPICS:
        await one.subscribe(topic, watcher)
        await two.subscribe(topic, member, group="g")
    for topic in TOPICS:
        await two.publish(topic, Event(topic))
    await watcher.reach(len(TOPICS))
    await member.reach(len(TOPICS))

    async def buried() -> bool:
        return len(await one.dead_letters()) == len(TOPICS)

    await until(buried, "every first delivery to be a dead letter")
    for letter in await one.dead_letters():
        await one.redrive(letter)
    await member.reach(2 * len(TOPICS))
    assert sorted(watcher.types) == sorted(TOPICS)
    assert sorted(member.types) == sorted(TOPICS * 2)
    keys = [set(await ask(node, "KEYS", "*")) for node in nodes]
    assert all(keys)
    tags = [{key[key.index("{") : key.index("}") + 1] for key in each} for each in keys]
    assert not tags[0] & tags[1]
    assert min([await ask(node, "PTTL", key) for node, each in zip(nodes, keys, strict=True) for key in each]) > 0
    await one.close()
    await two.close()


async def test_while_one_node_is_down_the_other_ones_topics_go_on_and_afterwards_all_do(nodes: list[Node]) -> None:
    # Without replicas the whole cluster would refuse while one is down; an operator may choose that it does not.
    for node in nodes:
        await ask(node, "CONFIG", "SET", "cluster-require-full-coverage", "no")
    bus = connect(nodes[0], timeout_s=2.0)
    seen = {topic: Seen() for topic in TOPICS}
    for topic, handler in seen.items():
        await bus.subscribe(topic, handler)
        await bus.publish(topic, Event("before"))
        await handler.reach(1)
    nodes[1].kill()
    reached = [topic for topic in TOPICS if await published(bus, topic, "meanwhile")]
    assert 0 < len(reached) < len(TOPICS)
    for topic in reached:
        await until(lambda topic=topic: "meanwhile" in seen[topic].types, "the other node's topics go on")  # type: ignore[misc]
    nodes[1].start()
    for topic, handler in seen.items():

        async def arrived(topic: str = topic, handler: Seen = handler) -> bool:
            await published(bus, topic, "after")
            return "after" in handler.types

        await until(arrived, f"{topic} comes back", deadline_s=30)
    await bus.close()


async def published(bus: RedisPubSub, topic: str, type_: str) -> bool:
    try:
        await bus.publish(topic, Event(type_))
    except PubSubUnavailableError:
        await asyncio.sleep(0)
        return False
    return True
