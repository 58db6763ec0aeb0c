"""The dedup cache: it may forget, it never lies, and its server's trouble is not its callers'."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog
from redis.asyncio import Redis

from tests.servers import RedisServer
from tests.waiting import until
from workflows.dedup import DedupCache, MemoryDedupCache, RedisDedupCache


@pytest.fixture(params=["memory", "redis"])
async def cache(request: pytest.FixtureRequest) -> AsyncIterator[DedupCache]:
    cache: DedupCache = MemoryDedupCache()
    if request.param == "redis":
        url, prefix = request.getfixturevalue("redis_url"), request.getfixturevalue("redis_prefix")
        cache = RedisDedupCache(url, prefix, timeout_s=10)
    yield cache
    await cache.close()


async def test_only_what_was_marked_is_done(cache: DedupCache) -> None:
    assert not await cache.done("T1", "C1:171.5")
    assert not await cache.done("T1", "C1:171.5")  # asking marks nothing
    await cache.mark_done("T1", "C1:171.5")
    assert await cache.done("T1", "C1:171.5")
    assert not await cache.done("T1", "C1:171.6")


async def test_marking_twice_is_harmless(cache: DedupCache) -> None:
    await cache.mark_done("T1", "k")
    await cache.mark_done("T1", "k")
    assert await cache.done("T1", "k")


@pytest.mark.parametrize(("tenant", "key"), [("T2", "b:c"), ("T1:b", "c"), ("T1", "c")])
async def test_tenants_never_share_a_key(cache: DedupCache, tenant: str, key: str) -> None:
    await cache.mark_done("T1", "b:c")
    assert not await cache.done(tenant, key)


@pytest.mark.parametrize("key", ["", "x" * 100_000, "Grüße 🚀", "\ud83d", "a b\r\nDEL *"])
async def test_any_text_is_a_key(cache: DedupCache, key: str) -> None:
    await cache.mark_done("T1", key)
    assert await cache.done("T1", key)
    assert not await cache.done("T1", key + "!")


async def test_replicas_share_what_is_done(redis_url: str, redis_prefix: str) -> None:
    first, second = (RedisDedupCache(redis_url, redis_prefix, timeout_s=10) for _ in range(2))
    await first.mark_done("T1", "k")
    assert await second.done("T1", "k")
    await first.close()
    await second.close()


async def test_every_key_has_a_time_to_live(redis_url: str, redis_prefix: str) -> None:
    cache = RedisDedupCache(redis_url, redis_prefix, ttl_s=60, timeout_s=10)
    await cache.mark_done("T1", "k")
    client: Any
    async with Redis.from_url(redis_url, decode_responses=True) as client:
        (key,) = await client.keys(f"{redis_prefix}:*")
        assert key.startswith(f"{redis_prefix}:done:T1:")
        assert 0 < await client.ttl(key) <= 60
    await cache.close()


async def test_memory_forgets_after_its_time_and_above_its_size() -> None:
    now = 0.0
    cache = MemoryDedupCache(ttl_s=10, size=2, clock=lambda: now)
    for key in ("a", "b", "c"):
        await cache.mark_done("T1", key)
    assert [await cache.done("T1", key) for key in ("a", "b", "c")] == [False, True, True]
    now = 10.0
    assert not await cache.done("T1", "c")


async def test_an_emptied_server_means_not_done(private_redis: RedisServer) -> None:
    cache = RedisDedupCache(private_redis.url, timeout_s=10)
    await cache.mark_done("T1", "k")
    async with Redis.from_url(private_redis.url) as client:
        await client.flushall()
    assert not await cache.done("T1", "k")
    await cache.close()


async def test_a_server_that_is_down_means_not_done_at_once_and_one_log_line(private_redis: RedisServer) -> None:
    cache = RedisDedupCache(private_redis.url, timeout_s=10, pause_s=60)
    await cache.mark_done("T1", "k")
    private_redis.kill()
    with structlog.testing.capture_logs() as logs:
        async with asyncio.timeout(9):  # less than one call that waits
            for _ in range(100):
                assert not await cache.done("T1", "k")
                await cache.mark_done("T1", "other")
    assert [entry["event"] for entry in logs] == ["dedup_cache_unavailable"]
    await cache.close()


async def test_a_frozen_server_delays_one_event_by_a_quarter_second_and_no_other(private_redis: RedisServer) -> None:
    cache = RedisDedupCache(private_redis.url, pause_s=60)
    await cache.mark_done("T1", "k")
    private_redis.pause()
    async with asyncio.timeout(10):  # if each waited they would take 25 s
        for _ in range(101):
            assert not await cache.done("T1", "k")
    private_redis.resume()
    await cache.close()


async def test_events_that_come_together_during_a_freeze_wait_together(private_redis: RedisServer) -> None:
    cache = RedisDedupCache(private_redis.url)
    private_redis.pause()
    async with asyncio.timeout(10):  # one after another they would take 50 s
        answers = await asyncio.gather(*(cache.done("T1", str(number)) for number in range(200)))
    assert not any(answers)
    private_redis.resume()
    await cache.close()


async def test_the_cache_is_used_again_after_the_outage(private_redis: RedisServer) -> None:
    cache = RedisDedupCache(private_redis.url, timeout_s=10, pause_s=0.05)
    await cache.mark_done("T1", "k")
    private_redis.kill()
    assert not await cache.done("T1", "k")
    private_redis.start()
    with structlog.testing.capture_logs() as logs:
        await until(lambda: cache.done("T1", "k"), "the mark is seen again")
    assert [entry["event"] for entry in logs] == ["dedup_cache_available_again"]
    await cache.close()
