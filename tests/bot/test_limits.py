"""Slack's own limits: the product waits as long as it is told, and says everything once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.emulator.limits import POST
from bot.render.cards import APPROVE
from tests.bot.bench import NORTHWIND, Bench
from tests.bot.test_approvals import changes, make_admin
from tests.bot.test_direct_approvals import WISH, copies
from tests.bot.test_listening import put
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


@pytest.mark.parametrize(
    ("method", "lively", "words"),
    [("chat.postMessage", 5, "thanks"), ("chat.postMessage", 40, "thanks"), ("chat.startStream", 40, "how did Brand Search do last week?")],
)  # fmt: skip
async def test_a_lost_reply_is_found_page_by_page_where_slack_gives_one_a_minute(
    tmp_path: Path, method: str, lively: int, words: str
) -> None:
    """An app sold outside the Marketplace: looking from the first page at each try would never come to an end."""
    async with Bench(tmp_path, {}, commercial=True) as bench:
        await bench.people.fault(method, "reset_after_commit", times=1)
        ts = await bench.asked(f"@Threadline {words}")

        async def lost() -> bool:
            return not await bench.people.faults(method)

        await until(lost, "the reply to be lost")
        for number in range(lively):  # said before the answer arrived, so that it is on a later page
            put(bench, f"{float(ts) + 0.0001 * (number + 1):.6f}", f"chat {number}", root=ts)
        async for _ in minutes(bench, 15):
            if not await live(bench):
                break
        assert not await live(bench), "still looking for its own message"
        assert len([each for each in await bench.people.messages("#campaigns", thread_ts=ts) if each["is_bot"]]) == 1


async def test_a_lost_copy_of_a_card_is_found_where_slack_gives_a_page_a_minute(tmp_path: Path) -> None:
    """Three messages in three conversations: looking for each at every try would leave no page for the last."""
    async with Bench(tmp_path, {}, commercial=True) as bench:
        make_admin(bench, "U0CHLOE")
        await bench.people.fault("chat.postMessage", "delay", delay_s=0.01, times=2)
        await bench.people.fault("chat.postMessage", "reset_after_commit", times=1)
        await bench.people.post_message("dm:@ben", "@ben", WISH)

        async def lost() -> bool:
            return not await bench.people.faults("chat.postMessage")

        await until(lost, "the copy to be lost")
        async for _ in minutes(bench, 8, "conversations.history"):
            if not await live(bench):
                break
        assert not await live(bench), "still looking for its own card"
        [[adas], [_]] = [await copies(bench, user) for user in ("ada", "chloe")]
        await bench.people.click("dm:@ada", adas["ts"], APPROVE, "@ada")
        await bench.idle()
        assert len(await changes(bench)) == 1


async def live(bench: Bench) -> bool:
    return any(run.state.live for run in await bench.service.engine.runs(tenant=NORTHWIND))


async def minutes(bench: Bench, count: int, method: str = "conversations.replies") -> AsyncIterator[int]:
    """One after the other, as soon as the page of the one before was asked for."""
    for minute in range(count):
        asked = len(await bench.people.calls(method))
        yield minute
        await bench.time_passes(61)

        async def more(asked: int = asked) -> bool:
            return len(await bench.people.calls(method)) > asked or not await live(bench)

        await until(more, "the next page to be asked for")
