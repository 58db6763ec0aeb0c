"""The one blocking read of a partition: it learns of new entries in any watched topic, and wakes who waits for them."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from workflows.pubsub.base import Offset, PubSubUnavailableError
from workflows.pubsub.log import BEGINNING, Wake
from workflows.pubsub.outage import UNREACHABLE, Outage, a_call


@dataclass(slots=True)
class _Watch:
    offset: Offset
    wakes: list[Wake] = field(default_factory=list)


class PartitionReader:
    """Blocks in XREAD over all watched topics of a partition, on a connection of its own; reconnects for ever.

    It only wakes: subscriptions fetch for themselves, at their own pace, so a slow handler holds nothing in memory and holds up
    no other. XREAD, and not XREADGROUP, because a read that is cut off or sent twice then takes nothing out of a group.
    `poke` writes to the control stream `control`, which ends a running read.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        control: str,
        poke: Callable[[], Awaitable[None]],
        block_ms: int,
        grace_s: float,
        outage: Outage,
    ) -> None:
        self._client: Any = client
        self._control = control
        self._control_offset = BEGINNING
        self._poke = poke
        self._block_ms = block_ms
        self._grace_s = grace_s
        self._outage = outage
        self._watches: dict[str, _Watch] = {}
        self._reading: frozenset[str] = frozenset()
        self._task = asyncio.create_task(self._run(), name=f"pubsub reader {control}")

    async def watch(self, key: str, wake: Wake, *, after: Offset) -> None:
        """Call `wake` soon after each entry of `key` that comes after `after`."""
        self._watches.setdefault(key, _Watch(after)).wakes.append(wake)
        if self._reading and key not in self._reading:
            try:
                await self._poke()
            except PubSubUnavailableError:
                return  # then the read ends too, and the next one has the topic

    def unwatch(self, key: str, wake: Wake) -> None:
        """Stop calling it."""
        watch = self._watches[key]
        watch.wakes.remove(wake)
        if not watch.wakes:
            del self._watches[key]

    async def close(self) -> None:
        """Stop reading and close the connection."""
        self._task.cancel()
        await asyncio.wait({self._task})
        await self._client.aclose()

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                with a_call():
                    await self._read()
                failures = 0
                if self._outage.succeeded():
                    self._wake_all()
            except (*UNREACHABLE, TimeoutError) as error:
                failures += 1
                self._outage.failed(error)
                await self._disconnect()
                await asyncio.sleep(min(1.0, 0.02 * 2.0**failures) * random.uniform(0.5, 1))  # noqa: S311 - spreads load
            finally:
                self._reading = frozenset()

    async def _disconnect(self) -> None:
        pool = getattr(self._client, "connection_pool", None)
        await (
            self._client.aclose() if pool is None else pool.disconnect()
        )  # a cluster's client begins anew with its next command

    async def _read(self) -> None:
        places = {key: watch.offset for key, watch in self._watches.items()}
        self._reading = frozenset({self._control, *places})
        # Without a limit of our own a connection that died without a word would block for ever.
        async with asyncio.timeout(self._block_ms / 1000 + self._grace_s):
            reply = await self._client.xread(
                {self._control: self._control_offset, **places}, count=100, block=self._block_ms
            )
        for key, entries in reply.items():
            self._advance(key, entries[-1][0])

    def _advance(self, key: str, offset: Offset) -> None:
        if key == self._control:
            self._control_offset = offset
            return
        watch = self._watches.get(key)
        if watch is None:
            return
        watch.offset = offset
        for wake in watch.wakes:
            wake()

    def _wake_all(self) -> None:
        for watch in self._watches.values():
            for wake in watch.wakes:
                wake()
