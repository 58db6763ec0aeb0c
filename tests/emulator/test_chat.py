"""chat.*: what Slack takes, refuses and tells the app."""

from collections.abc import Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient
from tests.emulator.conftest import TOKEN, Sink, settled

CAMPAIGNS = "C0CAMPAIGNS"


async def error_of(call: Awaitable[object]) -> SlackApiError:
    with pytest.raises(SlackApiError) as caught:
        await call
    return caught.value


async def test_a_post_appears_in_the_channel_with_blocks_and_metadata(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    metadata = {"event_type": "answer", "event_payload": {"delivery_id": "d1", "part": 0}}
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "*Hi*"}}]
    sent = await web_api.chat_postMessage(channel=CAMPAIGNS, text="Hi", blocks=blocks, metadata=metadata)
    [message] = await people.messages("#campaigns")
    assert message["ts"] == sent["ts"]
    assert message["user_name"] == "Threadline"
    assert message["metadata"] == metadata
    assert message["blocks"][0]["block_id"]


async def test_metadata_comes_back_only_when_asked_for(web_api: AsyncWebClient) -> None:
    metadata = {"event_type": "answer", "event_payload": {"delivery_id": "d1"}}
    sent = await web_api.chat_postMessage(channel=CAMPAIGNS, text="Hi", metadata=metadata)
    ts = str(sent["ts"])
    plain = await web_api.conversations_replies(channel=CAMPAIGNS, ts=ts)
    full = await web_api.conversations_replies(channel=CAMPAIGNS, ts=ts, include_all_metadata=True)
    assert "metadata" not in plain["messages"][0]
    assert full["messages"][0]["metadata"] == metadata


@pytest.mark.parametrize(
    "arguments, code",
    [
        ({"channel": "C0NOWHERE", "text": "x"}, "channel_not_found"),
        ({"channel": "G0PLANNING", "text": "x"}, "channel_not_found"),
        ({"channel": "C0RANDOM", "text": "x"}, "not_in_channel"),
        ({"channel": CAMPAIGNS, "text": ""}, "no_text"),
        ({"channel": CAMPAIGNS, "text": "x", "markdown_text": "y"}, "markdown_text_conflict"),
        ({"channel": CAMPAIGNS, "text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"channel": CAMPAIGNS, "text": "x", "blocks": "{"}, "invalid_blocks_format"),
        ({"channel": CAMPAIGNS, "text": "x", "metadata": {"event_type": 1}}, "invalid_metadata_format"),
    ],
)
async def test_a_bad_post_is_refused_with_slacks_word_for_it(
    web_api: AsyncWebClient, arguments: dict[str, Any], code: str
) -> None:
    error = await error_of(web_api.api_call("chat.postMessage", json=arguments))
    assert error.response["error"] == code


async def test_a_block_over_its_limit_is_named_by_a_json_pointer(web_api: AsyncWebClient) -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "divider"},
        {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}},
    ]
    error = await error_of(web_api.chat_postMessage(channel=CAMPAIGNS, text="x", blocks=blocks))
    assert error.response["error"] == "invalid_blocks"
    assert error.response["response_metadata"]["messages"] == [
        "[ERROR] must be less than 3001 characters [json-pointer:/blocks/1/text/text]"
    ]


async def test_an_overlong_text_is_cut_with_a_warning(web_api: AsyncWebClient) -> None:
    sent = await web_api.chat_postMessage(channel=CAMPAIGNS, text="x" * 40_001)
    assert sent["warning"] == "message_truncated"
    assert len(sent["message"]["text"]) == 40_000


