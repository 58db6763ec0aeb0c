"""Nothing that is said calls a whole channel, on any path: what renders words, what sends them, and the whole product among hostile names."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.campaigns.market import LINES
from agent.channel import Card, Decision, Draft
from agent.models.base import Person
from agent.reports import Bars, Document, Grid, LostPlace, Number
from agent.tools import Evidence
from bot.broadcasts import SENT_BACK, neutral, quiet, quiet_answer
from bot.clients import Clients
from bot.credentials import OneWorkspace
from bot.emulator.blocks import check_blocks
from bot.render.cards import card_blocks, card_text, small_card
from bot.render.documents import document_blocks, document_plain, remaining_rows
from bot.render.lost import lost_text
from bot.render.messages import messages
from bot.render.replies import tell
from bot.render.text import fallback, quoted
from bot.views import modal, notice, text_input, words
from tests.bot.bench import HARBOR, NORTHWIND, Bench
from tests.bot.desk import TOKEN, Desk, Jotted
from tests.bot.reading import broadcasts, is_within, letters, read
from tests.bot.test_cases import Script

CALLS = [
    "<!channel>", "<!here>", "<!everyone>", "<!HERE|here>", "<!subteam^S123>", "<!subteam^S1|@team>", "@channel", "@here", "@Everyone", "_@here_", "<!chan\0nel>",
    "@\u202ehere", "<\x01!channel>", "<!\ud800channel>", "@\u2066channel", "<!channel|x y>", "[@here](https://a.io)", "`<!here>`", "**@channel**", "&lt;!channel&gt;",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(CALLS) | st.text(max_size=12), max_size=6).map(" ".join)
FACTS = st.lists(st.tuples(TEXTS, TEXTS), max_size=12).map(tuple)


def test_the_check_itself_finds_them() -> None:
    for each in ("<!channel>", "a <!here|x> b", "<!subteam^S1|@t>", "(@here)", "_@everyone_", "@Channel."):
        assert broadcasts({"blocks": [{"text": each}]}), each
    for each in ("ada@here.com", "https://x.io/@here", "@hereby", "<!date^1^{date}|then>", "<\u2060!channel>"):
        assert not broadcasts(each), each


@given(
    value=st.recursive(
        TEXTS | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=12
    )
)
def test_no_payload_leaves_with_one_and_nothing_else_of_it_changes(value: Any) -> None:
    sent = quiet(value)
    assert broadcasts(sent) == []
    assert quiet(sent) == sent
    assert letters(read(sent)) == letters(read(value))
    assert broadcasts(json.loads(quiet_answer(json.dumps({"text": value})))) == []


def test_what_comes_back_from_a_form_is_as_it_was_filled_in() -> None:
    view = modal("c", "T", [text_input("guidance", "L", initial="say @here", limit=99)], submit="S", metadata="<!here>")
    assert quiet(view) == view
    assert quiet(dict.fromkeys(SENT_BACK, "@here")) == dict.fromkeys(SENT_BACK, "@here")


@given(
    title=TEXTS,
    facts=FACTS,
    reason=TEXTS,
    state=st.sampled_from(["pending", "approved", "denied", "expired"]),
    person=TEXTS,
)
def test_a_card_calls_nobody_and_is_within_the_limits(
    title: str, facts: tuple[tuple[str, str], ...], reason: str, state: Decision, person: str
) -> None:
    card = Card(
        approval_id="a", evidence=Evidence(title=title, facts=facts), requester=Person(id=person, name=person, time_zone=person),
        approvers=(person,), expires_at=datetime.now(UTC), state=state, by_user=person, reason=reason,
    )  # fmt: skip
    for blocks in (card_blocks(card), small_card(card)):
        check_blocks(blocks)
        assert broadcasts(blocks) == []
    assert broadcasts(card_text(card)) == []
    assert is_within(letters(neutral(title))[:900], letters(read(card_blocks(card))))


@given(body=TEXTS, rows=st.lists(st.tuples(TEXTS, TEXTS), max_size=4), name=TEXTS)
def test_a_report_calls_nobody_and_is_within_the_limits(body: str, rows: list[tuple[str, str]], name: str) -> None:
    grid = Grid(
        caption=name, rows=((name, "Spend"), *((first, Number(text=second, value=1)) for first, second in rows))
    )
    bars = Bars(title=name, series=name, values=tuple((first, 1.0) for first, _ in rows))
    document = Document(summary=name, body=body, grid=grid, bars=bars)
    blocks = document_blocks(document)
    check_blocks(blocks)
    assert broadcasts(blocks) == []
    for text in (document_plain(document, attached=False), remaining_rows(document), fallback(document.summary)):
        assert broadcasts(text) == []


@given(text=TEXTS)
def test_an_answer_a_loss_and_a_dialog_call_nobody(text: str) -> None:
    for message in messages(neutral(text)):
        check_blocks(message.blocks)
        assert broadcasts([message.blocks, message.plain, message.source]) == []
    lost = LostPlace(channel="C1", title=text, why="it is archived", recurring=False)
    assert broadcasts([lost_text(lost), quoted(text), fallback(text)]) == []
    assert broadcasts(quiet(notice(text, text))) == []
    assert broadcasts(quiet(modal("c", text, [words(text)], submit="S"))) == []


@pytest.mark.parametrize("text", CALLS)
async def test_whoever_forgets_to_make_words_neutral_calls_nobody_all_the_same(desk: Desk, text: str) -> None:
    """By the Web API and by a reply address."""
    clients = Clients(OneWorkspace(TOKEN, api_url=desk.api_url), api_url=desk.api_url)
    client = await clients.of(NORTHWIND)
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]
    posted = await client.chat_postMessage(channel="C0CAMPAIGNS", thread_ts=desk.root, text=text, blocks=blocks)
    await client.chat_update(channel="C0CAMPAIGNS", ts=str(posted["ts"]), text=text, blocks=blocks)
    place = desk.slack.interactions.new_response_url(NORTHWIND, "C0CAMPAIGNS", "U0ADA")
    await tell(f"{desk.slack.url}/response/{place}", text)
    said = [[message.text, message.blocks] for message in desk.slack.timeline.everything() if message.bot_id]
    assert len(said) == 2
    assert broadcasts(said) == []


HOSTILE = f"Before {' '.join(CALLS[:12])} and after. "


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 11, 40])
async def test_no_way_of_cutting_a_stream_lets_one_through(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    for name in ("FIRST_CHARACTERS", "CHARACTERS", "SECONDS"):
        monkeypatch.setattr(f"bot.render.stream.{name}", 0)
    draft: Draft | None = await desk.streamed(
        *(HOSTILE[at : at + step] for at in range(0, len(HOSTILE), step)), notes=Jotted()
    )
    assert broadcasts([message["blocks"] for message in await desk.ours()]) == []
    await desk.channel.deliver(desk.thread, HOSTILE, delivery_id="d", draft=draft, notes=Jotted())
    (answer,) = await desk.ours()
    assert broadcasts([answer["text"], answer["blocks"]]) == []
    assert answer["plain"].startswith("Before")
    assert answer["plain"].endswith("and after.")


# The whole product


@pytest.fixture
async def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Campaigns, people, the workspace and its settings are named so as to call everybody."""
    named = tuple(replace(line, name=f"{line.name} {CALLS[number % 7]}") for number, line in enumerate(LINES))
    monkeypatch.setattr("agent.campaigns.sandbox.LINES", named)
    async with Bench(tmp_path, {"THREADLINE_TOOL_ACTIVITY": "cards"}) as bench:
        bench.emulator.slack.workspaces[NORTHWIND].name = "Northwind <!channel> @here"
        yield bench


