"""When a message may be sent: about one a second in each channel, over all replicas, and not before Slack said to come again.

Slack's limits are per app and workspace, so they can only be kept by all processes together. With Redis they share one view; without
it, or while it is away, each process keeps to them by itself. A place in the queue is taken only if it comes soon: whoever would wait
longer is told how long, and its run waits, suspended, instead of a worker.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

INTERVAL_S = 1.0
BURST = 4
"""Messages that may follow each other at once after a rest; Slack tolerates short bursts."""
PATIENCE_S = 1.5
"""How long a sender waits where it stands."""
HOLD_LIMIT_S = 3600.0
LIMIT = 10_000

TAKE = """
local now = redis.call('TIME')
local at = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local held = tonumber(redis.call('GET', KEYS[2]) or '0') - at
if held > 0 then return {0, held} end
local interval, burst, patience = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), at - interval * (burst - 1))
local wait = math.max(0, due - at)
if wait > patience then return {0, wait} end
redis.call('SET', KEYS[1], due + interval, 'PX', interval * (burst + 1) + patience)
return {1, wait}
"""
"""KEYS: the channel's next time, the method's hold. Times in ms. Returns whether a place was taken, and how long to wait for it or to
come again. The keys of a tenant share a hash tag, so that a Redis Cluster keeps them together."""


class Pacer(Protocol):
    """Says when to send."""

    async def take(
        self, tenant: str, channel: str, method: str, *, patience_s: float = PATIENCE_S
    ) -> tuple[bool, float]:
        """A place for one message: (True, seconds to wait before it is sent, at most `patience_s`), or (False, when to ask again)."""
        ...

    async def held(self, tenant: str, method: str) -> float:
        """Seconds for which Slack doesn't want calls of a method in this workspace; 0 if it does."""
        ...

    async def hold(self, tenant: str, method: str, seconds: float) -> None:
        """Slack asked to wait, with a 429 to one call: nobody else need try before."""
        ...

    async def close(self) -> None:
        """Free its connection."""
        ...


class MemoryPacer:
    """Keeps to the limits within this process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[tuple[str, str], float] = {}
        self._held: dict[tuple[str, str], float] = {}

    async def take(
        self, tenant: str, channel: str, method: str, *, patience_s: float = PATIENCE_S
    ) -> tuple[bool, float]:
        held = await self.held(tenant, method)
        if held > 0:
            return False, held
        now = self._clock()
        due = max(self._due.get((tenant, channel), 0.0), now - INTERVAL_S * (BURST - 1))
        wait = max(0.0, due - now)
        if wait > patience_s:
            return False, wait
        if len(self._due) >= LIMIT:
            self._due = {place: at for place, at in self._due.items() if at > now}
        self._due[tenant, channel] = due + INTERVAL_S
        return True, wait

    def skip(self, seconds: float) -> None:
        """Let time pass: what is due or held comes that much sooner. For a test that moves the clock."""
        self._due = {place: at - seconds for place, at in self._due.items()}
        self._held = {place: at - seconds for place, at in self._held.items()}

    async def held(self, tenant: str, method: str) -> float:
        return max(0.0, self._held.get((tenant, method), 0.0) - self._clock())

    async def hold(self, tenant: str, method: str, seconds: float) -> None:
        until = self._clock() + min(seconds, HOLD_LIMIT_S)
        self._held[tenant, method] = max(until, self._held.get((tenant, method), 0.0))

    async def close(self) -> None:
        return None


class RedisPacer:
    """Keeps to the limits together with all processes of one `url` and `prefix`, by Redis's clock.

    A server that does not answer within `timeout_s` counts as away: the process then goes by itself for `pause_s`.
    """

    def __init__(
        self, url: str, prefix: str = "threadline", *, timeout_s: float = 0.25, pause_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._client: Any = Redis.from_url(
            url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=Retry(NoBackoff(), 0)
        )
        self._prefix = prefix
        self._pause_s = pause_s
        self._clock = clock
        self._alone = MemoryPacer(clock=clock)
        self._ask_again_at = 0.0

    async def take(
        self, tenant: str, channel: str, method: str, *, patience_s: float = PATIENCE_S
    ) -> tuple[bool, float]:
        keys = (self._key(tenant, "due", channel), self._key(tenant, "held", method))
        limits = (int(INTERVAL_S * 1000), BURST, int(patience_s * 1000))
        found = await self._ask(lambda: self._client.eval(TAKE, 2, *keys, *limits))
        if found is None:
            return await self._alone.take(tenant, channel, method, patience_s=patience_s)
        taken, wait_ms = found
        return bool(taken), wait_ms / 1000

    async def held(self, tenant: str, method: str) -> float:
        left_ms = await self._ask(lambda: self._client.pttl(self._key(tenant, "held", method)))
        return await self._alone.held(tenant, method) if left_ms is None else max(0, left_ms) / 1000

    async def hold(self, tenant: str, method: str, seconds: float) -> None:
        await self._alone.hold(tenant, method, seconds)
        ms = max(1, int(min(seconds, HOLD_LIMIT_S) * 1000))
        await self._ask(lambda: self._client.eval(HOLD, 1, self._key(tenant, "held", method), ms))

    async def close(self) -> None:
        await self._client.aclose()

    def _key(self, tenant: str, kind: str, name: str) -> str:
        return f"{self._prefix}:pace:{{{tenant}}}:{kind}:{name}"

    async def _ask(self, call: Callable[[], Any]) -> Any:
        if self._clock() < self._ask_again_at:
            return None
        try:
            return await call()
        except (RedisError, OSError, TimeoutError) as error:
            self._ask_again_at = self._clock() + self._pause_s
            structlog.get_logger().warning("pacer_alone", error=f"{type(error).__name__}: {error}")
            return None


HOLD = """
local now = redis.call('TIME')
local till = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000) + tonumber(ARGV[1])
if till > tonumber(redis.call('GET', KEYS[1]) or '0') then redis.call('SET', KEYS[1], till, 'PX', ARGV[1]) end
return till
"""
"""KEYS: the method's hold. ARGV: how long, in ms. A longer one that is there stays."""
