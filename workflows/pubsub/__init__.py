"""Pub/sub: topics, consumer groups, replay, dead letters; in memory and on Redis Streams."""

from workflows.pubsub.base import (
    DeadLetter,
    Event,
    EventKind,
    Handler,
    Offset,
    PubSub,
    PubSubUnavailableError,
    Subscription,
)
from workflows.pubsub.bus import Bus
from workflows.pubsub.memory import MemoryPubSub
from workflows.pubsub.policy import Policy
from workflows.pubsub.redis import RedisPubSub

__all__ = [
    "Bus",
    "DeadLetter",
    "Event",
    "EventKind",
    "Handler",
    "MemoryPubSub",
    "Offset",
    "Policy",
    "PubSub",
    "PubSubUnavailableError",
    "RedisPubSub",
    "Subscription",
]