async def nothing_called(bench: Bench) -> None:
    """In no call of the Web API, and in nothing that stands anywhere in Slack."""
    calls = await bench.people.calls()
    sent = [{name: each for name, each in call["args"].items() if name != "token"} for call in calls]
    said = [[message.text, message.blocks] for message in bench.emulator.slack.timeline.everything() if message.bot_id]
    open_views = [await bench.people.views(user) for user in ("@ada", "@ben")]
    shown = [
        [view.get("title"), view["blocks"]]
        for each in open_views
        for view in (*each["views"], *filter(None, [each["home"]]))
    ]
    assert broadcasts([sent, said, shown]) == []


@pytest.mark.parametrize(
    "question", ["which campaigns do we have?", "show all campaigns last month", "how did Brand Search do last week?"]
)
async def test_names_of_campaigns_call_nobody_in_answers(hostile: Bench, question: str) -> None:
    root = await hostile.asked(f"@Threadline {question}")
    answer = await hostile.answer(root)
    await hostile.idle()
    assert "Brand Search" in answer["plain"]
    await nothing_called(hostile)


async def test_a_card_its_denial_and_its_reason_call_nobody(hostile: Bench) -> None:
    root = await hostile.asked("@Threadline set Brand Search <!channel> to 150")
    await hostile.answer(root, count=2)
    await hostile.idle()
    (card,) = [
        each for each in await hostile.replies(root) if any(block["type"] == "actions" for block in each["blocks"])
    ]
    await hostile.people.click("#campaigns", card["ts"], "approval_deny_why", "@ada")
    (view,) = (await hostile.people.views("@ada"))["views"]
    await nothing_called(hostile)
    await hostile.people.submit_view("@ada", view["id"], {"reason": {"value": f"no, {' '.join(CALLS[:7])}"}})
    await hostile.answer(root, count=3)
    await hostile.idle()
    (card,) = [each for each in await hostile.replies(root) if each["ts"] == card["ts"]]
    assert "no, " in card["plain"]
    await nothing_called(hostile)


