"""Who says what to whom: the past of a thread, several people at once, edits, strangers, other bots, words for somebody else."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.history import UNREAD
from agent.messages import MESSAGES, Transcript
from agent.preferences import PreferenceBook, Preferences
from agent.thread import Thread
from bot.bots import IN_A_ROW
from bot.emulator.messages import Message as SlackMessage
from bot.emulator.workspace import Channel, User
from bot.ingress import before
from tests.bot.bench import BOT, NORTHWIND, Bench, envelope, message_event
from tests.bot.listening import Listener, later
from tests.waiting import until
from workflows.storage import Is, Select
from workflows.storage.tables import APPROVALS

CHANNEL = "C0CAMPAIGNS"
ASK = f"<@{BOT}> which campaigns do we have?"


def put(bench: Bench, ts: str, text: str = "", *, root: str | None = None, **fields: Any) -> None:
    """A message that stands in the channel without an event for it."""
    user = fields.pop("user", "U0BEN")
    bench.emulator.slack.timeline.add(SlackMessage(ts, CHANNEL, NORTHWIND, user, text, thread_ts=root, **fields))


ROOT = "1795000000.000100"


class TestThePastOfAThread:
    async def test_the_root_and_what_was_said_before_the_mention_are_known_and_attributed(
        self, bench: Bench, listener: Listener
    ) -> None:
        """Case 36."""
        put(bench, ROOT, "Spring Sale looks odd &amp; expensive")
        put(bench, later(ROOT, 1), "I paused it yesterday", root=ROOT, user="U0CHLOE")
        mention = message_event(
            f"<@{BOT}> what is this about?", ts=later(ROOT, 9), channel=CHANNEL, user="U0ADA", thread_ts=ROOT
        )
        put(bench, later(ROOT, 9), mention["text"], root=ROOT, user="U0ADA")
        put(bench, later(ROOT, 10), "said after the mention", root=ROOT)
        await bench.post_json(envelope(mention))
        await bench.answer(ROOT)
        assert listener.shown == [
            ("Ben Carter", True, "Spring Sale looks odd & expensive"),
            ("Chloe Tanaka", True, "I paused it yesterday"),
            ("Ada Keller", False, "what is this about?"),
        ]

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "CPA alert"}}]}, "CPA alert"),
            (
                {"blocks": [{"type": "data_table", "rows": [[{"type": "raw_text", "text": "Spend"}, {"type": "raw_number", "text": "12"}]]}]},
                "Spend | 12",
            ),
            (
                {"blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "see "}, {"type": "link", "url": "https://example.com"}]}]}]},
                "see https://example.com",
            ),
            ({"attachments": [{"pretext": "Alert", "fields": [{"title": "CPA", "value": "9"}]}]}, "> Alert\n> CPA: 9"),
        ],
    )  # fmt: skip
    async def test_a_root_of_another_bot_with_nothing_but_blocks_or_attachments_is_read(
        self, bench: Bench, listener: Listener, fields: dict[str, Any], told: str
    ) -> None:
        put(bench, ROOT, user="U0MONITOR", bot_id="B0MONITOR", **fields)
        mention = message_event(ASK, ts=later(ROOT, 9), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
        await bench.post_json(envelope(mention))
        await bench.answer(ROOT)
        (author, heard, text), _ = listener.shown
        assert (author, heard, text) == ("the app B0MONITOR", True, told)

    async def test_our_own_post_at_the_root_is_known_as_ours_and_a_file_there_by_reference(
        self, bench: Bench, listener: Listener
    ) -> None:
        shared = {
            "id": "F0ROOT",
            "name": "q3.csv",
            "title": "q3.csv",
            "pretty_type": "CSV",
            "mimetype": "text/csv",
            "size": 12,
        }
        put(bench, ROOT, "The weekly summary", user=BOT, bot_id="B0THREADLINE")
        put(bench, later(ROOT, 1), "", root=ROOT, files=[shared])
        mention = message_event(ASK, ts=later(ROOT, 9), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
        await bench.post_json(envelope(mention))
        await bench.answer(ROOT)
        assert listener.shown[0] == ("you yourself", True, "The weekly summary")
        (file,) = listener.requests[-1].messages[1].files
        assert (file.id, file.name, file.size) == ("F0ROOT", "q3.csv", 12)

    async def test_a_long_past_keeps_its_root_and_its_latest_and_says_what_is_left_out(
        self, bench: Bench, listener: Listener
    ) -> None:
        put(bench, ROOT, "the root")
        for number in range(1, 451):
            put(bench, later(ROOT, number), f"reply {number}", root=ROOT)
        mention = message_event(ASK, ts=later(ROOT, 900), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
        await bench.post_json(envelope(mention))
        await bench.answer(ROOT)
        assert [text for _, _, text in listener.shown][:2] == ["the root", "reply 392"]
        assert listener.shown[-2][2] == "reply 450"
        notices = [message.text for message in listener.requests[-1].messages if message.notice]
        assert notices == ["391 messages in between are left out"]
        assert len(await bench.people.calls("conversations.replies")) == 3, "three pages, and read once"

    async def test_where_slack_gives_little_what_is_missing_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An app sold outside the Marketplace reads fifteen messages a minute, the oldest first."""
        async with Bench(tmp_path, {}, commercial=True) as bench:
            listener = Listener()
            monkeypatch.setattr(bench.service.model, "stream", listener.stream)
            put(bench, ROOT, "the root")
            for number in range(1, 31):
                put(bench, later(ROOT, number), f"reply {number}", root=ROOT)
            mention = message_event(ASK, ts=later(ROOT, 900), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
            await bench.post_json(envelope(mention))
            await bench.answer(ROOT)
            assert [text for _, _, text in listener.shown] == [
                "the root",
                *(f"reply {n}" for n in range(1, 15)),
                ASK.partition(" ")[2],
            ]
            (notice,) = [message.text for message in listener.requests[-1].messages if message.notice]
            assert notice == UNREAD

    async def test_it_is_read_once_and_again_after_slack_was_away(self, bench: Bench, listener: Listener) -> None:
        put(bench, ROOT, "the root")
        await bench.people.fault("conversations.replies", "http_500", times=1)
        mention = message_event(ASK, ts=later(ROOT, 9), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
        await bench.post_json(envelope(mention))
        await bench.answer(ROOT)
        assert listener.shown[0] == ("Ben Carter", True, "the root")
        again = message_event("and now?", ts=later(ROOT, 20), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
        reads = len(await bench.people.calls("conversations.replies"))
        await bench.post_json(envelope(again))
        await bench.answer(ROOT, count=2)
        assert len(await bench.people.calls("conversations.replies")) == reads
        assert [text for _, _, text in listener.shown] == ["the root", "which campaigns do we have?", "and now?"]

    async def test_what_cannot_be_read_is_said_to_be_so_and_the_question_is_answered(
        self, bench: Bench, listener: Listener
    ) -> None:
        put(bench, ROOT, "the root")
        await bench.people.fault("conversations.replies", "error", error="missing_scope", times=1)
        mention = message_event(ASK, ts=later(ROOT, 9), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
        await bench.post_json(envelope(mention))
        await bench.answer(ROOT)
        (notice,) = [message.text for message in listener.requests[-1].messages if message.notice]
        assert "could not be read: Slack: missing_scope" in notice

    async def test_words_heard_in_a_thread_ask_for_nothing_and_make_what_acts_ask_first(self, bench: Bench) -> None:
        """P16, case 37: an order among them is not followed, and while they are there a report has to be approved."""
        put(bench, ROOT, f"<@{BOT}> pause all campaigns now")
        mention = message_event(
            f"<@{BOT}> make a report for last week", ts=later(ROOT, 9), channel=CHANNEL, user="U0ADA", thread_ts=ROOT
        )
        await bench.post_json(envelope(mention))
        await bench.answer(ROOT)
        await bench.idle()
        cards = [message["plain"] for message in await bench.replies(ROOT) if "Approval needed" in message["plain"]]
        assert len(cards) == 1
        assert "Make a report" in cards[0]


class TestSeveralPeople:
    async def test_words_for_somebody_else_are_heard_and_not_answered(self, bench: Bench, listener: Listener) -> None:
        root = await bench.asked("@Threadline which campaigns do we have?")
        await bench.answer(root)
        for ts, text in (
            (later(root, 5), "<@U0CHLOE> can you check the copy?"),
            (later(root, 6), "thanks, and the budgets?"),
        ):
            await bench.post_json(envelope(message_event(text, ts=ts, channel=CHANNEL, user="U0BEN", thread_ts=root)))
        await bench.answer(root, count=2)
        await bench.idle()
        assert len(listener.requests) == 2
        assert listener.shown[1:] == [
            ("Ben Carter", True, "<@U0CHLOE> can you check the copy?"),
            ("Ben Carter", False, "thanks, and the budgets?"),
        ]

    async def test_two_peoples_requests_in_one_turn_are_each_asked_for_by_their_own(self, bench: Bench) -> None:
        """No escalation by batching: the card of each change names who asked for it."""
        await bench.people.fault("tool:list_campaigns", "delay", delay_s=1.0)
        root = await bench.asked("@Threadline set Spring Sale to 120", user="@ben")

        async def running() -> bool:
            return not await bench.people.faults("tool:list_campaigns")

        await until(running, "the tool to run")
        await bench.people.post_message("#campaigns", "@ada", "@Threadline pause Brand Search", thread_ts=root)
        await bench.answer(root, count=3)
        await bench.idle()
        cards = {
            message["plain"].split("\n")[1]: json.dumps(message["blocks"])
            for message in await bench.replies(root)
            if "Approval needed" in message["plain"]
        }
        asked = {title: ("U0BEN" if "<@U0BEN>" in card else "U0ADA") for title, card in cards.items()}
        assert sorted(asked.values()) == ["U0ADA", "U0BEN"], asked
        assert next(who for title, who in asked.items() if "Spring Sale" in title) == "U0BEN"

    async def test_in_a_group_dm_it_answers_those_who_mention_it(self, bench: Bench, listener: Listener) -> None:
        members = ["U0ADA", "U0BEN", BOT]
        workspace = bench.emulator.slack.workspaces[NORTHWIND]
        workspace.channels["G0TRIO"] = Channel("G0TRIO", NORTHWIND, "mpdm-trio", "group", members)
        ts = "1795000001.000100"
        for text, at in (("lunch?", ts), (ASK, later(ts, 1))):
            bench.emulator.slack.timeline.add(SlackMessage(at, "G0TRIO", NORTHWIND, "U0ADA", text))
            event = message_event(text, ts=at, channel="G0TRIO", user="U0ADA") | {"channel_type": "mpim"}
            assert (await bench.post_json(envelope(event))).status == 200
        await bench.answer(later(ts, 1), "G0TRIO")
        assert len(listener.requests) == 1

    async def test_an_empty_mention_gets_help(self, bench: Bench) -> None:
        root = await bench.asked("@Threadline")
        assert "You can ask, for example" in (await bench.answer(root))["plain"]


async def keys(bench: Bench, root: str) -> list[str]:
    """Of the edits of a thread that are in its transcript."""
    rows = await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND, "thread": f"{CHANNEL}:{root}"}))
    return [row["id"] for row in rows if row["id"].startswith("edit:")]


class TestEdits:
    async def test_an_edit_of_what_was_taken_in_is_told_later_and_runs_nothing(
        self, bench: Bench, listener: Listener
    ) -> None:
        root = await bench.asked("@Threadline set Spring Sale to 120")
        await bench.answer(root)
        await bench.people.edit_message("#campaigns", "@ada", root, "@Threadline set Spring Sale to 130")
        await bench.settled(ts=root)
        await bench.idle()
        assert len(listener.requests) == 1
        await bench.people.post_message("#campaigns", "@ada", "well?", thread_ts=root)
        await bench.answer(root, count=2)
        said = [message for message in listener.requests[-1].messages if message.role == "user"]
        assert [message.text for message in said] == [
            "set Spring Sale to 120",
            f"message {root} of Ada Keller (U0ADA) was changed; what it says now follows",
            "set Spring Sale to 130",
            "well?",
        ]
        assert [message.heard for message in said] == [False, False, True, False]
        assert [message.notice for message in said] == [False, True, False, False]

    async def test_the_new_words_are_kept_in_the_transcript_alone(self, bench: Bench, listener: Listener) -> None:
        """Where they can be forgotten, which an inbox can't."""
        root = await bench.asked("@Threadline how are we?")
        await bench.answer(root)
        await bench.people.edit_message("#campaigns", "@ada", root, "@Threadline I meant the aardvarks")
        await bench.settled(channel=CHANNEL)
        runs = await bench.idle()
        inboxes = [
            await bench.service.store.signal_payload(run.run_id, key) for run in runs for key in await keys(bench, root)
        ]
        assert [each for each in inboxes if each is not None]
        assert not [each for each in inboxes if each is not None and b"aardvark" in each]
        said = await bench.people.command("#campaigns", "@ada", "/threadline", "forget this channel")
        assert "forgotten" in said["response"]["text"]
        assert await keys(bench, root) == []

    @pytest.mark.parametrize("how", ["edited", "deleted"])
    async def test_a_turn_goes_by_what_its_message_says_now(self, bench: Bench, how: str) -> None:
        """Also one that had begun: the offline model answers the new words and not the old ones, and nobody reads of timestamps."""
        root = await bench.asked("@Threadline hello")
        await bench.answer(root)
        await bench.idle()
        await bench.people.fault("tool:list_campaigns", "delay", delay_s=1.5)
        asked = await bench.people.post_message(
            "#campaigns", "@ada", "how did Newsletter Win-Back do last week?", thread_ts=root
        )
        thread = Thread(tenant=NORTHWIND, channel=CHANNEL, root=root)

        async def taken() -> bool:
            return await Transcript(bench.service.store).taken(thread, asked) is not None

        await until(taken, "the message is taken in")
        if how == "edited":
            await bench.people.edit_message(
                "#campaigns", "@ada", asked, "how many clicks did Spring Sale get yesterday?"
            )
        else:
            await bench.people.delete_message("#campaigns", "@ada", asked)
        answer = (await bench.answer(root, count=2))["plain"]
        assert "Newsletter" not in answer
        assert ("Spring Sale" if how == "edited" else "deleted") in answer
        assert asked not in answer

    async def test_a_deletion_of_what_was_taken_in_takes_the_words_away_and_is_told(
        self, bench: Bench, listener: Listener
    ) -> None:
        root = await bench.asked("@Threadline how are we?")
        await bench.answer(root)
        reply = await bench.people.post_message("#campaigns", "@ada", "my secret is an aardvark", thread_ts=root)
        await bench.answer(root, count=2)
        await bench.people.delete_message("#campaigns", "@ada", reply)
        await bench.settled(channel=CHANNEL)
        await bench.people.post_message("#campaigns", "@ada", "what was it?", thread_ts=root)
        await bench.answer(root, count=3)
        seen = "\n".join(message.text for message in listener.requests[-1].messages)
        assert "aardvark" not in seen
        assert f"message {reply} of Ada Keller (U0ADA) was deleted" in seen

    async def test_an_unfurl_is_no_edit_and_neither_is_our_own(self, bench: Bench, listener: Listener) -> None:
        root = await bench.asked("@Threadline see https://example.com")
        await bench.answer(root)
        runs = len(await bench.idle())
        said = message_event("<@U0THREADLINE> see <https://example.com>", ts=root, channel=CHANNEL, user="U0ADA")
        for previous in (said, {"ts": root}):
            event = {
                "type": "message", "subtype": "message_changed", "channel": CHANNEL, "ts": later(root, 3), "event_ts": later(root, 3),
                "message": {**said, "attachments": [{"from_url": "https://example.com", "title": "Example"}]},
                "previous_message": previous,
            }  # fmt: skip
            assert (await bench.post_json(envelope(event))).status == 200
        assert len(await bench.idle()) == runs

    async def test_an_edit_before_it_is_taken_in_is_what_counts(self, bench: Bench, listener: Listener) -> None:
        listener.gate.clear()
        root = await bench.asked("@Threadline hello")
        await until(lambda: len(listener.requests) == 1, "the turn to be at its answer, which takes in no more")
        reply = await bench.people.post_message("#campaigns", "@ada", "numbers?", thread_ts=root)
        await bench.people.edit_message("#campaigns", "@ada", reply, "figures?")
        await bench.settled(channel=CHANNEL)
        listener.gate.set()
        await bench.answer(root, count=2)
        said = [text for _, _, text in listener.shown]
        assert "figures?" in said
        assert "numbers?" not in said
        assert not [message for message in listener.requests[-1].messages if message.notice]


class TestStrangers:
    async def test_an_admin_of_another_company_may_talk_and_not_approve(self, bench: Bench) -> None:
        slack = bench.emulator.slack
        dana: User = slack.workspaces["T0HARBOR"].users["U0DANA"]
        assert dana.is_admin
        slack.workspaces[NORTHWIND].users[dana.id] = dana
        root = await bench.asked("@Threadline set Spring Sale to 120")
        await bench.answer(root, count=2)
        (approval,) = await bench.service.store.read(_approvals())
        page = await bench.click(approval["id"], user=dana.id)
        assert page.status == 200
        (approval,) = await bench.service.store.read(_approvals())
        assert approval["state"] == "pending"

    async def test_what_a_stranger_says_is_marked_as_such(self, bench: Bench, listener: Listener) -> None:
        """Case 31: the workspace of the token is the one of `authorizations`, whoever's the event is."""
        event = message_event(ASK, ts=ROOT, channel=CHANNEL, user="U0DANA") | {
            "user_team": "T0HARBOR",
            "team": "T0HARBOR",
        }
        put(bench, ROOT, ASK, user="U0DANA")
        wrapped = envelope(event) | {"team_id": "T0HARBOR", "is_ext_shared_channel": True}
        assert (await bench.post_json(wrapped)).status == 200
        await bench.answer(ROOT)
        (message,) = listener.requests[-1].messages
        assert message.author is not None
        assert message.author.outside

    @pytest.mark.parametrize(
        "author",
        [{"bot_id": "B0THREADLINE", "user": BOT}, {"bot_id": "B0OTHER", "user": "U0OTHER"}, {"bot_id": "B0OTHER"}],
    )
    async def test_bots_are_not_answered_however_often_they_mention_us(
        self, bench: Bench, author: dict[str, str]
    ) -> None:
        """Cases 13 and 14."""
        for number in range(20):
            event = message_event(f"<@{BOT}> ok", ts=later(ROOT, number), channel=CHANNEL)
            del event["user"]
            for kind in ("message", "app_mention"):
                assert (await bench.post_json(envelope({**event, **author, "type": kind}))).status == 200
        assert await bench.service.engine.runs(tenant=NORTHWIND) == []

    async def test_one_that_an_admin_has_allowed_is_answered_until_nobody_else_has_said_anything(
        self, bench: Bench
    ) -> None:
        """Case 14: two bots that answer each other stop by themselves."""
        await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(bots=("U0OTHER",)), by="U0ADA")

        async def asks(numbers: range, user: str = "U0OTHER", **more: str) -> None:
            for number in numbers:
                event = message_event(
                    f"<@{BOT}> ok", ts=later(ROOT, number), channel=CHANNEL, user=user, thread_ts=ROOT
                )
                for kind in ("message", "app_mention"):
                    sent = envelope({**event, **more, "type": kind}, event_id=f"Ev{number}{kind}")
                    assert (await bench.post_json(sent)).status == 200

        async def taken() -> list[str]:
            rows = await bench.service.store.read(
                Select(MESSAGES, {"tenant": NORTHWIND, "role": "user"}, order=("id",))
            )
            return [row["author"]["id"] for row in rows if not row["notice"]]

        await asks(range(20), bot_id="B0OTHER")
        assert await taken() == ["U0OTHER"] * IN_A_ROW
        await asks(range(20, 22), "U0STRANGE", bot_id="B0STRANGE")
        assert await taken() == ["U0OTHER"] * IN_A_ROW, "one that is not allowed is not heard at all"
        await asks(range(30, 31), "U0ADA")
        await asks(range(31, 51), bot_id="B0OTHER")
        assert await taken() == ["U0OTHER"] * IN_A_ROW + ["U0ADA"] + ["U0OTHER"] * IN_A_ROW
        await bench.idle()

    async def test_one_that_answers_at_the_head_of_the_channel_is_not_answered_for_ever(self, bench: Bench) -> None:
        """Each of its answers begins a thread of its own."""
        await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(bots=("U0OTHER",)), by="U0ADA")

        async def asks(numbers: range, channel: str = CHANNEL) -> int:
            """How many messages are stored of those who asked there, after these."""
            for number in numbers:
                ts = later(ROOT, number)
                event = message_event(f"<@{BOT}> ok", ts=ts, channel=channel, user="U0OTHER", bot_id="B0OTHER")
                assert (await bench.post_json(envelope(event))).status == 200
            asked = {"tenant": NORTHWIND, "role": "user", "thread": Is("starts with", f"{channel}:")}
            return len(await bench.service.store.read(Select(MESSAGES, asked)))

        assert await asks(range(15)) == IN_A_ROW
        assert await asks(range(15), "C0OTHER") == IN_A_ROW, "another channel is another conversation"
        person = message_event(f"<@{BOT}> thanks", ts=later(ROOT, 20), channel=CHANNEL, user="U0ADA")
        await bench.post_json(envelope(person))
        assert await asks(range(21, 40)) == 2 * IN_A_ROW + 1
        await bench.idle()
        await bench.time_passes(3700)
        assert await asks(range(4000, 4001)) == 2 * IN_A_ROW + 2

    @pytest.mark.parametrize(("allowed", "left"), [(True, {"how did it do?"}), (False, {"pause it", "wait"})])
    async def test_what_an_allowed_one_edits_or_deletes_counts(
        self, bench: Bench, allowed: bool, left: set[str]
    ) -> None:
        book = PreferenceBook(bench.service.store)
        await book.change(NORTHWIND, Preferences(bots=("U0OTHER",)), by="U0ADA")
        assert bench.service.engine.worker is not None
        await bench.service.engine.worker.stop()
        said = {"user": "U0OTHER", "bot_id": "B0OTHER"}
        first, second = later(ROOT, 1), later(ROOT, 2)
        for ts, text in ((first, "pause it"), (second, "wait")):
            await bench.post_json(envelope(message_event(f"<@{BOT}> {text}", ts=ts, channel=CHANNEL, **said)))
        if not allowed:
            await book.change(NORTHWIND, (await book.of(NORTHWIND)).model_copy(update={"bots": ()}), by="U0ADA")
        about = {"type": "message", "channel": CHANNEL, "channel_type": "channel"}
        old = {**said, "ts": first, "text": f"<@{BOT}> pause it"}
        deletion = {**about, "subtype": "message_deleted", "deleted_ts": first, "previous_message": old}
        old, new = ({**said, "ts": second, "text": f"<@{BOT}> {text}"} for text in ("wait", "how did it do?"))
        edit = {**about, "subtype": "message_changed", "message": new, "previous_message": old}
        for event in (deletion, edit):
            assert (await bench.post_json(envelope(event))).status == 200
        rows = await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND}))
        assert {row["parts"][0]["text"] for row in rows} == left

    @pytest.mark.parametrize("text", ["and the week before?", "!campaigns", "stop"])
    async def test_an_allowed_one_has_to_mention_us_and_gives_no_commands(self, bench: Bench, text: str) -> None:
        await PreferenceBook(bench.service.store).change(NORTHWIND, Preferences(bots=("U0OTHER",)), by="U0ADA")
        root = await bench.asked("@Threadline hello")
        await bench.answer(root)
        before = len(await bench.idle())
        event = message_event(
            text, ts=later(root, 1), channel=CHANNEL, user="U0OTHER", thread_ts=root, bot_id="B0OTHER"
        )
        assert (await bench.post_json(envelope(event))).status == 200
        assert len(await bench.idle()) == before


