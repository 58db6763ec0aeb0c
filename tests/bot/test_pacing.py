"""About one message a second in each channel, over all replicas; and nobody tries before Slack said so."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest

from agent.channel import ChannelUnavailableError
from agent.thread import Thread
from bot.clients import Clients
from bot.credentials import OneWorkspace
from bot.emulator import Emulator, EmulatorConfig
from bot.emulator.client import EmulatorClient
from bot.render import SlackChannel
from bot.render.pacing import BURST, MemoryPacer, Pacer, RedisPacer
from tests.bot.desk import TOKEN, Jotted

POST = "chat.postMessage"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_burst_passes_and_then_one_message_a_second() -> None:
    clock = Clock()
    pacer = MemoryPacer(clock=clock)
    assert [await pacer.take("T1", "C1", POST) for _ in range(BURST)] == [(True, 0.0)] * BURST
    assert await pacer.take("T1", "C1", POST) == (True, 1.0)
    assert await pacer.take("T1", "C1", POST) == (False, 2.0), "no place is taken by who would wait too long"
    clock.now += 1.0
    assert await pacer.take("T1", "C1", POST) == (True, 1.0)
    assert await pacer.take("T1", "C1", POST, patience_s=0.1) == (False, 2.0)
    assert await pacer.take("T1", "C2", POST) == (True, 0.0), "another channel"
    assert await pacer.take("T2", "C1", POST) == (True, 0.0), "another workspace"
    clock.now += 100
    assert [(await pacer.take("T1", "C1", POST))[1] for _ in range(BURST)] == [0.0] * BURST, (
        "rest is no credit beyond a burst"
    )
    assert (await pacer.take("T1", "C1", POST))[1] == 1.0


async def test_a_hold_is_for_one_method_of_one_workspace_and_the_longest_counts() -> None:
    clock = Clock()
    pacer = MemoryPacer(clock=clock)
    await pacer.hold("T1", POST, 30)
    await pacer.hold("T1", POST, 5)
    assert await pacer.held("T1", POST) == 30
    assert await pacer.take("T1", "C1", POST) == (False, 30)
    assert [await pacer.held("T2", POST), await pacer.held("T1", "chat.update")] == [0, 0]
    clock.now += 31
    assert await pacer.take("T1", "C1", POST) == (True, 0.0)


@pytest.fixture
async def replicas(redis_url: str, redis_prefix: str) -> AsyncIterator[Callable[[], RedisPacer]]:
    made: list[RedisPacer] = []

    def replica() -> RedisPacer:
        made.append(RedisPacer(redis_url, redis_prefix))
        return made[-1]

    yield replica
    for pacer in made:
        await pacer.close()


async def test_replicas_share_the_places_of_a_channel(replicas: Callable[[], RedisPacer]) -> None:
    one, two = replicas(), replicas()
    found = await asyncio.gather(*(pacer.take("T1", "C1", POST) for pacer in (one, two) * 10))
    taken = sorted(wait for took, wait in found if took)
    assert len(taken) <= BURST + 2, "those at once, and those whose place comes within patience"
    assert taken[:BURST] == [0.0] * BURST
    assert taken[BURST] > 0.5
    assert all(wait > 0 for took, wait in found if not took)
    assert await one.take("T2", "C1", POST) == (True, 0.0)


async def test_what_slack_asked_of_one_replica_every_replica_keeps(replicas: Callable[[], RedisPacer]) -> None:
    one, two = replicas(), replicas()
    await one.hold("T1", POST, 30)
    await one.hold("T1", POST, 3)
    assert 29 < await two.held("T1", POST) <= 30
    took, wait = await two.take("T1", "C1", POST)
    assert not took
    assert 29 < wait <= 30
    assert await two.held("T2", POST) == 0


async def test_no_key_is_without_an_end(replicas: Callable[[], RedisPacer], redis_prefix: str) -> None:
    pacer = replicas()
    await pacer.take("T1", "C1", POST)
    await pacer.hold("T1", POST, 30)
    keys = await pacer._client.keys(f"{redis_prefix}:pace:*")
    assert len(keys) == 2
    assert all([await pacer._client.pttl(key) > 0 for key in keys])


async def test_without_redis_each_process_goes_by_itself() -> None:
    pacer = RedisPacer("redis://127.0.0.1:1/0", timeout_s=0.1)
    assert [await pacer.take("T1", "C1", POST) for _ in range(BURST)] == [(True, 0.0)] * BURST
    assert (await pacer.take("T1", "C1", POST, patience_s=0.1))[0] is False
    await pacer.hold("T1", "chat.update", 30)
    assert await pacer.held("T1", "chat.update") > 29
    await pacer.close()


class Storm:
    """Two replicas that answer in a local Slack which says 429."""

    def __init__(self, emulator: Emulator, people: EmulatorClient, pacers: tuple[Pacer, Pacer], root: str) -> None:
        self.people = people
        self.thread = Thread(tenant="T0NORTHWIND", channel="C0CAMPAIGNS", root=root)
        url = emulator.api_url
        self.channels = [
            SlackChannel(Clients(OneWorkspace(TOKEN, api_url=url), api_url=url), deadline_s=8, pacer=pacer) for pacer in pacers
        ]  # fmt: skip

    async def deliver(self, replica: int, delivery_id: str, notes: Jotted) -> None:
        await self.channels[replica].deliver(self.thread, "words", delivery_id=delivery_id, draft=None, notes=notes)

    async def posted(self) -> int:
        return len(await self.people.calls(POST))


@pytest.fixture
async def storm(replicas: Callable[[], RedisPacer]) -> AsyncIterator[Storm]:
    emulator = Emulator(EmulatorConfig(signing_secret="s", bot_token=TOKEN), environment="test")
    async with emulator, EmulatorClient(emulator.url) as people:
        root = await people.post_message("#campaigns", "@ada", "hello")
        yield Storm(emulator, people, (replicas(), replicas()), root)


async def test_in_a_storm_of_429_one_call_is_refused_and_nobody_else_tries(storm: Storm) -> None:
    """Case 29. Each answer is still delivered once when the storm is over."""
    await storm.people.fault(POST, "ratelimited", times=50, retry_after=1)
    notes = [Jotted() for _ in range(4)]
    for number, each in enumerate(notes):
        with pytest.raises(ChannelUnavailableError) as refused:
            await storm.deliver(number % 2, f"d{number}", each)
        assert 0 < (refused.value.retry_after_s or 0) <= 1
        assert not refused.value.maybe_posted
    assert await storm.posted() == 1
    await storm.people.clear_faults()
    pacer = storm.channels[1]._posting._pacer

    async def over() -> bool:
        return await pacer.held("T0NORTHWIND", POST) == 0

    await storm.people.wait_for(over, what="the end of the hold")
    for number, each in enumerate(notes):
        each.attempt = 2
        each.intent_at = datetime.now(UTC)
        await storm.deliver(number % 2, f"d{number}", each)
    thread = await storm.people.messages("#campaigns", thread_ts=storm.thread.root)
    assert sorted(m["metadata"]["event_payload"]["delivery_id"] for m in thread if m["metadata"]) == [
        "d0",
        "d1",
        "d2",
        "d3",
    ]


@pytest.mark.parametrize(
    "code", ["ratelimited", "fatal_error", "internal_error", "channel_not_found", "some_new_error"]
)
async def test_ok_false_is_never_taken_for_success(storm: Storm, code: str) -> None:
    """Slack answers many failures with HTTP 200."""
    await storm.people.fault(POST, "error", error=code, times=1)
    with pytest.raises(Exception, match=r"Slack"):
        await storm.deliver(0, "d", Jotted())
    thread = await storm.people.messages("#campaigns", thread_ts=storm.thread.root)
    assert [message for message in thread if message["is_bot"]] == []
