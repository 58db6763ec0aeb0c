"""The dedup cache: makes recognising a repeated delivery cheap. The database's unique key makes it true."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

_log = structlog.get_logger()

ONE_DAY_S = 86_400
"""Whoever delivers again does so within the hour; a day covers a person who resends by hand."""


class DedupCache(Protocol):
    """Which deliveries are done with. It may forget at any time, and never says "done" of one that was not marked so."""

    async def done(self, tenant: str, key: str) -> bool:
        """Whether that delivery was marked done. False if the cache does not know or can't be asked. Never raises."""
        ...

    async def mark_done(self, tenant: str, key: str) -> None:
        """Mark it, after its effect is committed and not before: a mark without its effect would lose the message."""
        ...

    async def close(self) -> None:
        """Free the connections."""
        ...


class MemoryDedupCache:
    """One process's own cache of `size` keys for `ttl_s` seconds; right for one process, merely less useful for several."""

    def __init__(
        self, *, ttl_s: float = ONE_DAY_S, size: int = 100_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ttl_s = ttl_s
        self._size = size
        self._clock = clock
        self._until: OrderedDict[tuple[str, str], float] = OrderedDict()

    async def done(self, tenant: str, key: str) -> bool:
        return self._until.get((tenant, key), 0.0) > self._clock()

    async def mark_done(self, tenant: str, key: str) -> None:
        self._until[tenant, key] = self._clock() + self._ttl_s
        self._until.move_to_end((tenant, key))
        while len(self._until) > self._size:
            self._until.popitem(last=False)

    async def close(self) -> None:
        self._until.clear()


class RedisDedupCache:
    """A cache that all replicas share. A call takes `timeout_s` at most and never raises.

    When Redis does not answer, the cache is out for `pause_s`: it answers False without asking, so that not every event waits.
    Then one call asks again while the others go on without it. Each outage is logged once, with its end.
    """

    def __init__(
        self,
        url: str,
        prefix: str = "threadline",
        *,
        ttl_s: int = ONE_DAY_S,
        timeout_s: float = 0.25,
        pause_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client: Any = Redis.from_url(
            url, socket_timeout=2 * timeout_s, socket_connect_timeout=2 * timeout_s, retry=Retry(NoBackoff(), 0)
        )
        self._prefix = prefix
        self._ttl_s = ttl_s
        self._timeout_s = timeout_s
        self._pause_s = pause_s
        self._clock = clock
        self._out_since: float | None = None
        self._ask_again_at = 0.0
        self._calls: set[asyncio.Task[Any]] = set()

    async def done(self, tenant: str, key: str) -> bool:
        return bool(await self._ask(lambda: self._client.exists(self._key(tenant, key))))

    async def mark_done(self, tenant: str, key: str) -> None:
        await self._ask(lambda: self._client.set(self._key(tenant, key), b"", ex=self._ttl_s))

    async def close(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls)
        await self._client.aclose()

    def _key(self, tenant: str, key: str) -> str:
        # A digest, because keys come from outside and may be long. The tenant stays readable, and is part of the digest
        # too: "a" + "b:c" is not "a:b" + "c".
        digest = hashlib.sha256(f"{len(tenant)}:{tenant}:{key}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"{self._prefix}:done:{tenant}:{digest}"

    async def _ask(self, call: Callable[[], Awaitable[Any]]) -> Any:
        if self._out_since is not None:
            if self._clock() < self._ask_again_at:
                return None
            self._ask_again_at = self._clock() + self._pause_s
        # In a task of its own: cancelled while it connects to a frozen server, redis-py 8.1 may go on until its own limit.
        task = asyncio.create_task(self._call(call))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
        if not done:
            task.cancel()
        result = task.result() if done else TimeoutError(f"no answer within {self._timeout_s} s")
        if isinstance(result, BaseException):
            self._failed(result)
            return None
        self._answered()
        return result

    async def _call(self, call: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call()
        except (RedisError, OSError, TimeoutError) as error:
            return error

    def _failed(self, error: BaseException) -> None:
        self._ask_again_at = self._clock() + self._pause_s
        if self._out_since is None:
            self._out_since = self._clock()
            _log.warning("dedup_cache_unavailable", error=f"{type(error).__name__}: {error}")

    def _answered(self) -> None:
        if self._out_since is not None:
            _log.info("dedup_cache_available_again", after_s=round(self._clock() - self._out_since, 3))
            self._out_since = None