class TestTheWordStop:
    async def test_it_ends_the_turn_that_is_under_way(self, bench: Bench) -> None:
        await bench.people.fault("tool:list_campaigns", "delay", delay_s=30)
        root = await bench.asked("@Threadline which campaigns do we have?")

        async def running() -> bool:
            return not await bench.people.faults("tool:list_campaigns")

        await until(running, "the tool to run")
        await bench.people.post_message("#campaigns", "@ada", "Stop!", thread_ts=root)
        assert (await bench.answer(root))["plain"].startswith("Stopped, as you asked.")
        await bench.idle()
        assert len(await bench.replies(root)) == 1

    @pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
    async def test_its_copies_are_no_requests_also_for_a_process_that_remembers_nothing(self, bench: Bench) -> None:
        """As a mention and as a message, and again later, by processes without a cache in common."""
        urls = [(await bench.replica(THREADLINE_REDIS_PREFIX=f"other-{number}"))[1] for number in range(3)]
        await bench.people.fault("tool:list_campaigns", "delay", delay_s=30)
        root = await bench.asked("@Threadline which campaigns do we have?")

        async def running() -> bool:
            return not await bench.people.faults("tool:list_campaigns")

        await until(running, "the tool to run")
        stop = message_event(f"<@{BOT}> stop", ts=later(root, 5), channel=CHANNEL, user="U0ADA", thread_ts=root)
        mention = envelope({**stop, "type": "app_mention"}, event_id="Ev0MENTION")
        copies = [bench.post_json(each, url=url) for url in urls[:2] for each in (mention, envelope(stop))]
        assert {page.status for page in await asyncio.gather(*copies)} == {200}
        await bench.answer(root)
        await bench.idle()
        for each in (mention, envelope(stop)):
            assert (await bench.post_json(each, url=urls[2])).status == 200
        await bench.idle()
        assert [each["plain"].split(".")[0] for each in await bench.replies(root)] == ["Stopped, as you asked"]

    @pytest.mark.parametrize("by", ["the word", "the button"])
    async def test_one_that_is_delivered_late_ends_nothing_that_was_asked_after_it(self, bench: Bench, by: str) -> None:
        await bench.people.fault("tool:campaign_performance", "delay", delay_s=1)
        root = await bench.people.post_message("#campaigns", "@ada", "the plan for December")
        asked = await bench.people.post_message(
            "#campaigns", "@ada", "@Threadline how did Brand Search do last week?", thread_ts=root
        )

        async def running() -> bool:
            return not await bench.people.faults("tool:campaign_performance")

        await until(running, "the tool to run")
        word = message_event(f"<@{BOT}> stop", ts=before(asked), channel=CHANNEL, user="U0ADA", thread_ts=root)
        button = {"type": "agent_session_stopped", "channel": CHANNEL, "thread_ts": root, "user": "U0ADA"}
        late = word if by == "the word" else {**button, "streaming_message_ts": [], "event_ts": before(asked)}
        assert (await bench.post_json(envelope(late))).status == 200
        await bench.answer(root)
        await bench.idle()
        said = "\n".join(each["plain"] for each in await bench.replies(root))
        assert "Brand Search" in said
        assert "Stopped" not in said

    async def test_before_the_run_exists_it_stops_what_was_said_earlier(self, bench: Bench) -> None:
        """The mention is delivered again after its first delivery was lost, and meanwhile somebody said stop."""
        stop = message_event(f"<@{BOT}> stop", ts=later(ROOT, 5), channel=CHANNEL, user="U0ADA", thread_ts=ROOT)
        mention = message_event(ASK, ts=ROOT, channel=CHANNEL, user="U0ADA")
        put(bench, ROOT, ASK, user="U0ADA")
        put(bench, later(ROOT, 5), stop["text"], root=ROOT, user="U0ADA")
        for event in (stop, mention, stop):
            assert (await bench.post_json(envelope(event))).status == 200
        await bench.answer(ROOT)
        await bench.idle()
        said = [message["plain"].split("\n") for message in await bench.replies(ROOT)]
        assert [lines[0] for lines in said] == ["All right, I won't do anything further."]


