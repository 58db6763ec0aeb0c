"""An answer appears once and whole, whatever was cut off before: the Slack channel against the local Slack."""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from agent.channel import Card, ChannelUnavailableError, Task
from agent.tools import Evidence
from bot.render.pacing import MemoryPacer
from bot.render.refusals import LATER, LIMITED, REFUSED_FORMS
from tests.bot.desk import ADA, TOKEN, Desk, Jotted

WORDS = "All of this is said exactly once and in its order. "


@pytest.mark.parametrize("said", [WORDS * 3, WORDS * 120 + "\n\n" + WORDS * 120, "@here is 12. " * 800])
async def test_what_was_streamed_is_not_said_again(desk: Desk, said: str) -> None:
    half = len(said) // 2
    draft = await desk.streamed(said[:half], notes=Jotted())
    draft = await desk.streamed(said[half:], notes=Jotted(), draft=draft)
    await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=Jotted())
    shown = " ".join(message["plain"] for message in await desk.ours())
    assert shown.count("exactly once") == said.count("exactly once")
    assert shown.count("is 12.") == said.count("is 12.")
    assert not [message for message in await desk.ours() if message["streaming"] == "streaming"]


async def test_half_an_answer_never_passes_for_the_whole(desk: Desk) -> None:
    """Killed between the end of the stream and the edit that completes it."""
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    assert draft is not None
    cut_off = draft.model_copy(update={"live": False})
    await desk.people.fault("chat.update", "http_500", times=1)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, WORDS * 9, delivery_id="d", draft=cut_off, notes=Jotted())
    assert await desk.channel.find(desk.thread, delivery_id="d", notes=Jotted(recovered=True)) is None
    await desk.channel.deliver(
        desk.thread, WORDS * 9, delivery_id="d", draft=cut_off, notes=Jotted(attempt=2, recovered=True)
    )
    (answer,) = await desk.ours()
    assert answer["plain"].count("exactly once") == 9


async def test_a_post_whose_reply_was_lost_is_found_however_late_it_is_looked_for(desk: Desk) -> None:
    began = datetime.now(UTC)
    await desk.people.fault("chat.postMessage", "reset_after_commit", times=1)
    notes = Jotted(intent_at=began)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    notes.attempt = 2
    notes.kept["sending-0-1.9"] = (began + timedelta(minutes=10)).isoformat()  # much later tries came to nothing
    await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    assert len(await desk.ours()) == 1


LONG = "\n\n".join(f"Paragraph {number}. " + "word " * 100 for number in range(100))  # five messages


async def test_one_look_serves_all_messages_of_an_answer(desk: Desk) -> None:
    """Slack gives some apps a page a minute: with a look for each message they would never come to an end."""
    await desk.people.fault("chat.postMessage", "delay", delay_s=0.01, times=2)
    await desk.people.fault("chat.postMessage", "reset_after_commit", times=1)
    notes = Jotted()
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, LONG, delivery_id="d", draft=None, notes=notes)
    notes.attempt = 2
    notes.kept = {name: value for name, value in notes.kept.items() if not name.startswith("posted-")}  # killed between
    assert await desk.channel.find(desk.thread, delivery_id="d", notes=notes) is None, "as the engine looks first"
    await desk.channel.deliver(desk.thread, LONG, delivery_id="d", draft=None, notes=notes)
    assert len(await desk.ours()) == 5
    assert len(await desk.people.calls("conversations.replies")) == 1


async def test_a_message_that_is_known_to_stand_is_not_looked_for(desk: Desk) -> None:
    await desk.people.fault("chat.postMessage", "delay", delay_s=0.01, times=2)
    await desk.people.fault("chat.postMessage", "ratelimited", times=1)
    notes = Jotted()
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, LONG, delivery_id="d", draft=None, notes=notes)
    assert len(await desk.ours()) == 2
    notes.attempt = 2
    await desk.people.advance_clock(61)
    desk.channel._posting._pacer = MemoryPacer()  # which was told to wait
    await desk.channel.deliver(desk.thread, LONG, delivery_id="d", draft=None, notes=notes)
    assert len(await desk.ours()) == 5
    assert await desk.people.calls("conversations.replies") == []


