"""Slack's own limits: the product waits as long as it is told, and says everything once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.emulator.limits import POST
from tests.bot.bench import NORTHWIND, Bench
from tests.waiting import until

QUESTION = "@Threadline how did Brand Search do last week?"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, {}, rate_limits=True) as bench:
        yield bench


async def test_an_answer_waits_for_a_channel_and_a_method_that_are_used_up(bench: Bench) -> None:
    limits = bench.emulator.slack.limits
    for _ in range(60):
        limits.take(POST, place=NORTHWIND, channel="C0CAMPAIGNS")
    for _ in range(20):
        limits.take("chat.startStream", place=NORTHWIND)
    ts = await bench.asked(QUESTION)

    async def refused() -> bool:
        return any(each["result"].get("error") == "ratelimited" for each in await bench.people.calls(POST))

    await until(refused, "the first refusal")
    assert await bench.replies(ts) == []
    await bench.time_passes(61)
    assert "Brand Search" in (await bench.answer(ts))["plain"]
    await bench.idle()
    assert len(await bench.replies(ts)) == 1


async def test_a_conversation_of_several_people_is_answered_where_the_app_is_mentioned(bench: Bench) -> None:
    place = "dm:@ada,@ben"
    ts = await bench.asked(QUESTION, channel=place)
    assert "Brand Search" in (await bench.answer(ts, place))["plain"]
    assert len(await bench.idle()) == 1
