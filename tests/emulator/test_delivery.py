"""Events: signed, in pairs, retried on the emulator's clock."""

import time
from typing import Any

import pytest
from aiohttp import web
from slack_bolt.async_app import AsyncApp, AsyncSay
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from tests.emulator.conftest import SECRET, TOKEN, Sink, answering, settled, silent


async def test_an_event_is_signed_so_that_slack_sdk_believes_it(people: EmulatorClient, sink: Sink) -> None:
    await people.post_message("#campaigns", "@ada", "hello")
    await settled(people)
    [received] = sink.requests
    assert SignatureVerifier(SECRET).is_valid_request(received.body, received.headers)


async def test_a_mention_in_a_channel_is_two_events_with_ids_of_their_own(people: EmulatorClient, sink: Sink) -> None:
    ts = await people.post_message("#campaigns", "@ada", "@Threadline how was last week?")
    await settled(people)
    first, second = sink.events()
    assert (first["event"]["type"], second["event"]["type"]) == ("app_mention", "message")
    assert first["event_id"] != second["event_id"]
    assert first["event"]["ts"] == second["event"]["ts"] == ts
    assert first["event"]["text"] == "<@U0THREADLINE> how was last week?"
    assert "channel_type" not in first["event"]
    assert "client_msg_id" not in first["event"]
    assert second["event"]["channel_type"] == "channel"


async def test_the_message_half_of_the_pair_can_come_first(sink: Sink) -> None:
    config = EmulatorConfig(signing_secret=SECRET, bot_token=TOKEN, request_url=sink.url, mention_order="message")
    async with Emulator(config) as emulator, EmulatorClient(emulator.url) as people:
        await people.post_message("#campaigns", "@ada", "@Threadline hello")
        await settled(people)
    assert [body["event"]["type"] for body in sink.events()] == ["message", "app_mention"]


async def test_a_direct_message_is_one_event(people: EmulatorClient, sink: Sink) -> None:
    await people.post_message("dm:@ada", "@ada", "hello @Threadline")
    await settled(people)
    [body] = sink.events()
    assert body["event"]["channel_type"] == "im"
    assert body["event"]["channel"].startswith("D")


async def test_the_app_hears_only_channels_it_is_in(people: EmulatorClient, sink: Sink) -> None:
    await people.post_message("#random", "@ada", "@Threadline are you there?")
    messages = await people.messages("#random", reader="@ada")
    assert "/invite" in messages[-1]["text"]
    assert await people.deliveries() == []
    await people.command("#random", "@ada", "/invite", "@Threadline")
    await people.post_message("#random", "@ada", "@Threadline and now?")
    await settled(people, type="app_mention")
    assert sink.events("app_mention")


async def test_inbound_text_is_escaped_and_linked_but_not_inside_code(people: EmulatorClient, sink: Sink) -> None:
    await people.post_message(
        "#campaigns", "@ada", "a < b && c, see https://x.example/a?b=1&c=2. `@Ada <b>` @Ben Carter!"
    )
    await settled(people)
    [body] = sink.events()
    assert body["event"]["text"] == (
        "a &lt; b &amp;&amp; c, see <https://x.example/a?b=1&amp;c=2>. `@Ada &lt;b&gt;` <@U0BEN>!"
    )
    elements = body["event"]["blocks"][0]["elements"][0]["elements"]
    assert [element["type"] for element in elements] == ["text", "link", "text", "text", "text", "user", "text"]


async def test_typed_styles_stay_in_the_text_and_are_styles_in_the_rich_text(
    people: EmulatorClient, sink: Sink
) -> None:
    await people.post_message("#campaigns", "@ada", "*now* or 2*3*4, _please_")
    await settled(people)
    [body] = sink.events()
    assert body["event"]["text"] == "*now* or 2*3*4, _please_"
    elements = body["event"]["blocks"][0]["elements"][0]["elements"]
    assert [element.get("style") for element in elements] == [{"bold": True}, None, {"italic": True}]


async def test_a_reply_names_its_root_and_the_roots_author(people: EmulatorClient, sink: Sink) -> None:
    root = await people.post_message("#campaigns", "@ada", "root")
    reply = await people.post_message("#campaigns", "@ben", "reply", thread_ts=root)
    await people.post_message("#campaigns", "@ben", "nested", thread_ts=reply)
    await settled(people)
    assert [body["event"].get("thread_ts") for body in sink.events()] == [None, root, root]
    assert sink.events()[1]["event"]["parent_user_id"] == "U0ADA"
    [shown] = await people.messages("#campaigns")
    assert shown["reply_count"] == 2


async def test_edits_and_deletions_are_told_and_an_edited_mention_is_sent_again(
    people: EmulatorClient, sink: Sink
) -> None:
    ts = await people.post_message("#campaigns", "@ada", "hello")
    await people.edit_message("#campaigns", "@ada", ts, "@Threadline hello")
    await people.delete_message("#campaigns", "@ada", ts)
    await settled(people)
    mention = sink.events("app_mention")[0]["event"]
    changed, deleted = (body["event"] for body in sink.events("message")[1:])
    assert (changed["subtype"], changed["previous_message"]["text"]) == ("message_changed", "hello")
    assert mention["edited"]["user"] == "U0ADA"
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", ts)


