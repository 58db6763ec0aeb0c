"""What a bus promises about delivery, retries and retention; the same values mean the same on every backend."""

import random
from collections.abc import Callable
from dataclasses import dataclass

Backoff = Callable[[int], float]
"""Seconds to wait after the n-th failed delivery of an event (n starts at 1)."""


def exponential_backoff(failures: int) -> float:
    """Full jitter below 0.5 s, 1 s, 2 s … 60 s: members that fail together don't come back together."""
    return random.uniform(0, min(60.0, 0.5 * 2.0 ** (failures - 1)))  # noqa: S311 - spreads load, guards nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The parameters of a bus.

    `min_idle_ms`: a delivery untouched for so long is taken over by another member; a live member renews at a quarter of it.
    `max_deliveries`: then it is a dead letter. `max_len`: entries a topic keeps beyond what its groups still need.
    `ttl_s`, `dead_letter_ttl_s`: how long an idle topic and its dead letters live. `max_bytes`: of one event's JSON.
    `single_group_topics`, and all that begin with `single_group_prefix`: each has exactly one group, so an entry goes as soon as it
    is acknowledged.
    """

    min_idle_ms: int = 60_000
    max_deliveries: int = 5
    backoff: Backoff = exponential_backoff
    max_len: int = 10_000
    max_bytes: int = 256 * 1024
    ttl_s: int = 3_600
    dead_letter_ttl_s: int = 7 * 86_400
    single_group_topics: frozenset[str] = frozenset({"wake", "tasks"})
    single_group_prefix: str = "wake:"

    def single_group(self, topic: str) -> bool:
        """Whether a topic has exactly one group."""
        return topic in self.single_group_topics or topic.startswith(self.single_group_prefix)

    @property
    def tick_s(self) -> float:
        """Seconds between renewals, and between looks at the log when nothing was announced."""
        return self.min_idle_ms / 4_000

    @property
    def stall_len(self) -> int:
        """A topic longer than this is held up by a group; a group without a live member is then destroyed."""
        return 10 * self.max_len
