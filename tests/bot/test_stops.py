"""Stop, at each moment: what is said, what the cards say, and what happens to money."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent.messages import MESSAGES
from agent.models.base import ModelEvent, ModelRequest, ModelRequestError
from bot.render.cards import APPROVE, OUTCOMES
from bot.service import Service
from tests.bot.bench import NORTHWIND, Bench, Json, envelope, message_event
from tests.bot.listening import Listener, later
from tests.bot.test_approvals import ask, card, changes, clickable, state
from tests.waiting import until
from workflows import RunState
from workflows.storage import Select

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
BUDGET = "@Threadline raise the daily budget of Brand Search to 150"


async def used_up(bench: Bench, method: str) -> None:
    """Once a fault was met: whoever met it is still waiting."""

    async def gone() -> bool:
        return not await bench.people.faults(method)

    await until(gone, f"{method} to be called")


async def stop(bench: Bench, ts: str, user: str = "@ben") -> None:
    await bench.people.stop("#campaigns", ts, user)
    await bench.settled(type="agent_session_stopped")


async def cards(bench: Bench, ts: str) -> list[Json]:
    return [each for each in await bench.replies(ts) if "approval:" in str(each["metadata"])]


async def said(bench: Bench, ts: str) -> list[str]:
    return [each["plain"] for each in await bench.replies(ts) if "approval:" not in str(each["metadata"])]


class TestWhileItAsks:
    @BOTH
    async def test_what_a_stopped_turn_was_asking_for_cannot_be_approved_any_more(self, bench: Bench) -> None:
        await bench.people.fault("chat.postMessage", "delay", delay_s=1, times=1)
        ts = await bench.asked(BUDGET, user="@ben")
        await used_up(bench, "chat.postMessage")
        await stop(bench, ts)
        await bench.idle()
        for shown in await cards(bench, ts):
            assert not clickable(shown)
            assert await state(bench, shown) == "expired"
            await bench.click(
                str(shown["metadata"]["event_payload"]["delivery_id"]).removeprefix("approval:"), user="U0ADA"
            )
        await bench.idle()
        assert await changes(bench) == []
        assert await said(bench, ts) == ["Stopped, as you asked. No campaign was changed."]

    async def test_a_click_before_the_notice_can_be_given_changes_nothing(self, bench: Bench) -> None:
        """Slack is busy for a moment, and the card stands there: the thread must not say one thing and money another."""
        await bench.people.fault("chat.postMessage", "delay", delay_s=1, times=1)
        ts = await bench.asked(BUDGET, user="@ben")
        await used_up(bench, "chat.postMessage")
        await bench.people.fault("chat.postMessage", "ratelimited", times=2)
        await stop(bench, ts)

        async def there() -> bool:
            return bool(await cards(bench, ts))

        await until(there, "the card")
        [shown] = await cards(bench, ts)
        await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
        await bench.idle()
        assert await changes(bench) == []
        assert not clickable((await cards(bench, ts))[0])
        assert await said(bench, ts) == ["Stopped, as you asked. No campaign was changed."]


class TestAfterAnApproval:
    async def test_what_was_approved_and_is_not_done_says_so_on_its_card(self, bench: Bench) -> None:
        """Stopped between the click and the worker."""
        ts, shown = await ask(bench)
        worker = bench.service.engine.worker
        assert worker is not None
        await worker.stop()
        await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
        await stop(bench, ts)
        async with Service(bench.settings(), worker=True, clock=False):
            await bench.idle()
        assert await changes(bench) == []
        now = await card(bench, ts)
        assert not clickable(now)
        assert OUTCOMES["stopped"].split(": ")[-1] in now["plain"]

    async def test_what_was_done_says_so_although_its_turn_was_stopped_afterwards(self, bench: Bench) -> None:
        ts, shown = await ask(bench)
        await bench.people.fault("chat.update", "delay", delay_s=2, times=2)
        await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")

        async def changed() -> bool:
            return bool(await changes(bench))

        await until(changed, "the change")
        await stop(bench, ts)
        await bench.idle()
        assert len(await changes(bench)) == 1
        now = await card(bench, ts)
        assert not clickable(now)
        assert OUTCOMES["done"] in now["plain"]

    async def test_a_turn_begun_by_an_approval_can_be_stopped_although_there_was_a_stop_before(
        self, bench: Bench
    ) -> None:
        ts, shown = await ask(bench)
        await bench.people.fault("tool:campaign_performance", "delay", delay_s=2)
        await bench.people.post_message("#campaigns", "@ben", "how did Spring Sale do last week?", thread_ts=ts)
        await used_up(bench, "tool:campaign_performance")
        await bench.people.command("#campaigns", "@ada", "/threadline", "stop")
        await bench.idle()
        await bench.people.fault("tool:change_budget", "delay", delay_s=4)
        await bench.people.click("#campaigns", shown["ts"], APPROVE, "@ada")
        await used_up(bench, "tool:change_budget")
        told = await bench.people.command("#campaigns", "@ada", "/threadline", "stop")
        assert told["response"]["text"] == "1 conversation was stopped."
        newest, *_ = [run for run in await bench.idle() if run.workflow == "agentic-loop"]
        assert newest.state is RunState.CANCELLED


class TestWhatFollows:
    @pytest.mark.parametrize("how", ["command", "button"])
    async def test_who_asks_something_else_at_once_is_answered_that(self, bench: Bench, how: str) -> None:
        await bench.people.fault("tool:campaign_performance", "delay", delay_s=2, times=1)
        root = await bench.asked("@Threadline how did Brand Search do last week?")
        await used_up(bench, "tool:campaign_performance")
        await bench.people.fault("chat.postMessage", "delay", delay_s=0.5, times=1)
        if how == "command":
            await bench.people.command("#campaigns", "@ada", "/threadline", "stop")
        else:
            await stop(bench, root, "@ada")
        await bench.people.post_message("#campaigns", "@ada", "how did Spring Sale do last week?", thread_ts=root)
        await bench.answer(root, count=2)
        await bench.idle()
        (answer,) = [each for each in await said(bench, root) if "Stopped" not in each]
        assert "Spring Sale" in answer.split("\n")[0]
        assert "could not" not in answer

    async def test_the_apology_stands_with_the_turn_it_is_of(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Asked again before the apology is posted: it must not stand below the new question, where the model would read it as an answer."""
        original, calls = bench.service.model.stream, []

        def stream(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            calls.append(request)
            return original(request) if len(calls) > 1 else _refused()

        monkeypatch.setattr(bench.service.model, "stream", stream)
        await bench.people.fault("chat.postMessage", "delay", delay_s=1, times=1)
        root = await bench.asked("@Threadline how did Brand Search do last week?")
        await used_up(bench, "chat.postMessage")
        await bench.people.post_message("#campaigns", "@ada", "how did Spring Sale do last week?", thread_ts=root)
        await bench.answer(root, count=2)
        await bench.idle()
        rows = await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND}, order=("position", "at")))
        texts = [str(row["parts"]) for row in rows if row["role"] != "tool" and "tool_call" not in str(row["parts"])]
        assert ["Brand Search" in texts[0], "could not finish" in texts[1], "Spring Sale" in texts[2]] == [True] * 3


async def _refused() -> AsyncIterator[ModelEvent]:
    raise ModelRequestError("400")
    yield


@pytest.mark.parametrize("storage", ["servers"], indirect=True)
@pytest.mark.parametrize("back_s", [3, 3600])
async def test_a_stop_counts_also_where_the_databases_clock_went_back(bench: Bench, back_s: int) -> None:
    """A failover to a standby whose clock is behind."""
    await bench.people.fault("tool:campaign_performance", "delay", delay_s=10, times=1)
    ts = await bench.asked("@Threadline how did Brand Search do last week?")
    await used_up(bench, "tool:campaign_performance")
    await bench.service.store.set_clock_offset(timedelta(seconds=-back_s))
    await stop(bench, ts)
    newest, *_ = [run for run in await bench.idle() if run.workflow == "agentic-loop"]
    assert newest.state is RunState.CANCELLED


async def test_a_stop_by_command_waits_for_no_place_among_the_work_it_is_to_stop(tmp_path: Path) -> None:
    """P3: with every place of the workers taken, the command itself would begin only when there is nothing left to stop."""
    async with Bench(tmp_path, {"THREADLINE_CONCURRENCY": "1"}) as bench:
        await bench.people.fault("tool:campaign_performance", "delay", delay_s=10, times=1)
        ts = await bench.asked("@Threadline how did Brand Search do last week?")
        await used_up(bench, "tool:campaign_performance")
        stopped = await bench.people.post_message("#campaigns", "@ada", "!threadline stop", thread_ts=ts)
        await bench.answer(ts)
        await bench.idle()
        assert await said(bench, ts) == ["Stopped, as you asked. No campaign was changed."]
        await bench.service.dedup.close()
        again = message_event("!threadline stop", ts=stopped, channel="C0CAMPAIGNS", user="U0ADA", thread_ts=ts)
        await bench.post_json(envelope(again))
        await bench.idle()
        assert len(await said(bench, ts)) == 1, "a redelivered Stop says nothing of its own"


class TestReports:
    async def test_status_and_stop_know_of_reports(self, bench: Bench) -> None:
        await bench.people.fault("chat.postMessage", "ratelimited", times=1, retry_after=5)
        await bench.people.command("#campaigns", "@ada", "/report", "last week")
        await used_up(bench, "chat.postMessage")
        told = await bench.people.command("#campaigns", "@ada", "/threadline", "status")
        assert told["response"]["text"].startswith("1 report is being made.")
        assert "not working" not in told["response"]["text"]
        other = await bench.people.command("#general", "@ada", "/threadline", "stop")
        assert other["response"]["text"] == "There was nothing to stop here."
        told = await bench.people.command("#campaigns", "@ada", "/threadline", "stop")
        assert told["response"]["text"] == "1 report was stopped."
        await bench.idle()
        posted = [
            each["plain"]
            for each in await bench.people.messages("#campaigns")
            if each["is_bot"] and not each["ephemeral"]
        ]
        assert len(posted) == 1
        assert posted[0].startswith("Stopped, as you asked:")


@pytest.mark.parametrize("before", ["a question", "nothing"])
async def test_a_message_that_is_deleted_while_it_is_taken_in_is_not_answered(
    bench: Bench, listener: Listener, before: str
) -> None:
    """Case 12. It is taken in when its author has been looked up."""
    root = None
    if before == "a question":
        root = await bench.asked("@Threadline which campaigns do we have?", user="@ben")
        await bench.answer(root)
        await bench.idle()
    asked = len(listener.requests)
    await bench.people.fault("users.info", "delay", delay_s=1.2, times=1)
    ts = await bench.people.post_message("#campaigns", "@ada", "@Threadline and pause them all", thread_ts=root)
    await used_up(bench, "users.info")
    await bench.people.delete_message("#campaigns", "@ada", ts)
    await bench.settled()
    await bench.idle()
    assert len(listener.requests) == asked
    assert len(await bench.replies(root or ts)) == (1 if root else 0)


async def test_all_that_is_said_during_a_turn_is_before_a_call_however_much_it_is(
    bench: Bench, listener: Listener
) -> None:
    """P3: also more than a window holds otherwise."""
    listener.gate.clear()
    root = await bench.asked("@Threadline which campaigns do we have?")
    await until(lambda: bool(listener.requests), "the model to be called")
    for number in range(150):
        event = message_event(
            f"point {number:03}", ts=later(root, number + 1), channel="C0CAMPAIGNS", user="U0ADA", thread_ts=root
        )
        await bench.post_json(envelope(event, event_id=f"Ev{number}"))
    listener.gate.set()
    await bench.answer(root, count=2)
    await bench.idle()
    seen = {each.text for request in listener.requests for each in request.messages}
    assert [number for number in range(150) if f"point {number:03}" not in seen] == []
