"""Pub/sub inside one process."""

import time
from collections.abc import Callable
from typing import Any

import structlog

from workflows.pubsub.bus import Bus
from workflows.pubsub.member import OnDeadLetter
from workflows.pubsub.memory_log import MemoryLog
from workflows.pubsub.policy import Policy


class MemoryPubSub(Bus):
    """A bus inside one process, for development and tests: other processes don't hear it, and a crash empties it.

    `policy` is a `Policy`'s fields by name; `clock` gives seconds since 1970. `quiet`: the caller knows its limits, as development
    in one process does, and wants no warning.
    """

    def __init__(
        self,
        *,
        consumer: str | None = None,
        on_dead_letter: OnDeadLetter | None = None,
        clock: Callable[[], float] = time.time,
        quiet: bool = False,
        **policy: Any,
    ) -> None:
        rules = Policy(**policy)
        super().__init__(MemoryLog(rules, clock=clock), policy=rules, consumer=consumer, on_dead_letter=on_dead_letter)
        if not quiet:
            structlog.get_logger().warning(
                "memory_pubsub_unfit_for_production", reason="other processes don't hear it; use RedisPubSub"
            )
