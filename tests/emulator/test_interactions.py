"""Slash commands, buttons, response URLs and views."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.emulator import ControlError, Emulator, EmulatorClient
from tests.emulator.conftest import Sink, answering, silent

CAMPAIGNS = "C0CAMPAIGNS"
BUTTON: dict[str, Any] = {
    "type": "button",
    "action_id": "approve",
    "text": {"type": "plain_text", "text": "Approve"},
    "value": "a1",
}
ACTIONS: dict[str, Any] = {"type": "actions", "block_id": "b1", "elements": [BUTTON]}


def form_of(sink: Sink) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(sink.requests[-1].body.decode(), keep_blank_values=True).items()}


async def ask(web_api: AsyncWebClient, **options: Any) -> str:
    sent = await web_api.chat_postMessage(channel=CAMPAIGNS, text="Approve?", blocks=[ACTIONS], **options)
    return str(sent["ts"])


async def test_a_command_is_a_signed_form_and_its_answer_is_shown_to_one_person(
    people: EmulatorClient, sink: Sink
) -> None:
    sink.answers = [answering(body={"text": "On it."})]
    answer = await people.command("#campaigns", "@ada", "/report", "Spring last week")
    form = form_of(sink)
    assert (form["command"], form["text"], form["user_id"]) == ("/report", "Spring last week", "U0ADA")
    assert (form["channel_name"], form["is_enterprise_install"]) == ("campaigns", "false")
    assert "thread_ts" not in form
    assert sink.requests[-1].headers["X-Slack-Signature"].startswith("v0=")
    assert (answer["status"], answer["response"]) == (200, {"text": "On it."})
    [message] = await people.messages("#campaigns", reader="@ada")
    assert (message["text"], message["ephemeral"]) == ("On it.", True)
    assert await people.messages("#campaigns", reader="@ben") == []


async def test_a_commands_answer_can_be_for_the_channel_or_nothing(people: EmulatorClient, sink: Sink) -> None:
    sink.answers = [answering(body={"text": "Here", "response_type": "in_channel"}), answering()]
    await people.command("#campaigns", "@ada", "/report")
    silent_answer = await people.command("#campaigns", "@ada", "/report")
    assert silent_answer["ts"] is None
    assert [message["text"] for message in await people.messages("#campaigns", reader="@ben")] == ["Here"]


async def test_a_command_nobody_answers_says_so(people: EmulatorClient, sink: Sink) -> None:
    sink.answers = [silent(2), answering(500)]
    assert (await people.command("#campaigns", "@ada", "/report"))["problem"] == "operation_timeout"
    assert (await people.command("#campaigns", "@ada", "/report"))["problem"] == "dispatch_failed"
    [late, _] = await people.messages("#campaigns", reader="@ada")
    assert late["text"] == "/report failed with the error “operation_timeout”"


async def test_an_unknown_command_is_refused(people: EmulatorClient) -> None:
    with pytest.raises(ControlError, match="/dance is not a command"):
        await people.command("#campaigns", "@ada", "/dance")


async def test_without_the_scope_there_are_no_commands(emulator: Emulator) -> None:
    scopes = tuple(scope for scope in emulator.config.scopes if scope != "commands")
    async with Emulator(replace(emulator.config, port=0, scopes=scopes)) as other, EmulatorClient(other.url) as people:
        with pytest.raises(ControlError, match="/report is not a command of this workspace"):
            await people.command("#campaigns", "@ada", "/report")


async def test_a_response_url_is_good_for_five_uses_and_half_an_hour(people: EmulatorClient, sink: Sink) -> None:
    await people.command("#campaigns", "@ada", "/report")
    hook = AsyncWebhookClient(form_of(sink)["response_url"])
    await people.command("#campaigns", "@ada", "/report")
    other = AsyncWebhookClient(form_of(sink)["response_url"])
    refused = await hook.send_dict({"markdown_text": "**no**"})
    answers = [await hook.send(text=str(n)) for n in range(6)]
    await people.advance_clock(1801)
    late = await other.send(text="late")
    assert (refused.status_code, json.loads(refused.body)["error"]) == (400, "no_text")
    assert [answer.status_code for answer in answers] == [200] * 5 + [404]
    assert json.loads(answers[5].body)["error"] == "used_url"
    assert json.loads(late.body)["error"] == "expired_url"


async def test_a_click_carries_the_message_and_a_response_url_that_replaces_it(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    ts = await ask(web_api)
    answer = await people.click("#campaigns", ts, "approve", "@ada")
    payload = json.loads(form_of(sink)["payload"])
    assert answer["ok"] is True
    assert (payload["type"], payload["user"]["id"]) == ("block_actions", "U0ADA")
    assert payload["container"] == {
        "type": "message",
        "message_ts": ts,
        "channel_id": CAMPAIGNS,
        "is_ephemeral": False,
    }
    action = payload["actions"][0]
    assert (action["action_id"], action["block_id"], action["value"]) == ("approve", "b1", "a1")
    await AsyncWebhookClient(payload["response_url"]).send(text="Approved by Ada", replace_original=True)
    [message] = await people.messages("#campaigns")
    assert (message["ts"], message["text"], message["blocks"]) == (ts, "Approved by Ada", [])


async def test_a_click_can_delete_the_original(web_api: AsyncWebClient, people: EmulatorClient, sink: Sink) -> None:
    ts = await ask(web_api)
    await people.click("#campaigns", ts, "approve", "@ada")
    payload = json.loads(form_of(sink)["payload"])
    await AsyncWebhookClient(payload["response_url"]).send(delete_original=True)
    assert await people.messages("#campaigns") == []


async def test_a_button_that_is_not_there_is_404(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    ts = await ask(web_api)
    with pytest.raises(ControlError, match="no button 'deny'") as caught:
        await people.click("#campaigns", ts, "deny", "@ada")
    assert caught.value.status == 404


async def test_a_click_the_app_fails_on_is_reported(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    ts = await ask(web_api)
    sink.answers = [answering(500)]
    answer = await people.click("#campaigns", ts, "approve", "@ada")
    assert (answer["ok"], answer["status"], answer["problem"]) == (False, 500, "http_error")


MODAL: dict[str, Any] = {"type": "modal", "title": {"type": "plain_text", "text": "Why?"}}
WHY: dict[str, Any] = {
    "type": "input",
    "block_id": "reason",
    "label": {"type": "plain_text", "text": "Why?"},
    "element": {"type": "plain_text_input", "action_id": "text"},
}


async def test_a_trigger_opens_one_view_within_three_seconds(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    view = {**MODAL, "submit": {"type": "plain_text", "text": "Send"}, "blocks": [WHY]}
    ts = await ask(web_api)
    await people.click("#campaigns", ts, "approve", "@ada")
    trigger = json.loads(form_of(sink)["payload"])["trigger_id"]
    opened = await web_api.views_open(trigger_id=trigger, view=view)
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await web_api.views_open(trigger_id=trigger, view=view)
    await people.click("#campaigns", ts, "approve", "@ada")
    late = json.loads(form_of(sink)["payload"])["trigger_id"]
    await people.advance_clock(4)
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await web_api.views_open(trigger_id=late, view=view)
    view_id = opened["view"]["id"]
    assert [one["id"] for one in (await people.views("@ada"))["views"]] == [view_id]
    await people.close_view("@ada", "V0OTHER")
    await people.submit_view("@ada", view_id, {"reason": {"text": "Too dear"}})
    submitted = json.loads(form_of(sink)["payload"])
    assert submitted["view"]["state"]["values"]["reason"]["text"]["value"] == "Too dear"
    assert (await people.views("@ada"))["views"] == []


async def test_a_modal_can_be_cancelled(web_api: AsyncWebClient, people: EmulatorClient, sink: Sink) -> None:
    await people.click("#campaigns", await ask(web_api), "approve", "@ada")
    trigger = json.loads(form_of(sink)["payload"])["trigger_id"]
    opened = await web_api.views_open(trigger_id=trigger, view={**MODAL, "blocks": []})
    await people.close_view("@ada", opened["view"]["id"])
    assert (await people.views("@ada"))["views"] == []


async def test_a_home_tab_is_published_unless_its_hash_is_old(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    view: dict[str, Any] = {"type": "home", "blocks": [{"type": "divider", "block_id": "d"}]}
    first = await web_api.views_publish(user_id="U0ADA", view=view)
    await web_api.views_publish(user_id="U0ADA", view=view, hash=first["view"]["hash"])
    with pytest.raises(SlackApiError, match="hash_conflict"):
        await web_api.views_publish(user_id="U0ADA", view=view, hash=first["view"]["hash"])
    assert (await people.views("@ada"))["home"]["blocks"] == view["blocks"]


async def test_a_file_takes_three_steps_and_its_bytes_need_a_token(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    await web_api.files_upload_v2(
        channel=CAMPAIGNS, filename="report.csv", content="a,b\n1,2\n", initial_comment="The figures"
    )
    [message] = await people.messages("#campaigns")
    [file] = message["files"]
    assert (message["text"], message["subtype"], file["name"]) == ("The figures", "file_share", "report.csv")
    async with aiohttp.ClientSession() as session:
        async with session.get(file["url_private"]) as response:
            stranger = await response.text()
        headers = {"Authorization": f"Bearer {web_api.token}"}
        async with session.get(file["url_private_download"], headers=headers) as response:
            content = await response.text()
    assert stranger.startswith("<!DOCTYPE html>")
    assert content == "a,b\n1,2\n"


async def test_a_person_shares_a_file_with_the_app(people: EmulatorClient, sink: Sink, web_api: AsyncWebClient) -> None:
    await people.post_message("dm:@ada", "@ada", "my export", files={"export.csv": b"a\n1\n"})

    async def heard() -> Any:
        return sink.events("message")

    [body] = await people.wait_for(heard)
    assert body["event"]["subtype"] == "file_share"
    info = await web_api.files_info(file=body["event"]["files"][0]["id"])
    assert (info["file"]["size"], info["file"]["mimetype"]) == (4, "text/csv")
