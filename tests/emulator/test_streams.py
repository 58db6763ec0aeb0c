"""Streams, the status line and the Stop button."""

from collections.abc import Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.models.messages.chunk import MarkdownTextChunk, TaskUpdateChunk
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import EmulatorClient
from tests.emulator.conftest import Sink, settled

CAMPAIGNS = "C0CAMPAIGNS"
READER: dict[str, Any] = {"recipient_team_id": "T0NORTHWIND", "recipient_user_id": "U0ADA"}


@pytest.fixture
async def root(people: EmulatorClient) -> str:
    return await people.post_message("#campaigns", "@ada", "@Threadline how was last week?")


async def code_of(call: Awaitable[object]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_a_stream_grows_while_it_is_read_and_ends_as_a_message(
    web_api: AsyncWebClient, people: EmulatorClient, root: str
) -> None:
    stream = await web_api.chat_stream(channel=CAMPAIGNS, thread_ts=root, buffer_size=1, **READER)
    await stream.append(markdown_text="Spend **ro")
    [_, growing] = await people.messages("#campaigns", thread_ts=root)
    await stream.append(markdown_text="se**.")
    metadata = {"event_type": "answer", "event_payload": {"delivery_id": "d1", "part": 0}}
    await stream.stop(metadata=metadata)
    [_, done] = await people.messages("#campaigns", thread_ts=root)
    assert (growing["text"], growing["streaming"]) == ("Spend **ro", "streaming")
    assert (done["text"], done["streaming"], done["edited"]) == ("Spend **rose**.", "stopped", False)
    assert done["metadata"] == metadata
    assert [(block["type"], block["text"]) for block in done["blocks"]] == [("markdown", "Spend **rose**.")]


async def test_metadata_of_a_stream_is_found_by_reading_the_thread(web_api: AsyncWebClient, root: str) -> None:
    started = await web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, markdown_text="x", **READER)
    metadata = {"event_type": "answer", "event_payload": {"delivery_id": "d1"}}
    await web_api.chat_stopStream(channel=CAMPAIGNS, ts=str(started["ts"]), metadata=metadata)
    thread = await web_api.conversations_replies(channel=CAMPAIGNS, ts=root, include_all_metadata=True)
    assert thread["messages"][1]["metadata"] == metadata
    assert thread["messages"][0]["reply_count"] == 1


async def test_tasks_are_cards_that_change_in_place(web_api: AsyncWebClient, people: EmulatorClient, root: str) -> None:
    started = await web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, **READER)
    for status in ("in_progress", "complete"):
        chunks = [TaskUpdateChunk(id="t1", title="Reading", status=status), MarkdownTextChunk(text=status)]
        await web_api.chat_appendStream(channel=CAMPAIGNS, ts=str(started["ts"]), chunks=chunks)
    [_, message] = await people.messages("#campaigns", thread_ts=root)
    cards = [block for block in message["blocks"] if block["type"] == "task_card"]
    assert [(card["task_id"], card["status"]) for card in cards] == [("t1", "complete")]


async def test_a_channel_stream_names_its_reader(web_api: AsyncWebClient, root: str) -> None:
    no_team = web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, recipient_user_id="U0ADA")
    no_user = web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, recipient_team_id="T0NORTHWIND")
    assert await code_of(no_team) == "missing_recipient_team_id"
    assert await code_of(no_user) == "missing_recipient_user_id"


async def test_a_direct_message_needs_no_reader_and_a_stream_needs_a_thread_that_exists(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    ts = await people.post_message("dm:@ada", "@ada", "hello")
    await web_api.chat_startStream(channel="D0ADA", thread_ts=ts)
    lost = web_api.chat_startStream(channel="D0ADA", thread_ts="1.000001")
    assert await code_of(lost) == "thread_not_found"


async def test_a_stream_dies_five_minutes_after_its_start(
    web_api: AsyncWebClient, people: EmulatorClient, root: str
) -> None:
    started = await web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, markdown_text="x", **READER)
    ts = str(started["ts"])
    assert await code_of(web_api.chat_update(channel=CAMPAIGNS, ts=ts, text="y")) == "streaming_state_conflict"
    await people.advance_clock(299)
    await web_api.chat_appendStream(channel=CAMPAIGNS, ts=ts, markdown_text="y")
    await people.advance_clock(2)
    late = web_api.chat_appendStream(channel=CAMPAIGNS, ts=ts, markdown_text="z")
    assert await code_of(late) == "message_not_in_streaming_state"
    assert await code_of(web_api.chat_stopStream(channel=CAMPAIGNS, ts=ts)) == "message_not_in_streaming_state"
    await web_api.chat_update(channel=CAMPAIGNS, ts=ts, text="whole")
    assert (await people.messages("#campaigns", thread_ts=root))[1]["streaming"] == "expired"