async def test_a_failing_app_gets_three_retries_on_the_emulators_clock(people: EmulatorClient, sink: Sink) -> None:
    sink.answers = [answering(500)]
    ts = await people.post_message("dm:@ada", "@ada", "hello")

    async def tried(times: int) -> None:
        async def enough() -> bool:
            [delivery] = await people.deliveries(ts=ts)
            return len([a for a in delivery["attempts"] if a["status"]]) == times

        await people.wait_for(enough, what=f"{times} attempts")

    await tried(2)
    [message] = await people.messages("dm:@ada")
    assert message["delivery"] == "retrying"
    await people.advance_clock(61)
    await tried(3)
    await people.advance_clock(301)
    [delivery] = await settled(people)
    assert [a["retry_num"] for a in delivery["attempts"]] == [0, 1, 2, 3]
    assert [a["retry_reason"] for a in delivery["attempts"]] == ["", "http_error", "http_error", "http_error"]
    assert delivery["delivered"] is False
    assert sink.requests[1].headers["X-Slack-Retry-Num"] == "1"
    assert (await people.messages("dm:@ada"))[0]["delivery"] == "failed"


async def test_a_slow_app_is_asked_again(people: EmulatorClient, sink: Sink) -> None:
    sink.answers = [silent(2), answering(200)]
    await people.post_message("dm:@ada", "@ada", "hello")
    [delivery] = await settled(people)
    assert [a["reason"] for a in delivery["attempts"]] == ["http_timeout", ""]
    assert delivery["delivered"] is True
    assert delivery["attempts"][1]["duration_ms"] > 0


async def test_an_app_can_decline_retries(people: EmulatorClient, sink: Sink) -> None:
    sink.answers = [answering(500, headers={"X-Slack-No-Retry": "1"})]
    await people.post_message("dm:@ada", "@ada", "hello")
    [delivery] = await settled(people)
    assert len(delivery["attempts"]) == 1


async def test_attempts_rotate_over_replicas_and_a_retry_goes_to_the_next(people: EmulatorClient, sink: Sink) -> None:
    await people.set_request_url([sink.url, "http://127.0.0.1:9/slack/events"])
    for text in ("one", "two"):
        await people.post_message("dm:@ada", "@ada", text)
        await settled(people)
    first, second = await people.deliveries()
    assert [a["url"] for a in first["attempts"]] == [sink.url]
    assert [a["reason"] for a in second["attempts"]] == ["connection_failed", ""]


async def test_events_wait_for_an_app_that_starts_later(sink: Sink) -> None:
    async with (
        Emulator(EmulatorConfig(signing_secret=SECRET, bot_token=TOKEN)) as emulator,
        EmulatorClient(emulator.url) as people,
    ):
        await people.post_message("dm:@ada", "@ada", "early")
        emulator.set_request_url(sink.url)
        await settled(people)
    assert sink.events()[0]["event"]["text"] == "early"


async def test_a_raw_event_is_delivered_in_copies_under_one_id(people: EmulatorClient, sink: Sink) -> None:
    event = {"type": "message", "channel": "C0CAMPAIGNS", "user": "U0ADA", "text": "hi", "ts": "1.1"}
    assert await people.send_event(event, event_id="Ev1", copies=4) == ["Ev1"] * 4
    await settled(people)
    assert [body["event_id"] for body in sink.events()] == ["Ev1"] * 4


async def test_a_raw_pair_can_be_reversed(people: EmulatorClient, sink: Sink) -> None:
    pair = [{"type": "app_mention", "ts": "1.1"}, {"type": "message", "ts": "1.1"}]
    await people.send_event(pair, order="reversed")
    await settled(people)
    assert [body["event"]["type"] for body in sink.events()] == ["message", "app_mention"]


async def test_home_opened_and_uninstall_are_told(people: EmulatorClient, sink: Sink, web_api: AsyncWebClient) -> None:
    await people.open_home("@ada")
    await settled(people)
    await people.uninstall()
    await settled(people)
    assert {body["event"]["type"] for body in sink.events()} == {"app_home_opened", "app_uninstalled", "tokens_revoked"}
    await people.post_message("#campaigns", "@ada", "anyone?")
    assert len(await people.deliveries()) == 3
    with pytest.raises(Exception, match="account_inactive"):
        await web_api.auth_test()


async def test_the_signature_is_of_real_time_whatever_the_clock_shows(people: EmulatorClient, sink: Sink) -> None:
    await people.advance_clock(86_400)
    ts = await people.post_message("dm:@ada", "@ada", "tomorrow")
    await settled(people)
    assert abs(int(sink.requests[0].headers["X-Slack-Request-Timestamp"]) - time.time()) < 60
    assert float(ts) > time.time() + 86_000


async def test_an_app_of_slack_bolt_answers_a_mention_in_its_thread() -> None:
    """The whole round trip, with slack_bolt and slack_sdk as they are."""
    async with Emulator(EmulatorConfig(signing_secret=SECRET, bot_token=TOKEN)) as emulator:
        app = AsyncApp(
            token=TOKEN,
            signing_secret=SECRET,
            client=AsyncWebClient(TOKEN, base_url=emulator.api_url),
            process_before_response=True,
        )

        @app.event("app_mention")
        async def answer(event: dict[str, Any], say: AsyncSay) -> None:
            await say(text=f"You said: {event['text']}", thread_ts=event["ts"])

        @app.event("message")
        async def ignore() -> None:
            """An event without a listener would be a 404, and so a failure."""

        server = app.server(port=0, path="/slack/events")
        runner = await _run(server.web_app)
        try:
            port = runner.addresses[0][1]
            emulator.set_request_url(f"http://127.0.0.1:{port}/slack/events")
            async with EmulatorClient(emulator.url) as people:
                ts = await people.post_message("#campaigns", "@ada", "@Threadline hello")
                await settled(people)
                thread = await people.messages("#campaigns", thread_ts=ts)
        finally:
            await runner.cleanup()
    assert [m["user_name"] for m in thread] == ["Ada Keller", "Threadline"]
    assert thread[1]["text"] == "You said: <@U0THREADLINE> hello"


async def _run(web_app: web.Application) -> web.AppRunner:
    runner = web.AppRunner(web_app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner
