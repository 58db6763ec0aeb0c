"""Paused workers, an emptied or stopped Redis, a stopped PostgreSQL, Slack failing: work waits and goes on (P4, P7, P14)."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.acceptance.stack import TENANT, Stack
from tests.servers import PostgresServer, RedisServer
from workflows.storage.base import RunState

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]
QUESTION = "@Threadline how did Brand Search do last week?"


@pytest.fixture
async def fragile(tmp_path: Path, private_postgres: PostgresServer, private_redis: RedisServer) -> AsyncIterator[Stack]:
    """A stack on servers of its own, which a test may stop."""
    async with Stack(
        tmp_path, dsn=private_postgres.dsn, redis_url=private_redis.url, redis_prefix="fragile", THREADLINE_LEASE_S="2"
    ) as stack:
        yield stack


async def _accepted(stack: Stack) -> None:
    async def accepted() -> bool:
        return bool(await stack.store.runs(tenant=TENANT))

    await stack.wait(accepted, "the message to be accepted")


async def _one_answer(stack: Stack, root: str) -> None:
    await stack.answered(root, timeout_s=40)
    await stack.settled()
    assert len(await stack.answers(root)) == 1
    ours = [message for message in await stack.thread(root) if message["user"] == "U0THREADLINE"]
    assert len(ours) == 1


async def test_with_default_settings_a_killed_workers_turn_is_finished_within_fifteen_seconds(
    tmp_path: Path, engine_database: str, redis_url: str, redis_prefix: str
) -> None:
    """P5: another continues within seconds, on by default."""
    defaults: dict[str, Any] = {"THREADLINE_LEASE_S": "10", "THREADLINE_POLL_S": "1"}
    async with Stack(
        tmp_path, dsn=engine_database, redis_url=redis_url, redis_prefix=redis_prefix, **defaults
    ) as stack:
        await stack.start("web")
        (holder,) = await stack.start("worker")
        await stack.slack.fault("tool:campaign_performance", "delay", delay_s=60)
        root = await stack.say(QUESTION)
        await stack.tool_taken("campaign_performance")
        await stack.start("worker")
        began = time.monotonic()
        await holder.kill()
        await stack.answered(root)
        assert time.monotonic() - began < 15  # the promise itself, not a measurement of speed
        await _one_answer(stack, root)


async def test_a_worker_paused_past_its_lease_writes_nothing_when_it_revives(stack: Stack) -> None:
    """P4: the loser is fenced, and no second answer appears."""
    await stack.start("web")
    (paused,) = await stack.start("worker")
    await stack.slack.fault("tool:campaign_performance", "delay", delay_s=1)
    root = await stack.say(QUESTION)
    await stack.tool_taken("campaign_performance")
    paused.send(signal.SIGSTOP)
    await stack.start("worker")
    await stack.answered(root)
    await stack.settled()  # the answer is seen before its run has ended
    (before,) = await stack.store.runs(tenant=TENANT)
    paused.send(signal.SIGCONT)

    async def noticed() -> bool:
        return any(word in paused.log.read_text() for word in ("run_lost", "worker_reaped"))

    await stack.wait(noticed, "the paused worker to notice")
    await _one_answer(stack, root)
    (after,) = await stack.store.runs(tenant=TENANT)
    assert (after.fence, after.step_seq, after.output) == (before.fence, before.step_seq, before.output)


@pytest.mark.parametrize("moment", ["before the claim", "in mid-turn"])
async def test_emptying_redis_loses_nothing_and_doubles_nothing(
    fragile: Stack, private_redis: RedisServer, moment: str
) -> None:
    """P14: the rows are the truth."""
    await fragile.start("web", 2)
    redis = Redis.from_url(private_redis.url)
    if moment == "in mid-turn":
        await fragile.start("worker", 2)
        await fragile.slack.fault("tool:campaign_performance", "delay", delay_s=1)
        root = await fragile.say(QUESTION)
        await fragile.tool_taken("campaign_performance")
        await redis.flushall()
        await fragile.say("and Spring Sale?", user="@ben", thread=root)
    else:
        root = await fragile.say(QUESTION)
        await _accepted(fragile)
        await redis.flushall()
        await fragile.start("worker", 2)
    await redis.aclose()
    await _one_answer(fragile, root)
    if moment == "in mid-turn":
        assert "Spring Sale" in (await fragile.answers(root))[0]["plain"]


async def test_without_redis_messages_are_still_accepted_and_answered(
    fragile: Stack, private_redis: RedisServer
) -> None:
    """P14: Redis makes it quick, not true."""
    await fragile.start("web", 2)
    await fragile.start("worker", 2)
    private_redis.stop()
    root = await fragile.say(QUESTION)
    await _one_answer(fragile, root)
    delivered = await fragile.slack.deliveries(ts=root)
    assert {attempt["status"] for delivery in delivered for attempt in delivery["attempts"]} == {200}
    private_redis.start()
    again = await fragile.say(QUESTION)
    await _one_answer(fragile, again)


async def test_without_postgres_slack_is_told_and_its_redelivery_is_answered(
    fragile: Stack, private_postgres: PostgresServer
) -> None:
    """P1: acked means kept; not stored means 5xx."""
    await fragile.start("web", 2)
    await fragile.start("worker", 2)
    private_postgres.kill()
    root = await fragile.say(QUESTION)

    async def refused() -> bool:
        attempts = [attempt for delivery in await fragile.slack.deliveries(ts=root) for attempt in delivery["attempts"]]
        return len(attempts) >= 2

    await fragile.wait(refused, "Slack to be refused", timeout_s=60)
    statuses = [
        attempt["status"] for delivery in await fragile.slack.deliveries(ts=root) for attempt in delivery["attempts"]
    ]
    assert 200 not in statuses
    assert 503 in statuses
    private_postgres.restart()
    for _ in range(3):
        await fragile.slack.advance_clock(61)
        await asyncio.sleep(0.1)
    await fragile.slack.advance_clock(301)
    await _one_answer(fragile, root)


async def test_a_turn_goes_on_after_postgres_has_restarted_under_it(
    fragile: Stack, private_postgres: PostgresServer
) -> None:
    """P14: the worker waits for storage instead of failing the turn."""
    await fragile.start("web")
    await fragile.start("worker", 2)
    await fragile.slack.fault("tool:campaign_performance", "delay", delay_s=1)
    root = await fragile.say(QUESTION)
    await fragile.tool_taken("campaign_performance")
    private_postgres.kill()
    private_postgres.restart()
    await _one_answer(fragile, root)


@pytest.mark.parametrize("method", ["chat.postMessage", "chat.startStream", "chat.stopStream"])
@pytest.mark.parametrize("kind", ["reset_after_commit", "http_500", "ratelimited"])
async def test_slack_failing_while_it_is_told_the_answer(stack: Stack, method: str, kind: str) -> None:
    """P7: one answer, once, also when the post was committed and the reply was lost."""
    await stack.start("web")
    await stack.start("worker", settings={"THREADLINE_DELIVERY_DEADLINE_S": "3"})
    await stack.slack.fault(method, kind, times=1, retry_after=1)  # type: ignore[arg-type]
    text = "@Threadline thanks" if method == "chat.postMessage" else "@Threadline how did all campaigns do last week?"
    root = await stack.say(text)
    await _one_answer(stack, root)
    assert not await stack.slack.faults(method)


async def test_a_turn_that_fails_says_so_and_the_next_message_is_answered(stack: Stack) -> None:
    """Point 10: nobody is left without a word."""
    await stack.start("web")
    (broken,) = await stack.start(
        "worker",
        settings={
            "THREADLINE_MODEL": "anthropic:none",
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        },
    )
    root = await stack.say(QUESTION)

    async def told() -> bool:
        return any("could not finish" in message["plain"] for message in await stack.thread(root))

    await stack.wait(told, "the failure to be told", timeout_s=60)
    await broken.terminate()
    await stack.start("worker")
    await stack.say("and now?  How did Brand Search do last week?", thread=root)
    await stack.answered(root)
    assert "Brand Search" in (await stack.answers(root))[0]["plain"]


async def test_stop_ends_the_turn_and_what_is_said_afterwards_is_answered(stack: Stack) -> None:
    """Stop bypasses the queue; a later message is a new turn."""
    await stack.start("web")
    await stack.start("worker")
    await stack.slack.fault("tool:campaign_performance", "delay", delay_s=30)
    root = await stack.say(QUESTION)
    await stack.tool_taken("campaign_performance")
    await stack.slack.stop("C0CAMPAIGNS", root, "@ada")

    async def stopped() -> bool:
        return any("Stopped" in message["plain"] for message in await stack.thread(root))

    await stack.wait(stopped, "the stop to be confirmed")
    assert [run.state for run in await stack.store.runs(tenant=TENANT, workflow="agentic-loop")] == [RunState.CANCELLED]
    await stack.say("how did Spring Sale do last week?", thread=root)
    (answer,) = await stack.answered(root)
    assert "Spring Sale" in answer["plain"]
    assert "Brand Search" not in answer["plain"].split("\n")[0]