async def test_a_look_that_began_too_early_says_nothing_of_what_arrived_after_it(desk: Desk) -> None:
    """It ended without the message, which was on its way then, and the next try comes when absence could be believed."""
    notes = Jotted(recovered=True)
    with pytest.raises(ChannelUnavailableError, match="not certain"):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=Jotted())  # it arrives
    began = datetime.now(UTC)
    desk.channel._posting.now = lambda: began + timedelta(seconds=60)
    await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    assert len(await desk.ours()) == 1


async def test_absence_is_not_believed_before_the_deadline_is_over(desk: Desk) -> None:
    with pytest.raises(ChannelUnavailableError, match="not certain"):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=Jotted(recovered=True))
    late = Jotted(recovered=True, intent_at=datetime.now(UTC) - timedelta(seconds=5))
    await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=late)
    assert len(await desk.ours()) == 1


async def test_a_sender_that_was_paused_does_not_send(desk: Desk) -> None:
    paused = Jotted(intent_at=datetime.now(UTC) - timedelta(seconds=3))
    with pytest.raises(ChannelUnavailableError, match="too late"):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=paused)
    assert await desk.ours() == []


async def test_a_stream_whose_start_was_lost_is_adopted(desk: Desk) -> None:
    await desk.people.fault("chat.startStream", "reset_after_commit", times=1)
    notes = Jotted()
    draft = await desk.streamed(WORDS * 4, notes=notes)
    assert draft is not None
    assert draft.message_id is None
    await desk.channel.deliver(desk.thread, WORDS * 4, delivery_id="d", draft=draft, notes=Jotted())
    (answer,) = await desk.ours()
    assert answer["plain"].count("exactly once") == 4
    assert answer["metadata"]["event_payload"]["delivery_id"] == "d"


async def test_a_draft_somebody_deleted_is_posted_anew(desk: Desk) -> None:
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    assert draft is not None
    await AsyncWebClient(token=TOKEN, base_url=desk.api_url).chat_delete(
        channel="C0CAMPAIGNS", ts=draft.message_id or ""
    )
    await desk.channel.deliver(desk.thread, WORDS * 4, delivery_id="d", draft=draft, notes=Jotted())
    assert (await desk.ours())[-1]["plain"].count("exactly once") == 4


@pytest.mark.parametrize("live", [True, False], ids=["streamed to its end", "cut off with its worker"])
@pytest.mark.parametrize(
    "refused",
    [
        {"chat.stopStream": "invalid_blocks"},
        {"chat.stopStream": "msg_blocks_too_many", "chat.update": "streaming_state_conflict"},
        {"chat.stopStream": "message_not_owned_by_app", "chat.update": "edit_window_closed"},
        {"chat.stopStream": "message_not_in_streaming_state", "chat.update": "cant_update_message"},
        {"chat.stopStream": "stopped_by_user", "chat.update": "invalid_blocks"},
    ],
    ids=lambda refused: "-".join(refused.values()),
)
async def test_an_answer_arrives_whole_whatever_slack_refuses_to_do_with_its_draft(
    desk: Desk, refused: dict[str, str], live: bool
) -> None:
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    assert draft is not None
    for method, code in refused.items():
        await desk.people.fault(method, "error", error=code, times=2)
    draft = draft.model_copy(update={"live": live})
    await desk.channel.deliver(desk.thread, WORDS * 4, delivery_id="d", draft=draft, notes=Jotted(), rated_as="r")
    (answer,) = await desk.ours()
    assert answer["plain"].count("exactly once") == 4
    assert answer["metadata"]["event_payload"]["delivery_id"] == "d"


async def test_half_an_answer_that_can_not_be_removed_stands_above_the_whole_one(desk: Desk) -> None:
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    for method in ("chat.update", "chat.delete"):
        await desk.people.fault(method, "error", error=f"cant_{method[5:]}_message")
    assert draft is not None
    cut_off = draft.model_copy(update={"live": False})
    await desk.channel.deliver(desk.thread, WORDS * 9, delivery_id="d", draft=cut_off, notes=Jotted())
    half, whole = await desk.ours()
    assert not half["metadata"]
    assert whole["plain"].count("exactly once") == 9


async def test_a_start_that_was_lost_is_not_taken_for_a_stream_that_was_stopped_before(desk: Desk) -> None:
    await desk.streamed("Before. " * 20, notes=Jotted())
    await desk.people.stop("#campaigns", desk.root, "@ada")
    await desk.people.fault("chat.startStream", "reset_after_commit", times=1)
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    await desk.channel.deliver(desk.thread, WORDS * 4, delivery_id="d", draft=draft, notes=Jotted(attempt=2))
    before, answer = await desk.ours()
    assert before["plain"].startswith("Before.")
    assert (answer["plain"].count("exactly once"), answer["streaming"] == "streaming") == (4, False)


PIECES = [f"Piece {number}: {'so it goes on, word by word. ' * 8}" for number in range(6)]


@pytest.mark.parametrize("expires", [0, 1, 2, 3, 4, 5, 6])
async def test_a_stream_that_runs_out_at_any_piece_loses_and_doubles_none(desk: Desk, expires: int) -> None:
    """Case 15. The unsent text is in the next edit, which people see before the answer is done; the end is one whole message."""
    draft = await desk.streamed(*PIECES, notes=Jotted(), expires=expires)
    assert draft is not None
    if expires == 6:
        await desk.people.advance_clock(301)
    shown = await desk.text()
    assert [shown.count(f"Piece {number}:") for number in range(6)] == [1] * 6, "all of it is seen before the end"
    await desk.channel.deliver(desk.thread, "".join(PIECES), delivery_id="d", draft=draft, notes=Jotted())
    (answer,) = await desk.ours()
    assert [answer["plain"].count(f"Piece {number}:") for number in range(6)] == [1] * 6
    assert answer["metadata"]["event_payload"]["delivery_id"] == "d"
    assert answer["streaming"] != "streaming"


async def test_a_turn_goes_on_in_the_same_message_after_its_stream_ran_out(desk: Desk) -> None:
    """Over several calls of the model: what was said before is kept in each edit."""
    draft = await desk.streamed(*PIECES[:2], notes=Jotted(), expires=1)
    assert draft is not None
    assert draft.edited
    said = "".join(PIECES[:2]).strip()
    draft = await desk.streamed("\n\n", *PIECES[2:4], notes=Jotted(), draft=draft, said=said)
    (answer,) = await desk.ours()
    assert [answer["plain"].count(f"Piece {number}:") for number in range(4)] == [1] * 4


async def test_a_stream_is_ended_in_time_and_not_by_slack(desk: Desk) -> None:
    """Before the five minutes are over the message goes on by edits; nothing is refused."""
    draft = await desk.streamed(*PIECES[:2], notes=Jotted())
    assert draft is not None
    assert draft.began_at is not None
    old = draft.model_copy(update={"began_at": draft.began_at - timedelta(minutes=4, seconds=1)})
    await desk.streamed(*PIECES[2:], notes=Jotted(), draft=old, said="".join(PIECES[:2]))
    calls = await desk.people.calls()
    assert all(call["result"]["ok"] for call in calls if call["method"].startswith("chat."))
    ended = [call["method"] for call in calls if call["method"] in ("chat.stopStream", "chat.update")]
    assert ended[:2] == ["chat.stopStream", "chat.update"]
    assert [(await desk.text()).count(f"Piece {number}:") for number in range(6)] == [1] * 6


async def test_pressing_stop_ends_the_showing_and_posts_no_error(desk: Desk) -> None:
    """Case 16."""
    draft = await desk.streamed(*PIECES[:2], notes=Jotted())
    await desk.people.stop("#campaigns", desk.root, "@ada")
    after = await desk.streamed(*PIECES[2:4], notes=Jotted(), draft=draft)
    assert after is not None
    assert (after.live, after.edited) == (False, False)
    assert len(await desk.ours()) == 1
    assert "Piece 2" not in await desk.text()


@pytest.mark.parametrize("live", [True, False], ids=["streamed to its end", "cut off with its worker"])
async def test_the_status_is_taken_back_with_the_answer(desk: Desk, live: bool) -> None:
    """Case 17: Slack clears it for a post, not for an edit."""
    draft = await desk.streamed(*PIECES[:3], notes=Jotted())
    assert draft is not None
    draft = draft.model_copy(update={"live": live})
    if not live:
        await desk.people.advance_clock(301)  # the end of a stream would clear it, and Slack has ended this one
    await desk.channel.working(desk.thread, "is thinking…")
    assert (await desk.people.status("#campaigns", desk.root))["status"] == "is thinking…"
    await desk.channel.deliver(desk.thread, "".join(PIECES[:3]), delivery_id="d", draft=draft, notes=Jotted())
    assert (await desk.people.status("#campaigns", desk.root))["status"] == ""


async def test_tools_are_shown_as_a_status_or_as_cards(desk: Desk) -> None:
    async def so_far() -> str:
        return ""

    tasks = [Task(id="c1", title="Campaign performance", state="in_progress")]
    stream = desk.channel.stream(desk.thread, ADA, delivery_id="d", draft=None, notes=Jotted(), so_far=so_far)
    await stream.tasks(tasks)
    assert (await desk.people.status("#campaigns", desk.root))["status"] == "is at work: campaign performance…"
    assert await desk.ours() == []
    desk.channel._cards = True
    stream = desk.channel.stream(desk.thread, ADA, delivery_id="d", draft=None, notes=Jotted(), so_far=so_far)
    await stream.tasks(tasks)
    await stream.tasks([task.model_copy(update={"state": "complete"}) for task in tasks])
    await stream.append(PIECES[0])
    draft = await stream.pause()
    await desk.channel.deliver(desk.thread, PIECES[0], delivery_id="d", draft=draft, notes=Jotted())
    (answer,) = await desk.ours()
    (card,) = [block for block in answer["blocks"] if block["type"] == "task_card"]
    assert (card["title"], card["status"]) == ("Campaign performance", "complete")
    assert "Piece 0:" in answer["plain"]


# Tables

SPEND = "### Spend\n\n| Campaign | Spend |\n|---|--:|\n" + "".join(f"| Piece {n}: | {n}.50 |\n" for n in range(40))


def tables(messages: list[dict[str, Any]]) -> list[list[list[str]]]:
    """The cells of each table that is shown."""
    blocks = [block for message in messages for block in message["blocks"] if block["type"] == "data_table"]
    return [[[cell["text"] for cell in row] for row in block["rows"]] for block in blocks]


@pytest.mark.parametrize("expires", [None, 1, 3, 5])
async def test_a_streamed_table_ends_as_slacks_own_in_the_same_message(desk: Desk, expires: int | None) -> None:
    """Streamed as it is written, also where the stream runs out in its middle; the end is an edit, rated and found by its metadata."""
    said = f"{WORDS * 4}\n\n{SPEND}\n{WORDS * 4}"
    cut = [said[start : start + 300] for start in range(0, len(said), 300)]
    draft = await desk.streamed(*cut, notes=Jotted(), expires=expires)
    assert draft is not None
    await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=Jotted(), rated_as="r")
    (answer,) = await desk.ours()
    assert [block["type"] for block in answer["blocks"]] == ["markdown", "data_table", "markdown", "context_actions"]
    assert tables([answer]) == [[["Campaign", "Spend"], *([f"Piece {n}:", f"{n}.50"] for n in range(40))]]
    assert answer["blocks"][1]["caption"] == "Spend"
    assert answer["plain"].count("exactly once") == 8
    assert answer["metadata"]["event_payload"]["delivery_id"] == "d"
    assert answer["streaming"] != "streaming"
    assert "| Piece 39: | 39.50 |" in answer["text"]


@pytest.mark.parametrize("lost", ["chat.stopStream", "chat.update"])
async def test_a_streamed_table_cut_off_at_its_end_is_finished_and_not_said_again(desk: Desk, lost: str) -> None:
    draft = await desk.streamed(WORDS * 3, f"\n\n{SPEND}", notes=Jotted())
    said = f"{WORDS * 3}\n\n{SPEND}"
    await desk.people.fault(lost, "reset_after_commit", times=1)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=Jotted())
    await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=Jotted(attempt=2))
    (answer,) = await desk.ours()
    assert len(tables([answer])[0]) == 41


@pytest.mark.parametrize("refusals", [1, 2, 3])
async def test_a_streamed_table_that_slack_refuses_is_still_read(desk: Desk, refusals: int) -> None:
    said = f"{WORDS * 3}\n\n{SPEND}"
    draft = await desk.streamed(WORDS * 3, f"\n\n{SPEND}", notes=Jotted())
    await desk.people.fault("chat.update", "error", error="invalid_blocks", times=refusals)
    await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=Jotted())
    (answer,) = await desk.ours()
    assert [answer["plain"].count(f"Piece {number}:") for number in range(40)] == [1] * 40
    assert answer["metadata"]["event_payload"]["delivery_id"] == "d"


@pytest.mark.parametrize("desk", [8.0], indirect=True)
async def test_a_table_of_150_rows_and_one_of_500_arrive_whole(desk: Desk) -> None:
    for count, sizes in ((150, [151]), (500, [201, 201, 101])):
        rows = [[f"Campaign {number}", f"{number}.00"] for number in range(count)]
        said = "\n".join(["| Campaign | Spend |", "|---|--:|", *(f"| {name} | {spend} |" for name, spend in rows)])
        before = len(await desk.ours())
        await desk.channel.deliver(desk.thread, said, delivery_id=str(count), draft=None, notes=Jotted())
        found = tables((await desk.ours())[before:])
        assert [len(each) for each in found] == sizes
        assert [row for each in found for row in each[1:]] == rows


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ("", [["markdown", "context_actions"]]),
        (
            "x" * 12_000,
            [["markdown", "data_table"], ["markdown", "data_table", "markdown"], ["markdown", "context_actions"]],
        ),
    ],
    ids=["one message", "a message each"],
)
async def test_tables_of_an_answer_are_whole_in_one_message_or_have_one_each(
    desk: Desk, more: str, shown: list[list[str]]
) -> None:
    said = f"First:\n\n{SPEND}\nSecond:\n\n{SPEND}\n{more}Done."
    draft = await desk.streamed(said[:400], said[400:], notes=Jotted())
    await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=Jotted(), rated_as="r")
    ours = await desk.ours()
    assert [[block["type"] for block in message["blocks"]] for message in ours] == shown
    assert await desk.channel.find(desk.thread, delivery_id="d", notes=Jotted()) is not None
    assert len(await desk.people.calls("chat.update")) == 1, "what is streamed shows bars where a block shows tables"


# What Slack refuses


TABLE = "| a | b |\n|---|---|\n| 1 | 2 & 3 |"


async def content(desk: Desk, file: dict[str, Any]) -> str:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession() as session, session.get(file["url_private"], headers=headers) as response:
        return await response.text()


