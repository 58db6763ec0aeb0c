"""`/campaigns` and `/threadline`, and the same commands inside threads, where Slack allows no slash commands."""

import pytest

from agent.messages import MESSAGES, PARTICIPATION
from bot.commands import TOO_LONG
from bot.commands.threadline import ADMINS_ONLY, FORGET_WARNING, THREADLINE_HELP, USE_SLASH
from bot.overheard import OVERHEARD
from bot.settings_dialog import ADMINS_ONLY as SETTINGS_FOR_ADMINS
from tests.bot.bench import HARBOR, NORTHWIND, Bench, Json, envelope, message_event
from tests.bot.listening import later
from tests.waiting import until
from workflows.storage import Select

BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)


async def say(bench: Bench, command: str, text: str = "", *, channel: str = "#campaigns", user: str = "@ada") -> str:
    answer = await bench.people.command(channel, user, command, text)
    assert answer["problem"] == "", answer
    assert answer["response"]["response_type"] == "ephemeral"
    return str(answer["response"]["text"])


async def thread(bench: Bench, root: str = "the plan for December") -> str:
    """A thread between people."""
    return await bench.people.post_message("#campaigns", "@ada", root)


async def answers(bench: Bench, ts: str, count: int = 1) -> list[str]:
    await bench.answer(ts, count=count)
    await bench.idle()
    return [each["plain"] for each in await bench.replies(ts)]


class TestCampaigns:
    async def test_it_lists_what_there_is(self, bench: Bench) -> None:
        said = await say(bench, "/campaigns")
        assert "*Brand Search*: active, €120.00 a day" in said
        assert "a day together" in said
        assert "paused" in said

    async def test_some_and_one(self, bench: Bench) -> None:
        assert ": active" not in await say(bench, "/campaigns", "paused")
        assert ": paused" not in await say(bench, "/campaigns", "active")
        assert (await say(bench, "/campaigns", "brand sea")).count("•") == 1

    async def test_one_that_is_not_there_is_told_with_those_that_are(self, bench: Bench) -> None:
        said = await say(bench, "/campaigns", "<!channel> nothing")
        assert "Brand Search" in said
        assert "<!channel>" not in said