async def test_commands_and_their_refusals_call_nobody(hostile: Bench) -> None:
    called = " ".join(CALLS[:9])
    for command in ("/report", "/campaigns", "/summaries", "/threadline"):
        for text in (called, f"Brand Search {called}", "", "every monday 9:00", "off"):
            told = await hostile.people.command("#campaigns", "@ada", command, text)
            assert broadcasts(told["response"]) == []
    root = await hostile.asked(f"@Threadline {called}")
    await hostile.answer(root)
    for command in ("!report", "!campaigns", "!summaries", "!threadline"):
        await hostile.people.post_message("#campaigns", "@ada", f"{command} {called}", thread_ts=root)
    await hostile.idle()
    await nothing_called(hostile)


async def test_a_report_calls_nobody_where_it_is_posted_and_where_it_is_not(hostile: Bench) -> None:
    channels = hostile.emulator.slack.workspaces[NORTHWIND].channels
    await hostile.people.command("#campaigns", "@ada", "/report", "last month")
    await hostile.idle()
    channels["C0GENERAL"].members.remove("U0THREADLINE")
    await hostile.people.command("#general", "@ada", "/report", "last month")
    await hostile.idle()
    reports = [
        message
        for message in hostile.emulator.slack.timeline.everything()
        if any(block["type"] == "data_table" for block in message.blocks)
    ]
    assert {message.channel_id for message in reports} == {"C0CAMPAIGNS", "C0GENERAL"}
    await nothing_called(hostile)


async def test_the_home_tab_the_settings_and_the_welcome_call_nobody(hostile: Bench) -> None:
    guidance = f"Always {' '.join(CALLS[:9])}"
    await hostile.people.command("#campaigns", "@ada", "/threadline", "settings")
    (view,) = (await hostile.people.views("@ada"))["views"]
    values: dict[str, dict[str, str | list[str]]] = {
        "guidance": {"value": guidance}, "approvers": {"value": []}, "alone_limit": {"value": "<!here>"}, "spend_cap": {"value": ""},
    }  # fmt: skip
    await hostile.people.submit_view("@ada", view["id"], values)
    await nothing_called(hostile)
    await hostile.people.submit_view("@ada", view["id"], {**values, "alone_limit": {"value": ""}})
    await hostile.people.open_home("@ada", "home")
    await hostile.people.command("#campaigns", "@ada", "/threadline", "settings")
    (view,) = (await hostile.people.views("@ada"))["views"]
    assert guidance in str(view), "a form shows what was filled in"
    hostile.emulator.slack.workspaces[HARBOR].name = f"Harbor {CALLS[0]} {CALLS[7]}"
    await hostile.install()

    async def greeted() -> bool:
        return any("Harbor" in each["plain"] for each in await hostile.people.messages("dm:@dana"))

    await hostile.people.wait_for(greeted, what="whoever installed to be greeted")
    await nothing_called(hostile)


async def test_a_models_own_words_call_nobody_and_are_read_whole(
    hostile: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said in (HOSTILE, HOSTILE * 200, f"| {HOSTILE.replace('|', '/')} |\n|---|\n| {HOSTILE.replace('|', '/')} |"):
        monkeypatch.setattr(hostile.service.model, "stream", Script(said).stream)
        root = await hostile.asked("@Threadline go on")
        await hostile.answer(root)
        await hostile.idle()
        shown = read([message["blocks"] for message in await hostile.replies(root)])
        assert is_within(letters(neutral(said)), letters(shown))
    await nothing_called(hostile)


async def test_what_cannot_be_done_is_told_without_calling_anybody(hostile: Bench) -> None:
    """A turn that fails, one that is stopped, and a summary whose channel is lost."""
    await hostile.people.fault("tool:list_campaigns", "delay", delay_s=30)
    root = await hostile.asked(f"@Threadline which campaigns do we have? {CALLS[0]}")

    async def running() -> bool:
        return not await hostile.people.faults("tool:list_campaigns")

    await hostile.people.wait_for(running, what="the tool to run")
    await hostile.people.stop("#campaigns", root, "@ada")
    await hostile.answer(root)
    await hostile.people.command("#campaigns", "@ada", "/summaries", "daily at 9:00")
    hostile.emulator.slack.workspaces[NORTHWIND].channels["C0CAMPAIGNS"].is_archived = True
    await hostile.time_passes(24 * 3600)

    async def told() -> bool:
        return any("could not post" in each["plain"] for each in await hostile.people.messages("dm:@ada"))

    await hostile.people.wait_for(told, what="the owner to be told")
    await asyncio.wait_for(hostile.idle(), 15)
    await nothing_called(hostile)


async def test_names_of_files_and_people_call_nobody(hostile: Bench) -> None:
    users = hostile.emulator.slack.workspaces[NORTHWIND].users
    users["U0ADA"] = replace(users["U0ADA"], real_name=f"Ada {CALLS[0]} {CALLS[7]}")
    files = {f"orders {call}.csv": b"campaign,spend\n<!channel> @here,12\n" for call in CALLS[:4]}
    for asked, shared in (("what is in these files?", files), ("look", {"a <!here>.docx": b"PK"})):
        root = await hostile.people.post_message("dm:@ada", "@ada", asked, files=shared)
        await hostile.answer(root, "dm:@ada")
        await hostile.idle()
    await nothing_called(hostile)