@pytest.mark.parametrize("code", sorted(REFUSED_FORMS))
async def test_where_a_table_is_refused_it_is_markdown_then_text_and_else_a_file(desk: Desk, code: str) -> None:
    for refusals in (1, 2, 3):
        await desk.people.fault("chat.postMessage", "error", error=code, times=refusals)
        await desk.channel.deliver(desk.thread, TABLE, delivery_id=str(refusals), draft=None, notes=Jotted())
    as_markdown, as_text, as_file = await desk.ours()
    assert [block["text"] for block in as_markdown["blocks"]] == [TABLE]
    assert as_text["blocks"] == []
    assert as_text["text"].startswith("```\n| a | b |")
    assert "2 &amp; 3" in as_text["text"]
    (file,) = as_file["files"]
    assert file["name"] == "answer.md"
    assert await content(desk, file) == TABLE


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("files.getUploadURLExternal", "missing_scope"),
        ("files.getUploadURLExternal", "file_uploads_disabled"),
        ("files.getUploadURLExternal", "a_new_word_of_slacks"),
        ("files.completeUploadExternal", "file_not_found"),
        ("files.completeUploadExternal", "invalid_channel"),
        ("files.completeUploadExternal", "posting_to_channel_denied"),
        ("files.completeUploadExternal", "access_denied"),
    ],
)
async def test_a_file_that_is_refused_for_good_is_plain_words_at_once(desk: Desk, method: str, code: str) -> None:
    """And is asked for once: nobody tries four hundred times."""
    await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    await desk.people.fault(method, "error", error=code, times=400)
    notes = Jotted()
    await desk.channel.deliver(desk.thread, WORDS * 9, delivery_id="d", draft=None, notes=notes)
    (answer,) = await desk.ours()
    assert answer["text"].count("exactly once") == 9
    assert "neither as a formatted message nor as a file" in answer["text"]
    assert answer["files"] == []
    assert len(await desk.people.calls(method)) == 1
    assert (await desk.channel.find(desk.thread, delivery_id="d", notes=notes)) is not None


@pytest.mark.parametrize("lost", ["chat.postMessage", "files.getUploadURLExternal"])
async def test_plain_words_instead_of_a_file_stand_there_once_whatever_is_cut_off(desk: Desk, lost: str) -> None:
    notes = Jotted()
    await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    await desk.people.fault("files.completeUploadExternal", "error", error="file_not_found", times=9)
    await desk.people.fault(lost, "reset_after_commit", times=1)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    if lost.startswith("files"):
        await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    for attempt in (2, 3):
        notes.attempt, notes.intent_at = attempt, datetime.now(UTC) - timedelta(seconds=10)
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    (answer,) = await desk.ours()
    assert answer["text"].endswith("Once.")
    assert len(await desk.people.calls("files.completeUploadExternal")) == 1


@pytest.mark.parametrize("status", [403, 404, 410, 413, 415])
async def test_bytes_that_are_refused_are_not_sent_again(desk: Desk, status: int) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    desk.slack.url = site.name  # where bytes are sent to from now on
    await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    await desk.channel.deliver(desk.thread, "Words.", delivery_id="d", draft=None, notes=Jotted())
    await runner.cleanup()
    (answer,) = await desk.ours()
    assert answer["text"].endswith("Words.")
    assert f"upload_{status}" in answer["text"]


@pytest.mark.parametrize("code", sorted(LATER | LIMITED))
async def test_slacks_own_trouble_with_a_file_is_waited_for(desk: Desk, code: str) -> None:
    notes = Jotted()
    await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    await desk.people.fault("files.getUploadURLExternal", "error", error=code, times=1)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, "Words.", delivery_id="d", draft=None, notes=notes)
    assert notes.noted("file-0-refused") is None


async def test_what_is_too_long_for_an_edit_without_blocks_is_posted_anew_and_whole(desk: Desk) -> None:
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    assert draft is not None
    cut_off = draft.model_copy(update={"live": False})
    await desk.people.fault("chat.update", "error", error="invalid_blocks")
    await desk.channel.deliver(desk.thread, WORDS * 120, delivery_id="d", draft=cut_off, notes=Jotted())
    (answer,) = await desk.ours()
    assert answer["plain"].count("exactly once") == 120


