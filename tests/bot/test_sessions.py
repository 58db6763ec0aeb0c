"""Agent sessions: processing while the agent works, with Slack's Stop button, and active when it does not."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.emulator.faults import FaultKind
from bot.render.sessions import PATIENT_TRIES
from tests.bot.bench import Bench
from tests.bot.desk import Desk, Jotted
from tests.waiting import until

METHOD = "agents.sessions.setStatus"


async def shown(bench: Bench, ts: str) -> tuple[str, str]:
    seen = await bench.people.status("#campaigns", ts)
    return seen["session_status"], seen["status"]


async def test_it_can_be_stopped_before_it_has_said_a_word_and_rests_with_its_answer(bench: Bench) -> None:
    await bench.people.fault("tool:campaign_performance", "delay", delay_s=1.5)
    ts = await bench.asked("@Threadline how did Brand Search do last week?\nand so on")

    async def processing() -> bool:
        return (await shown(bench, ts))[0] == "processing"

    await until(processing, "the session")
    assert (await bench.people.status("#campaigns", ts))["title"] == "how did Brand Search do last week?"
    await bench.answer(ts)
    await bench.idle()
    assert await shown(bench, ts) == ("active", "")


async def test_one_turn_begins_and_ends_its_session_once(bench: Bench) -> None:
    """The method's tier allows fifty calls a minute in a workspace."""
    ts = await bench.asked("@Threadline compare all campaigns last month")
    await bench.answer(ts)
    await bench.idle()
    calls = await bench.people.calls(METHOD)
    assert [each["args"]["status"] for each in calls] == ["processing", "active"]


async def test_each_turn_begins_one_whoever_ended_the_one_before(desk: Desk) -> None:
    """Another worker did: what a process remembers of a session says nothing."""
    for _ in range(2):
        await desk.channel.working(desk.thread, "is thinking…", about="a question")
    calls = await desk.people.calls(METHOD)
    assert [each["args"]["status"] for each in calls] == ["processing", "processing"]


async def test_a_turn_that_is_cut_off_or_fails_leaves_nothing_processing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: Any) -> AsyncIterator[Any]:
        raise LookupError("a bug")

    monkeypatch.setattr(bench.service.model, "stream", broken)
    ts = await bench.asked("@Threadline hello")
    await bench.answer(ts)
    await bench.idle()
    assert await shown(bench, ts) == ("active", "")


@pytest.mark.parametrize("fault", ["http_500", "ratelimited", "reset_after_commit"])
async def test_an_end_that_slack_did_not_take_is_told_again_and_the_answer_stands_there_once(
    bench: Bench, fault: FaultKind
) -> None:
    ts = await bench.asked("@Threadline hello")
    await bench.answer(ts)
    await bench.idle()
    calls = len(await bench.people.calls(METHOD))
    await bench.people.post_message("#campaigns", "@ada", "hello again", thread_ts=ts)

    async def begun() -> bool:
        return len(await bench.people.calls(METHOD)) > calls

    await until(begun, "the second turn")
    await bench.people.fault(METHOD, fault, times=2)
    await bench.answer(ts, count=2)
    await bench.idle()
    assert await shown(bench, ts) == ("active", "")
    assert len(await bench.replies(ts)) == 2


async def test_where_slack_never_takes_it_the_answer_is_not_held_up(desk: Desk) -> None:
    await desk.people.fault(METHOD, "http_500", times=99)
    notes = Jotted(attempt=PATIENT_TRIES + 1, intent_at=datetime.now(UTC) - timedelta(hours=1))
    await desk.channel.deliver(desk.thread, "Here.", delivery_id="d", draft=None, notes=notes)
    assert await desk.text() == "Here."


async def test_once_slack_has_retired_the_words_they_are_not_tried_again(desk: Desk) -> None:
    await desk.people.fault("assistant.threads.setStatus", "error", error="method_deprecated")
    for _ in range(3):
        await desk.channel.working(desk.thread, "is thinking…", about="a question")
    assert len(await desk.people.calls("assistant.threads.setStatus")) == 1
    seen = await desk.people.status("#campaigns", desk.root)
    assert (seen["session_status"], seen["title"]) == ("processing", "a question")


async def test_a_stream_that_runs_out_leaves_the_session_processing(desk: Desk) -> None:
    """The answer is still being made, and can be stopped."""
    draft = await desk.streamed(*["word " * 40] * 3, notes=Jotted(), expires=2)
    assert draft is not None
    assert draft.edited
    old = draft.model_copy(update={"began_at": datetime.now(UTC) - timedelta(minutes=5), "live": True, "edited": False})
    await desk.streamed("more " * 40, notes=Jotted(), draft=old)
    ended = [each["args"] for each in await desk.people.calls("chat.stopStream")]
    assert {each["session_status"] for each in ended} == {"processing"}
    await desk.channel.deliver(desk.thread, "All of it.", delivery_id="d", draft=draft, notes=Jotted())
    assert (await desk.people.status("#campaigns", desk.root))["session_status"] == "active"


async def test_what_stands_at_the_head_of_a_channel_has_no_session(desk: Desk) -> None:
    head = desk.thread.model_copy(update={"root": ""})
    await desk.channel.deliver(head, "Welcome.", delivery_id="w", draft=None, notes=Jotted())
    assert await desk.people.calls(METHOD) == []
    assert await desk.people.calls("assistant.threads.setStatus") == []
