"""What is taken in, and what ends: deletions that overtake, removals of the app, replies before their mention."""

from tests.bot.bench import BOT, NORTHWIND, Bench, envelope, message_event
from workflows import RunState

CHANNEL = "C0CAMPAIGNS"
ASKED = f"<@{BOT}> which campaigns do we have?"


async def test_a_deletion_that_overtakes_a_redelivery_is_respected(bench: Bench) -> None:
    """Case 12: the message was refused, deleted, and is then delivered again."""
    ts = "1795990000.000100"
    said = message_event(ASKED, ts=ts, channel=CHANNEL, user="U0ADA")
    gone = {
        "type": "message", "subtype": "message_deleted", "channel": CHANNEL, "deleted_ts": ts, "ts": "1795990001.000100",
        "previous_message": {**said, "type": "message"},
    }  # fmt: skip
    assert (await bench.post_json(envelope(gone))).status == 200
    assert (await bench.post_json(envelope(said))).status == 200
    assert await bench.service.engine.runs(tenant=NORTHWIND) == []


async def test_removing_the_app_ends_schedules_and_running_work(bench: Bench) -> None:
    await bench.people.command("#campaigns", "@ada", "/summaries", "every monday 9:00")
    await bench.people.fault("tool:list_campaigns", "delay", delay_s=30)
    await bench.people.post_message("#campaigns", "@ada", "@Threadline which campaigns do we have?")
    engine = bench.service.engine

    async def running() -> bool:
        return not await bench.people.faults("tool:list_campaigns")

    await bench.people.wait_for(running, what="the tool to run")
    await bench.people.uninstall()

    async def unscheduled() -> bool:
        return not await bench.service.store.schedules(tenant=NORTHWIND)

    await bench.people.wait_for(unscheduled, what="the schedule to end")

    async def ended() -> bool:
        return not await engine.runs(
            tenant=NORTHWIND, workflow="agentic-loop", states=[RunState.RUNNING, RunState.READY]
        )

    await bench.people.wait_for(ended, what="the work to end")
    assert [run.state for run in await engine.runs(tenant=NORTHWIND, workflow="agentic-loop")] == [RunState.CANCELLED]


async def test_a_reply_heard_before_its_mention_is_taken_up_with_it_and_older_ones_are_not(bench: Bench) -> None:
    root = await bench.people.post_message("#campaigns", "@ben", "numbers, anybody?")
    before = message_event(
        "an older remark", ts=f"{float(root) + 0.1:.6f}", channel=CHANNEL, user="U0BEN", thread_ts=root
    )
    mention = message_event(ASKED, ts=f"{float(root) + 0.2:.6f}", channel=CHANNEL, user="U0ADA", thread_ts=root)
    after = message_event(
        "and how did Spring Sale do last week?",
        ts=f"{float(root) + 0.3:.6f}",
        channel=CHANNEL,
        user="U0BEN",
        thread_ts=root,
    )
    for event in (before, after, mention, after):
        assert (await bench.post_json(envelope(event))).status == 200
    await bench.answer(root)
    await bench.idle()
    said = " ".join(message["plain"] for message in await bench.replies(root))
    assert "Spring Sale" in said
    assert "older remark" not in said