@pytest.mark.parametrize("cut", ["files.getUploadURLExternal", "files.completeUploadExternal", "conversations.replies"])
async def test_a_file_is_shared_once_whatever_is_cut_off(desk: Desk, cut: str) -> None:
    notes = Jotted()
    await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    await desk.people.fault(cut, "http_500" if cut.startswith("conversations") else "reset_after_commit", times=1)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, "words", delivery_id="d", draft=None, notes=notes)
    await desk.people.clear_faults()
    if cut == "files.getUploadURLExternal":
        await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    notes.attempt, notes.intent_at = 2, datetime.now(UTC) - timedelta(seconds=10)
    await desk.channel.deliver(desk.thread, "words", delivery_id="d", draft=None, notes=notes)
    (shared,) = await desk.ours()
    assert len(shared["files"]) == 1


async def test_100_000_characters_arrive_whole_and_in_order(desk: Desk) -> None:
    said = "\n\n".join(f"Paragraph {number}: " + "word " * 100 for number in range(190))
    await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=None, notes=Jotted())
    text = await desk.text()
    assert [f"Paragraph {number}:" in text for number in range(190)] == [True] * 190
    assert text.split() == said.split()


HOSTILE = "<!channel> @here <!subteam^S1> <https://evil.example|click> & <script>"


async def test_hostile_text_pings_nobody_on_any_path(desk: Desk) -> None:
    """Blocks, plain text, files, cards and the status."""
    await desk.channel.working(desk.thread, HOSTILE)
    await desk.channel.deliver(desk.thread, HOSTILE, delivery_id="a", draft=None, notes=Jotted())
    await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=1)
    await desk.channel.deliver(desk.thread, HOSTILE, delivery_id="b", draft=None, notes=Jotted())
    card = Card(
        approval_id="a1",
        evidence=Evidence(title=HOSTILE, facts=((HOSTILE, HOSTILE),)),
        requester=ADA,
        expires_at=datetime.now(UTC),
        reason=HOSTILE,
    )
    ts = await desk.channel.ask(desk.thread, card, notes=Jotted())
    await desk.channel.settle(desk.thread, ts, card.model_copy(update={"state": "denied"}))
    await desk.people.fault("chat.postMessage", "error", error="invalid_blocks", times=2)
    await desk.channel.deliver(desk.thread, HOSTILE, delivery_id="c", draft=None, notes=Jotted())
    sent = [
        call["args"] for call in await desk.people.calls() if "chat." in call["method"] or "etStatus" in call["method"]
    ]
    assert len(sent) >= 6
    for arguments in sent:
        shown = str({key: value for key, value in arguments.items() if key != "token"})
        assert "<!channel" not in shown
        assert "<!subteam" not in shown
        assert " @here" not in shown


@pytest.mark.parametrize(
    "method", ["chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update", "chat.postMessage"]
)
async def test_a_reply_that_is_lost_after_the_commit_of_any_method_doubles_nothing(desk: Desk, method: str) -> None:
    said, notes = "".join(PIECES[:3]), Jotted()
    await desk.people.fault(method, "reset_after_commit", times=1)
    draft = None
    if method != "chat.postMessage":
        draft = await desk.streamed(*PIECES[:3], notes=Jotted(), expires=1 if method == "chat.update" else None)
    with contextlib.suppress(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=notes)
    assert await desk.people.faults(method) == [], "it happened"
    notes.attempt = 2
    if await desk.channel.find(desk.thread, delivery_id="d", notes=notes) is None:  # as the engine looks first
        await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=notes)
    (answer,) = await desk.ours()
    assert [answer["plain"].count(f"Piece {number}:") for number in range(3)] == [1] * 3