class TestThreadline:
    async def test_help_is_what_it_says_when_it_is_not_understood(self, bench: Bench) -> None:
        assert await say(bench, "/threadline") == THREADLINE_HELP
        assert await say(bench, "/threadline", "help") == THREADLINE_HELP
        said = await say(bench, "/threadline", "dance <@U0ADA>")
        assert said.startswith("I don't know")
        assert "<@U0ADA>" not in said

    async def test_status_and_stop_of_a_channel(self, bench: Bench) -> None:
        assert "not working on anything here" in await say(bench, "/threadline", "status")
        ts = await bench.asked("@Threadline raise the daily budget of Brand Search to 150", user="@ben")
        await bench.answer(ts, count=2)
        await bench.idle()
        said = await say(bench, "/threadline", "status")
        assert "Waiting for approval: Change the daily budget of Brand Search" in said
        assert "Waiting" not in await say(bench, "/threadline", "status", channel="#general")
        assert await say(bench, "/threadline", "stop") == "There was nothing to stop here."

    async def test_stop_ends_a_turn(self, bench: Bench) -> None:
        await bench.people.fault("tool:campaign_performance", "delay", delay_s=30)
        ts = await bench.asked("@Threadline how did Brand Search do last week?")

        async def working() -> bool:
            return any(run.state.live for run in await bench.service.engine.runs(tenant=NORTHWIND))

        await until(working, "the turn")
        assert await say(bench, "/threadline", "stop", channel="#general") == "There was nothing to stop here."
        assert await say(bench, "/threadline", "stop") == "1 conversation was stopped."
        [said] = await answers(bench, ts)
        assert said.startswith("Stopped, as you asked.")

    async def test_nothing_shows_as_at_work_after_a_stop_in_the_middle_of_an_answer(self, bench: Bench) -> None:
        """Slack itself ended the stream, and leaves the rest to the app."""
        await bench.people.fault("chat.appendStream", "delay", times=3, delay_s=0.8)
        ts = await bench.asked("@Threadline compare all campaigns last month")

        async def streaming() -> bool:
            return any(each["args"].get("thread_ts") == ts for each in await bench.people.calls("chat.startStream"))

        await until(streaming, "the stream")
        assert await bench.people.stop("#campaigns", ts, "@ada")
        [said] = await answers(bench, ts)
        assert said.startswith("Stopped, as you asked.")
        shown = await bench.people.status("#campaigns", ts)
        assert (shown["status"], shown["session_status"]) == ("", "active")

    async def test_usage_counts_each_model_call_once(self, bench: Bench) -> None:
        ts = await bench.asked("@Threadline how did Brand Search do last week?")
        await answers(bench, ts)
        calls = [row for row in await stored(bench) if row["role"] == "assistant"]
        assert f"has used {len(calls)} model calls" in await say(bench, "/threadline", "usage")

    async def test_settings_are_for_admins_and_need_a_dialog(self, bench: Bench) -> None:
        assert await say(bench, "/threadline", "settings", user="@ben") == SETTINGS_FOR_ADMINS
        await say(bench, "/threadline", "settings")
        assert len((await bench.people.views("@ada"))["views"]) == 1
        ts = await thread(bench)
        await bench.people.post_message("#campaigns", "@ada", "!threadline settings", thread_ts=ts)
        [said] = await answers(bench, ts)
        assert "/threadline settings" in said
        assert USE_SLASH.split(":")[0] in said

    @BOTH
    async def test_forget_deletes_what_was_said_in_this_channel_alone(self, bench: Bench) -> None:
        here, there = await bench.asked("@Threadline hello"), await bench.asked("@Threadline hello", channel="#general")
        await answers(bench, here)
        await bench.answer(there, "#general")
        await bench.idle()
        assert await say(bench, "/threadline", "forget") == FORGET_WARNING
        assert await say(bench, "/threadline", "forget this channel", user="@ben") == ADMINS_ONLY
        assert len(await stored(bench)) == 4
        assert await say(bench, "/threadline", "forget this channel") == "1 conversation was forgotten."
        assert {row["thread"].split(":")[1] for row in await stored(bench)} == {there}
        assert [
            row["thread"].split(":")[1]
            for row in await bench.service.store.read(Select(PARTICIPATION, {"tenant": NORTHWIND}))
        ] == [there]
        assert await say(bench, "/threadline", "forget this channel") == "There was nothing to forget here."

    @BOTH
    async def test_forget_takes_what_was_kept_of_threads_the_agent_is_not_in(self, bench: Bench) -> None:
        for channel in ("#campaigns", "#general"):
            root = await bench.people.post_message(channel, "@ada", "the plan for December")
            reply = await bench.people.post_message(channel, "@ben", "between ourselves", thread_ts=root)
            await bench.settled(ts=reply)
        assert len(await bench.service.store.read(Select(OVERHEARD, {"tenant": NORTHWIND}))) == 2
        await say(bench, "/threadline", "forget this channel")
        [left] = await bench.service.store.read(Select(OVERHEARD, {"tenant": NORTHWIND}))
        assert not left["thread"].startswith("C0CAMPAIGNS")

    @pytest.mark.parametrize("command", ["/report", "/campaigns", "/summaries", "/threadline"])
    async def test_what_is_longer_than_a_command_can_be_is_told_so(self, bench: Bench, command: str) -> None:
        assert await say(bench, command, "last week " * 4_000) == TOO_LONG


async def stored(bench: Bench, tenant: str = NORTHWIND) -> list[Json]:
    return await bench.service.store.read(Select(MESSAGES, {"tenant": tenant}))