async def test_an_update_changes_the_message_and_keeps_its_metadata(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    metadata = {"event_type": "answer", "event_payload": {"delivery_id": "d1"}}
    sent = await web_api.chat_postMessage(channel=CAMPAIGNS, text="one", metadata=metadata)
    await web_api.chat_update(channel=CAMPAIGNS, ts=str(sent["ts"]), text="two")
    [message] = await people.messages("#campaigns")
    assert (message["text"], message["edited"], message["metadata"]) == ("two", True, metadata)
    await settled(people)
    assert sink.events()[-1]["event"]["subtype"] == "message_changed"


async def test_an_update_over_4000_characters_is_too_long(web_api: AsyncWebClient) -> None:
    sent = await web_api.chat_postMessage(channel=CAMPAIGNS, text="one")
    error = await error_of(web_api.chat_update(channel=CAMPAIGNS, ts=str(sent["ts"]), text="x" * 4001))
    assert error.response["error"] == "msg_too_long"


async def test_the_app_changes_only_its_own_messages(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    ts = await people.post_message("#campaigns", "@ada", "mine")
    update = await error_of(web_api.chat_update(channel=CAMPAIGNS, ts=ts, text="yours"))
    delete = await error_of(web_api.chat_delete(channel=CAMPAIGNS, ts=ts))
    missing = await error_of(web_api.chat_update(channel=CAMPAIGNS, ts="1.000001", text="x"))
    assert update.response["error"] == "cant_update_message"
    assert delete.response["error"] == "cant_delete_message"
    assert missing.response["error"] == "message_not_found"


async def test_the_apps_own_message_comes_back_as_an_event_with_its_bot_id(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    await web_api.chat_postMessage(channel=CAMPAIGNS, text="hello")
    await settled(people)
    [body] = sink.events("message")
    assert body["event"]["bot_id"] == "B0THREADLINE"
    assert body["authorizations"][0]["user_id"] == body["event"]["user"] == "U0THREADLINE"


async def test_an_ephemeral_message_is_seen_by_one_person_only(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    await web_api.chat_postEphemeral(channel=CAMPAIGNS, user="U0ADA", text="psst")
    assert [m["ephemeral"] for m in await people.messages("#campaigns", reader="@ada")] == [True]
    assert await people.messages("#campaigns", reader="@ben") == []
    history = await web_api.conversations_history(channel=CAMPAIGNS)
    assert history["messages"] == []
    error = await error_of(web_api.chat_postEphemeral(channel=CAMPAIGNS, user="U0DANA", text="psst"))
    assert error.response["error"] == "user_not_in_channel"


async def test_timestamps_are_unique_and_grow(web_api: AsyncWebClient) -> None:
    sent = [str((await web_api.chat_postMessage(channel=CAMPAIGNS, text=str(n)))["ts"]) for n in range(20)]
    assert sent == sorted(set(sent))


async def test_a_token_is_needed_and_must_be_good(emulator: Emulator) -> None:
    nobody = AsyncWebClient("", base_url=emulator.api_url)
    stranger = AsyncWebClient("xoxb-other", base_url=emulator.api_url)
    assert (await error_of(nobody.auth_test())).response["error"] == "not_authed"
    assert (await error_of(stranger.auth_test())).response["error"] == "invalid_auth"


async def test_a_missing_scope_is_named(web_api: AsyncWebClient) -> None:
    error = await error_of(web_api.conversations_join(channel="C0RANDOM"))
    assert error.response["error"] == "missing_scope"
    assert error.response["needed"] == "channels:join"
    assert "chat:write" in error.response["provided"]


async def test_the_granted_scopes_are_in_a_header(web_api: AsyncWebClient) -> None:
    response = await web_api.auth_test()
    assert "chat:write" in response.headers["X-OAuth-Scopes"]
    assert response["bot_id"] == "B0THREADLINE"


async def test_an_unknown_method_is_called_so(web_api: AsyncWebClient) -> None:
    assert (await error_of(web_api.api_call("chat.shout"))).response["error"] == "unknown_method"


async def test_calls_are_logged_without_the_token(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    await web_api.chat_postMessage(channel=CAMPAIGNS, text="hello")
    [call] = await people.calls("chat.postMessage")
    assert call["args"]["text"] == "hello"
    assert call["result"]["ok"] is True
    assert TOKEN not in str(call)


async def test_reactions_are_added_once_and_removed_once(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    ts = await people.post_message("#campaigns", "@ada", "look")
    await web_api.reactions_add(channel=CAMPAIGNS, timestamp=ts, name="eyes")
    twice = await error_of(web_api.reactions_add(channel=CAMPAIGNS, timestamp=ts, name="eyes"))
    [message] = await people.messages("#campaigns")
    assert message["reactions"] == [{"name": "eyes", "users": ["U0THREADLINE"], "count": 1}]
    await web_api.reactions_remove(channel=CAMPAIGNS, timestamp=ts, name="eyes")
    gone = await error_of(web_api.reactions_remove(channel=CAMPAIGNS, timestamp=ts, name="eyes"))
    assert (twice.response["error"], gone.response["error"]) == ("already_reacted", "no_reaction")