async def test_a_finished_or_foreign_message_is_no_stream(web_api: AsyncWebClient, root: str) -> None:
    sent = await web_api.chat_postMessage(channel=CAMPAIGNS, text="x")
    ended = web_api.chat_appendStream(channel=CAMPAIGNS, ts=str(sent["ts"]), markdown_text="y")
    foreign = web_api.chat_appendStream(channel=CAMPAIGNS, ts=root, markdown_text="y")
    missing = web_api.chat_appendStream(channel=CAMPAIGNS, ts="1.000001", markdown_text="y")
    assert await code_of(ended) == "message_not_in_streaming_state"
    assert await code_of(foreign) == "message_not_owned_by_app"
    assert await code_of(missing) == "message_not_found"


async def test_chunks_of_no_known_kind_are_refused(web_api: AsyncWebClient, root: str) -> None:
    bad = web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, chunks=[{"type": "song"}], **READER)
    assert await code_of(bad) == "invalid_chunks"


async def test_stop_ends_the_stream_and_tells_the_app(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink, root: str
) -> None:
    started = await web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, markdown_text="x", **READER)
    ts = str(started["ts"])
    assert await people.stop("#campaigns", root, "@ben") == [ts]
    assert await code_of(web_api.chat_appendStream(channel=CAMPAIGNS, ts=ts, markdown_text="y")) == "stopped_by_user"
    await settled(people)
    [body] = sink.events("agent_session_stopped")
    assert body["event"]["streaming_message_ts"] == [ts]
    assert (body["event"]["thread_ts"], body["event"]["user"]) == (root, "U0BEN")


async def test_the_status_line_goes_with_the_next_message_or_after_two_minutes(
    web_api: AsyncWebClient, people: EmulatorClient, root: str
) -> None:
    thread: dict[str, Any] = {"channel_id": CAMPAIGNS, "thread_ts": root}
    await web_api.assistant_threads_setStatus(**thread, status="is thinking…")
    assert (await people.status("#campaigns", root))["status"] == "is thinking…"
    await web_api.chat_postMessage(channel=CAMPAIGNS, thread_ts=root, text="done")
    assert (await people.status("#campaigns", root))["status"] == ""
    await web_api.assistant_threads_setStatus(**thread, status="is thinking…")
    await people.advance_clock(121)
    assert (await people.status("#campaigns", root))["status"] == ""


async def test_the_status_needs_a_root(web_api: AsyncWebClient, people: EmulatorClient, root: str) -> None:
    reply = await people.post_message("#campaigns", "@ben", "reply", thread_ts=root)
    call = web_api.assistant_threads_setStatus(channel_id=CAMPAIGNS, thread_ts=reply, status="x")
    assert await code_of(call) == "invalid_thread_ts"


async def test_a_session_is_processing_while_a_stream_runs(
    web_api: AsyncWebClient, people: EmulatorClient, root: str
) -> None:
    started = await web_api.chat_startStream(channel=CAMPAIGNS, thread_ts=root, markdown_text="x", **READER)
    assert (await people.status("#campaigns", root))["session_status"] == "processing"
    await web_api.chat_stopStream(channel=CAMPAIGNS, ts=str(started["ts"]))
    assert (await people.status("#campaigns", root))["session_status"] == "active"
    session = {"channel_id": CAMPAIGNS, "thread_ts": root, "status": "closed"}
    await web_api.api_call("agents.sessions.setStatus", json=session)
    assert (await people.status("#campaigns", root))["session_status"] == "closed"
