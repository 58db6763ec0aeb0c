"""Pub/sub on Redis Streams, for any number of processes."""

import uuid
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from workflows.pubsub.bus import Bus
from workflows.pubsub.member import OnDeadLetter
from workflows.pubsub.policy import Policy
from workflows.pubsub.streams import StreamLog


class RedisPubSub(Bus):
    """A bus on Redis (>= 7) or Valkey. Processes with the same `url` and `prefix` share it.

    `consumer`: this process's name in groups; by default one of its own. `cluster`: the server is one node of a Redis Cluster, over
    which the topics are spread by `partitions` (16, without a cluster 1), each with a blocking connection. `block_ms`: how long a
    blocking read lasts. `timeout_s`: after that a call gives up, so that a publisher waits no longer for a server that is down or
    frozen. `policy`: a `Policy`'s fields by name, the same in every process.
    Connects at first use, and again for ever after a loss. Must be closed.
    """

    def __init__(
        self,
        url: str,
        prefix: str = "threadline",
        *,
        consumer: str | None = None,
        cluster: bool = False,
        partitions: int | None = None,
        block_ms: int = 5_000,
        timeout_s: float = 1.0,
        on_dead_letter: OnDeadLetter | None = None,
        **policy: Any,
    ) -> None:
        rules = Policy(**policy)
        client = _cluster_client if cluster else _client
        name = consumer or uuid.uuid4().hex
        log = StreamLog(
            # The log keeps time itself; this is only what ends a call that it left behind.
            client(url, timeout_s=2 * timeout_s, read_timeout_s=2 * timeout_s),
            # redis-py's own five seconds and its retries would cut a blocking read off and send it again, silently.
            blocking=lambda: client(url, timeout_s=timeout_s, read_timeout_s=None),
            prefix=prefix,
            partitions=partitions or (CLUSTER_PARTITIONS if cluster else 1),
            consumer=f"{name}-{uuid.uuid4().hex[:8]}",
            policy=rules,
            block_ms=block_ms,
            timeout_s=timeout_s,
        )
        super().__init__(log, policy=rules, consumer=name, on_dead_letter=on_dead_letter)


CLUSTER_PARTITIONS = 16


def _cluster_client(url: str, *, timeout_s: float, read_timeout_s: float | None) -> Any:
    return RedisCluster.from_url(
        url,
        protocol=3,
        legacy_responses=False,
        decode_responses=True,
        socket_connect_timeout=timeout_s,
        socket_timeout=read_timeout_s,
        retry=Retry(NoBackoff(), 1),  # the one that follows a slot to where it has moved
    )


def _client(url: str, *, timeout_s: float, read_timeout_s: float | None) -> "Redis":
    # Protocol and reply shape are set together: each of the three combinations answers XREAD in another shape.
    return Redis.from_url(
        url,
        protocol=3,
        legacy_responses=False,
        decode_responses=True,
        socket_connect_timeout=timeout_s,
        socket_timeout=read_timeout_s,
        retry=Retry(NoBackoff(), 0),
    )