@pytest.mark.parametrize(
    ("ts", "earlier"),
    [("1795000000.000100", "1795000000.000099"), ("1795000000.000000", "1794999999.999999"), ("10", "09")],
)
def test_right_before_a_timestamp_is_one_that_sorts_before_it(ts: str, earlier: str) -> None:
    assert before(ts) == earlier < ts


def _approvals() -> Select:
    return Select(APPROVALS, {"tenant": NORTHWIND})


class TestReports:
    @pytest.mark.parametrize("who", ["@ada", "@ben"])
    async def test_who_replies_to_a_report_needs_no_mention_and_the_report_is_known(
        self, bench: Bench, listener: Listener, who: str
    ) -> None:
        await bench.people.command("#campaigns", "@ada", "/report", "Brand Search last week")

        async def posted() -> list[dict[str, Any]]:
            said = await bench.people.messages("#campaigns")
            return [each for each in said if each["is_bot"] and not each["ephemeral"]]

        await until(lambda: _any(posted), "the report")
        await bench.idle()
        (report,) = await posted()
        await bench.people.post_message("#campaigns", who, "what about the week before?", thread_ts=report["ts"])
        await bench.answer(report["ts"], count=2)
        heard = [text for _, _, text in listener.shown]
        assert "Brand Search" in heard[0]
        assert heard[-1] == "what about the week before?"


async def _any(found: Callable[[], Awaitable[list[Any]]]) -> bool:
    return bool(await found())