class TestInThreads:
    @BOTH
    async def test_a_report_is_made_in_the_thread(self, bench: Bench) -> None:
        ts = await thread(bench)
        await bench.people.post_message("#campaigns", "@ada", "!report Brand Search last month", thread_ts=ts)
        said = await answers(bench, ts, count=2)
        assert any("Making the report on Brand Search, last month" in each for each in said)
        assert any("Brand Search" in each and "Making" not in each for each in said)
        assert await stored(bench) == [], "a command is no talk with the agent"

    async def test_delivered_four_times_it_runs_once(self, bench: Bench) -> None:
        ts = await thread(bench)
        event = {
            "type": "message",
            "channel": "C0CAMPAIGNS",
            "channel_type": "channel",
            "user": "U0ADA",
            "thread_ts": ts,
        }
        await bench.people.send_event({**event, "ts": f"{float(ts) + 1:.6f}", "text": "!campaigns active"}, copies=4)
        assert len(await answers(bench, ts)) == 1

    @pytest.mark.parametrize("text", ["!summaries every monday 9:00", "!threadline stop", "!campaigns"])
    async def test_deleted_before_it_is_delivered_again_it_does_not_run(self, bench: Bench, text: str) -> None:
        ts = await thread(bench)
        written = message_event(text, ts=later(ts, 5), channel="C0CAMPAIGNS", user="U0ADA", thread_ts=ts)
        gone = {**written, "subtype": "message_deleted", "deleted_ts": written["ts"], "previous_message": written}
        await bench.post_json(envelope({**gone, "ts": later(ts, 9), "event_ts": later(ts, 9)}, event_id="Ev2"))
        page = await bench.post_json(envelope(written, event_id="Ev1"), headers={"X-Slack-Retry-Num": "2"})
        assert page.status == 200
        assert await bench.idle() == []
        assert await bench.service.store.schedules(tenant=NORTHWIND) == []

    async def test_at_the_head_of_a_channel_it_is_somebody_elses(self, bench: Bench) -> None:
        ts = await thread(bench, "!campaigns")
        await bench.settled(ts=ts)
        assert await bench.idle() == []
        ts = await thread(bench, "@Threadline !campaigns")
        assert "Brand Search" in (await answers(bench, ts))[0]

    @pytest.mark.parametrize("text", ["!nothing here", "! report", "wow!report", "!reports"])
    async def test_what_is_no_command_is_talk(self, bench: Bench, text: str) -> None:
        ts = await thread(bench)
        message = await bench.people.post_message("#campaigns", "@ada", text, thread_ts=ts)
        await bench.settled(ts=message)
        assert await bench.idle() == []

    async def test_words_made_for_a_slash_command_read_well_in_a_thread(self, bench: Bench) -> None:
        ts = await thread(bench)
        said = (
            "!summaries every monday 9:00",
            "!campaigns R&D <b>",
            "!threadline dance <!channel> <@U0BEN>",
            "!campaigns brand sea",
        )
        for number, text in enumerate(said, 1):
            await bench.people.post_message("#campaigns", "@ada", text, thread_ts=ts)
            await bench.answer(ts, count=number)
        shown = [each["blocks"][0]["text"] for each in await bench.replies(ts)]
        assert "<!date" not in shown[0]
        assert "'R&D <b>'" in shown[1]
        assert "<!channel>" not in shown[2]
        assert "<@U0BEN>" not in shown[2]
        assert "* **Brand Search**: active" in shown[3]

    async def test_one_that_breaks_is_said_to_have_broken(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        async def broken(command: object) -> str:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(bench.service.commands._handlers["campaigns"], "run", broken)
        ts = await thread(bench)
        await bench.people.post_message("#campaigns", "@ada", "!campaigns", thread_ts=ts)
        [said] = await answers(bench, ts)
        assert "I could not do !campaigns" in said
        assert "a bug" not in said

    async def test_in_another_workspace_it_is_theirs(self, bench: Bench) -> None:
        ts = await thread(bench)
        await bench.people.post_message("#campaigns", "@ada", "!campaigns", thread_ts=ts)
        await answers(bench, ts)
        assert await bench.service.engine.runs(tenant=HARBOR) == []
