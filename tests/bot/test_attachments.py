"""A report whose table is larger than Slack's: what fits is shown, and a file has all of it, once."""

import csv
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.channel import ChannelUnavailableError
from agent.reports import Document, Grid, Number
from bot.emulator import Emulator, EmulatorConfig
from bot.emulator.client import EmulatorClient
from bot.render.tables import ROWS_LIMIT
from tests.bot.desk import TOKEN, Desk, Jotted

NAMES = ["=HYPERLINK(1)", "+1", "-1", "@sum", "<!channel>", 'a "quoted", name', *(f"Campaign {n}" for n in range(300))]
LARGE = Document(
    summary="Report",
    body="**Report**",
    grid=Grid(
        caption="All", rows=(("Name", "Spend"), *((name, Number(text="€1,234.50", value=1234.5)) for name in NAMES))
    ),
)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    config = EmulatorConfig(signing_secret="s", bot_token=TOKEN)
    async with Emulator(config, environment="test") as emulator, EmulatorClient(emulator.url) as people:
        yield Desk(emulator, people, await people.post_message("#campaigns", "@ada", "hello"), deadline_s=8)


async def publish(desk: Desk, notes: Jotted, document: Document = LARGE) -> None:
    await desk.channel.publish(desk.thread, document, delivery_id="d", reply_url=None, notes=notes)


def kinds(messages: list[dict[str, Any]]) -> list[str]:
    return ["file" if message["files"] else message["blocks"][1]["type"] for message in messages]


async def test_the_file_has_every_row_with_numbers_as_such_and_no_formulas(desk: Desk) -> None:
    await publish(desk, Jotted())
    shown, attached = await desk.ours()
    assert len(shown["blocks"][1]["rows"]) == ROWS_LIMIT
    assert "the file below has all of them" in shown["blocks"][0]["text"]
    [file] = attached["files"]
    kept = desk.slack.files.find(file["id"])
    assert kept is not None
    head, *rows = csv.reader(io.StringIO((kept.content or b"").decode()))
    assert head == ["Name", "Spend"]
    assert [row[0].removeprefix("'") for row in rows] == NAMES
    assert [row[0] for row in rows[:4]] == [f"'{name}" for name in NAMES[:4]]
    assert {row[1] for row in rows} == {"1234.5"}


async def test_a_table_that_fits_has_no_file(desk: Desk) -> None:
    assert LARGE.grid is not None
    small = LARGE.model_copy(update={"grid": Grid(caption="All", rows=LARGE.grid.rows[:50])})
    await publish(desk, Jotted(), small)
    assert kinds(await desk.ours()) == ["data_table"]


@pytest.mark.parametrize("cut", ["chat.postMessage", "files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_both_stand_there_once_whatever_is_cut_off(desk: Desk, cut: str) -> None:
    notes = Jotted()
    await desk.people.fault(cut, "reset_after_commit", times=1)
    with pytest.raises(ChannelUnavailableError):
        await publish(desk, notes)
    notes.attempt, notes.intent_at = 2, datetime.now(UTC) - timedelta(seconds=20)
    assert await desk.channel.find(desk.thread, delivery_id="d", notes=notes) is None, "half is not the whole"
    await publish(desk, notes)
    assert kinds(await desk.ours()) == ["data_table", "file"]


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_where_slack_takes_no_file_the_other_rows_follow_as_a_table(desk: Desk, method: str) -> None:
    """And the file is asked for once."""
    await desk.people.fault(method, "error", error="missing_scope", times=400)
    notes = Jotted()
    await publish(desk, notes)
    shown, more = await desk.ours()
    assert "until an admin installs me again" in more["blocks"][0]["text"]
    rows = [*shown["blocks"][1]["rows"][:-1], *more["blocks"][1]["rows"][1:], shown["blocks"][1]["rows"][-1]]
    assert [row[0]["text"].replace("\u2060", "") for row in rows] == ["Name", *NAMES]
    assert len(await desk.people.calls(method)) == 1
    assert await desk.channel.find(desk.thread, delivery_id="d", notes=notes) is not None


@pytest.mark.parametrize("lost", range(2))
async def test_the_rows_that_follow_stand_there_once_whatever_is_cut_off(desk: Desk, lost: int) -> None:
    notes = Jotted()
    await desk.people.fault("files.getUploadURLExternal", "error", error="missing_scope", times=9)
    if lost:  # the report stands there, and an earlier try was cut off after it
        await publish(desk, notes, LARGE.model_copy(update={"grid": None}))
        notes.attempt, notes.intent_at = 2, datetime.now(UTC) - timedelta(seconds=20)
    await desk.people.fault("chat.postMessage", "reset_after_commit", times=1)
    with pytest.raises(ChannelUnavailableError):
        await publish(desk, notes)
    for attempt in (3, 4):
        notes.attempt, notes.intent_at = attempt, datetime.now(UTC) - timedelta(seconds=20)
        for name in notes.kept:
            if name.startswith("sending-"):
                notes.kept[name] = notes.intent_at.isoformat()
        await publish(desk, notes)
    assert len(await desk.ours()) == 2


WIDE = Document(
    summary="Report",
    body="**Report**",
    grid=Grid(caption="All", rows=(tuple(f"c{n}" for n in range(23)), ("n" * 300, *(f"x{n}" for n in range(22))))),
)


async def test_long_cells_and_further_columns_are_in_the_file(desk: Desk) -> None:
    await publish(desk, Jotted(), WIDE)
    shown, attached = await desk.ours()
    assert (
        "Not all columns and words did fit into the table; the file below has all of them."
        in shown["blocks"][0]["text"]
    )
    kept = desk.slack.files.find(attached["files"][0]["id"])
    assert kept is not None
    assert WIDE.grid is not None
    assert list(csv.reader(io.StringIO((kept.content or b"").decode()))) == [list(row) for row in WIDE.grid.rows]


async def test_where_slack_takes_no_file_they_follow_as_they_can_be_shown(desk: Desk) -> None:
    await desk.people.fault("files.getUploadURLExternal", "error", error="file_uploads_disabled", times=9)
    await publish(desk, Jotted(), WIDE)
    _, more = await desk.ours()
    assert "file uploads are switched off here" in more["blocks"][0]["text"]
    assert "n" * 300 in more["blocks"][0]["text"]
    assert "| x21 |" in more["blocks"][0]["text"]


async def test_a_report_whose_place_goes_before_its_file_stands_and_is_not_told_twice(desk: Desk) -> None:
    """Nor is it told by the command's reply address, which is for where it could not be posted."""
    await desk.people.fault("files.completeUploadExternal", "error", error="not_in_channel", times=9)
    place = desk.slack.interactions.new_response_url("T0NORTHWIND", "C0CAMPAIGNS", "U0ADA")
    url = f"{desk.slack.url}/response/{place}"
    await desk.channel.publish(desk.thread, LARGE, delivery_id="d", reply_url=url, notes=Jotted())
    assert kinds(await desk.ours()) == ["data_table"]
    said = [message for message in desk.slack.timeline.everything() if message.bot_id]
    assert len(said) == 1
