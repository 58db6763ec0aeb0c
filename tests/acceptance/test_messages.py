"""Messages over two web replicas, two workers, one PostgreSQL, one Redis, as separate processes."""

from pathlib import Path
from typing import Literal

import pytest

from tests.acceptance.stack import CHANNEL, TENANT, Stack
from workflows.storage.base import RunState, Status

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
QUESTION = "@Threadline how did Brand Search do last week?"


@pytest.mark.parametrize("first", ["app_mention", "message"])
async def test_four_deliveries_and_the_mention_pair_in_both_orders_make_one_answer(
    first: Literal["app_mention", "message"], tmp_path: Path, engine_database: str, redis_url: str, redis_prefix: str
) -> None:
    """P2: one message, one effect."""
    async with Stack(
        tmp_path, dsn=engine_database, redis_url=redis_url, redis_prefix=redis_prefix, mention_order=first
    ) as stack:
        await stack.start("web", 2)
        await stack.start("worker", 2)
        ts = await stack.say(QUESTION)
        text = QUESTION.replace("@Threadline", "<@U0THREADLINE>")
        base = {"user": "U0ADA", "channel": CHANNEL, "ts": ts, "event_ts": ts, "text": text}
        pair = [{**base, "type": "app_mention"}, {**base, "type": "message", "channel_type": "channel"}]
        await stack.slack.send_event(pair if first == "app_mention" else pair[::-1], copies=4)

        async def all_delivered() -> bool:
            found = await stack.slack.deliveries(ts=ts)
            return sum(len(delivery["attempts"]) for delivery in found) >= 10 and all(
                delivery["done"] for delivery in found
            )

        await stack.wait(all_delivered, "all copies to be delivered")
        await stack.answered(ts)
        await stack.settled()
        statuses = [
            attempt["status"] for delivery in await stack.slack.deliveries(ts=ts) for attempt in delivery["attempts"]
        ]
        assert set(statuses) == {200}
        assert (
            len(
                {attempt["url"] for delivery in await stack.slack.deliveries(ts=ts) for attempt in delivery["attempts"]}
            )
            == 2
        )
        posted = [
            call
            for call in await stack.slack.calls()
            if call["method"] in ("chat.postMessage", "chat.startStream") and call["result"]["ok"]
        ]
        assert len(posted) == 1
        assert len(await stack.store.runs(tenant=TENANT)) == 1


async def test_three_messages_during_a_slow_tool_are_taken_in_before_the_next_model_call(stack: Stack) -> None:
    """P3: nothing said mid-turn is dropped."""
    await stack.start("web", 2)
    await stack.start("worker", 2)
    await stack.slack.fault("tool:campaign_performance", "delay", delay_s=2)
    root = await stack.say(QUESTION)
    await stack.tool_taken("campaign_performance")
    asked = (
        "and Spring Sale last month?",
        "and what is the budget of Camping Stories?",
        "and Newsletter Win-Back yesterday?",
    )
    for text in asked:
        await stack.say(text, user="@ben", thread=root)
    (answer,) = await stack.answered(root)
    await stack.settled()
    assert len(await stack.answers(root)) == 1
    positions = [
        answer["plain"].find(name) for name in ("Brand Search", "Spring Sale", "Camping Stories", "Newsletter Win-Back")
    ]
    assert -1 not in positions
    assert positions == sorted(positions)


async def test_threads_and_direct_messages_do_not_share_a_conversation(stack: Stack) -> None:
    """Cases 9 and 10: the key is channel and root."""
    await stack.start("web")
    await stack.start("worker", 2)
    roots: list[str] = []
    for said in ("how did Brand Search do last week?", "and the week before?"):
        root = await stack.slack.post_message("dm:@ada", "@ada", said)
        roots.append(root)

        async def answered(root: str = root) -> bool:
            return len(await stack.slack.messages("dm:@ada", thread_ts=root)) >= 2

        await stack.wait(answered, "the direct message to be answered")
        await stack.settled()  # a line that comes before that belongs to the same thought
    answers = [(await stack.slack.messages("dm:@ada", thread_ts=root))[1]["plain"] for root in roots]
    assert "Brand Search" in answers[0].splitlines()[0]
    assert "Brand Search" not in answers[1].splitlines()[0]


async def test_a_message_while_all_workers_are_down_is_answered_when_one_starts(stack: Stack) -> None:
    """P1 and case 6: acked means kept."""
    await stack.start("web")
    root = await stack.say(QUESTION)

    async def accepted() -> bool:
        return bool(await stack.store.runs(tenant=TENANT, states=[RunState.READY]))

    await stack.wait(accepted, "the message to be accepted")
    await stack.start("worker")
    assert len(await stack.answered(root)) == 1


async def test_a_deploy_hands_the_turn_over_at_the_next_step_boundary(stack: Stack) -> None:
    """SIGTERM: no attempt is counted, nothing is run again."""
    await stack.start("web")
    (leaving,) = await stack.start("worker", settings={"THREADLINE_LEASE_S": "30"})
    await stack.slack.fault("tool:campaign_performance", "delay", delay_s=1)
    root = await stack.say(QUESTION)
    await stack.tool_taken("campaign_performance")
    await stack.start("worker", settings={"THREADLINE_LEASE_S": "30"})
    assert await leaving.terminate() == 0
    assert len(await stack.answered(root, timeout_s=10)) == 1
    (run,) = await stack.store.runs(tenant=TENANT)
    assert [record.status for record in await stack.store.load(run.run_id)].count(Status.INTERRUPTED) == 0


async def test_a_reply_delivered_before_its_mention_is_taken_up(stack: Stack) -> None:
    """P3: the mention was refused and comes again later; what was said in its thread meanwhile is not lost."""
    await stack.start("worker")
    stack.emulator.set_request_url("http://127.0.0.1:9/slack/events")
    root = await stack.say(QUESTION)

    async def refused() -> bool:
        return all(len(delivery["attempts"]) >= 2 for delivery in await stack.slack.deliveries(ts=root))

    await stack.wait(refused, "the mention to be refused twice: Slack delivers it again after a minute")
    await stack.start("web", 2)
    reply = await stack.say("and Spring Sale?", user="@ben", thread=root)

    async def heard() -> bool:
        found = await stack.slack.deliveries(ts=reply)
        return bool(found) and all(delivery["delivered"] for delivery in found)

    await stack.wait(heard, "the reply to be delivered")
    assert not await stack.store.runs(tenant=TENANT)
    await stack.slack.advance_clock(400)
    await stack.settled_after(root)
    text = " ".join(answer["plain"] for answer in await stack.answers(root))
    assert "Brand Search" in text
    assert "Spring Sale" in text
