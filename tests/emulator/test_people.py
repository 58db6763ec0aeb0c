"""What people do, as the app and other people see it: conversations they begin, replies to the channel, dialogs they fill in."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import ControlError, Emulator, EmulatorClient
from bot.emulator.typed import retyped
from tests.emulator.conftest import Sink, settled

FIELDS: list[Any] = [
    {"type": "plain_text_input", "action_id": "a", "initial_value": "before"},
    {"type": "static_select", "action_id": "a"},
    {"type": "radio_buttons", "action_id": "a"},
    {"type": "checkboxes", "action_id": "a"},
    {"type": "datepicker", "action_id": "a", "initial_date": "2026-11-30"},
    {"type": "users_select", "action_id": "a", "initial_user": "U0BEN"},
    {"type": "multi_users_select", "action_id": "a", "initial_users": ["U0BEN"]},
]
OPTIONS = [{"text": {"type": "plain_text", "text": name}, "value": name} for name in ("one", "two")]
FILLED = ["after", "two", "two", ["one", "two"], "2026-12-01", ["U0ADA"], ["U0ADA", "U0BEN"]]
UNTOUCHED = ["before", None, None, [], "2026-11-30", "U0BEN", ["U0BEN"]]
STATED = ["after", OPTIONS[1], OPTIONS[1], OPTIONS, "2026-12-01", "U0ADA", ["U0ADA", "U0BEN"]]


def field(element: Any, block_id: str) -> Any:
    options = {"options": OPTIONS} if element["type"] in {"static_select", "radio_buttons", "checkboxes"} else {}
    label = {"type": "plain_text", "text": f"Field {block_id}"}
    return {"type": "input", "block_id": block_id, "label": label, "element": {**element, **options}}


async def opened(emulator: Emulator, web_api: AsyncWebClient) -> str:
    view = {
        "type": "modal",
        "title": {"type": "plain_text", "text": "All fields"},
        "submit": {"type": "plain_text", "text": "Save"},
        "blocks": [field(element, f"b{number}") for number, element in enumerate(FIELDS)],
    }
    trigger = emulator.slack.interactions.new_trigger("T0NORTHWIND", "U0ADA")
    return str((await web_api.views_open(trigger_id=trigger, view=view))["view"]["id"])


@pytest.mark.parametrize(("filled", "stated"), [(FILLED, STATED), (None, UNTOUCHED)])
async def test_a_submission_says_what_stands_in_each_field_as_slack_does(
    emulator: Emulator, web_api: AsyncWebClient, people: EmulatorClient, sink: Sink, filled: Any, stated: Any
) -> None:
    view_id = await opened(emulator, web_api)
    given = {f"b{number}": {"a": value} for number, value in enumerate(filled or [])}
    await people.submit_view("@ada", view_id, given)
    payload = json.loads(parse_qs(sink.requests[-1].body.decode())["payload"][0])
    states = [payload["view"]["state"]["values"][f"b{number}"]["a"] for number in range(len(FIELDS))]
    values = [next(value for key, value in state.items() if key != "type") for state in states]
    assert values == stated
    assert [state["type"] for state in states] == [element["type"] for element in FIELDS]


async def test_a_field_without_a_block_id_gets_one_and_can_be_submitted(
    emulator: Emulator, web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    text = {"type": "plain_text", "text": "One"}
    block = {"type": "input", "label": text, "element": {"type": "plain_text_input", "action_id": "a"}}
    view = {"type": "modal", "title": text, "submit": text, "blocks": [block]}
    trigger = emulator.slack.interactions.new_trigger("T0NORTHWIND", "U0ADA")
    shown = (await web_api.views_open(trigger_id=trigger, view=view))["view"]
    [given] = shown["blocks"]
    assert (shown["clear_on_close"], shown["notify_on_close"], shown["external_id"]) == (False, False, "")
    await people.submit_view("@ada", shown["id"], {given["block_id"]: {"a": "yes"}})
    payload = json.loads(parse_qs(sink.requests[-1].body.decode())["payload"][0])
    assert payload["view"]["state"]["values"] == {
        given["block_id"]: {"a": {"type": "plain_text_input", "value": "yes"}}
    }


async def test_a_file_says_where_it_was_shared(
    emulator: Emulator, web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    ts = await people.post_message("#campaigns", "@ada", "x", files={"a.csv": b"1"})
    direct = await people.post_message("dm:@ada", "@ada", "y", files={"b.csv": b"1"})
    first, second = [(await web_api.files_info(file=file.id))["file"] for file in emulator.slack.files.all()]
    assert [one["ts"] for one in first["shares"]["public"]["C0CAMPAIGNS"]] == [ts]
    assert (first["channels"], first["ims"], first["is_public"]) == (["C0CAMPAIGNS"], [], True)
    assert [one["ts"] for one in second["shares"]["private"]["D0ADA"]] == [direct]
    assert (second["channels"], second["ims"], second["is_public"]) == ([], ["D0ADA"], False)


async def test_a_field_of_people_leaves_it_to_the_page_whom_it_offers(
    emulator: Emulator, web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    await opened(emulator, web_api)
    [view] = (await people.views("@ada"))["views"]
    assert 'data-initial="[&quot;U0BEN&quot;]"' in view["html"]
    assert "Dana" not in view["html"]
    assert view["html"].count('type="radio"') == view["html"].count('type="checkbox"') == 2


async def test_a_reply_also_sent_to_the_channel_stands_in_both_and_says_so(people: EmulatorClient, sink: Sink) -> None:
    root = await people.post_message("#campaigns", "@ada", "a question")
    reply = await people.post_message("#campaigns", "@ben", "for all", thread_ts=root, broadcast=True)
    await people.post_message("#campaigns", "@ben", "for us", thread_ts=root)
    await settled(people)
    assert [one["ts"] for one in await people.messages("#campaigns")] == [root, reply]
    assert len(await people.messages("#campaigns", thread_ts=root)) == 3
    kinds = [(body["event"].get("subtype"), body["event"].get("thread_ts")) for body in sink.events("message")]
    assert kinds == [(None, None), ("thread_broadcast", root), (None, root)]


async def test_a_group_message_is_begun_once_with_the_app_in_it(people: EmulatorClient, sink: Sink) -> None:
    first = await people.open_group("@ada", ["@ben"])
    assert await people.open_group("@ben", ["@ada"]) == first
    await people.post_message(first, "@ben", "@Threadline hi")
    await settled(people)
    assert {body["event"]["channel"] for body in sink.events()} == {first}
    with pytest.raises(ControlError, match="Not all of @dana are in Northwind Outdoors"):
        await people.open_group("@ada", ["@dana"])


@pytest.mark.parametrize(
    "typed",
    ["*bold* & <b>", "for @Ada Keller: https://x.example/?a=1&b=2", "@here `code` #general", "mail ada@x.example"],
)
async def test_what_was_typed_can_be_typed_again(people: EmulatorClient, typed: str) -> None:
    await people.post_message("#campaigns", "@ben", typed)
    [message] = await people.messages("#campaigns")
    assert message["typed"] == typed
    await people.edit_message("#campaigns", "@ben", message["ts"], message["typed"])
    [again] = await people.messages("#campaigns")
    assert (again["text"], again["edited"]) == (message["text"], True)


def test_a_link_with_a_label_is_typed_as_its_address() -> None:
    assert retyped("<https://x.example|here> &lt;3 <@U1|ada>", lambda user_id: f"name of {user_id}") == (
        "https://x.example <3 @name of U1"
    )


async def test_somebody_new_is_in_general_and_has_the_app_to_talk_to(
    people: EmulatorClient, web_api: AsyncWebClient, sink: Sink
) -> None:
    user = await people.add_person("fay", "Fay Stone", timezone="Europe/Lisbon", title="Intern")
    await people.post_message("#general", "@fay", "hello all")
    await people.post_message("dm:@fay", "@fay", "hello")
    await settled(people)
    assert (await web_api.users_info(user=user))["user"]["tz"] == "Europe/Lisbon"
    assert {body["event"]["user"] for body in sink.events("message")} == {user}
    with pytest.raises(ControlError, match="somebody called @fay"):
        await people.add_person("fay", "Another Fay")
    with pytest.raises(ControlError, match="is no time zone"):
        await people.add_person("gus", "Gus Hill", timezone="Mars/Base")


async def test_a_channel_is_made_without_the_app_until_it_is_invited(
    people: EmulatorClient, web_api: AsyncWebClient, sink: Sink
) -> None:
    channel = await people.add_channel("@ada", "launch", private=True, members=["@ben"])
    await people.post_message("#launch", "@ben", "@Threadline hi")
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await web_api.conversations_info(channel=channel)
    await people.command("#launch", "@ada", "/invite", "@Threadline")
    await people.post_message("#launch", "@ben", "@Threadline hi again")
    await settled(people)
    assert [body["event"]["channel"] for body in sink.events("app_mention")] == [channel]
    assert (await web_api.conversations_info(channel=channel))["channel"]["is_private"] is True
    with pytest.raises(ControlError, match="There is a channel #launch"):
        await people.add_channel("@ada", "launch")


async def test_what_was_suggested_in_a_thread_is_over_once_somebody_speaks(
    people: EmulatorClient, web_api: AsyncWebClient
) -> None:
    root = await people.post_message("dm:@ada", "@ada", "hello")
    prompts = [{"title": "More", "message": "Tell me more"}]
    await web_api.assistant_threads_setSuggestedPrompts(channel_id="D0ADA", thread_ts=root, prompts=prompts)
    assert (await people.status("dm:@ada", root))["prompts"] == prompts
    await people.post_message("dm:@ada", "@ada", "Tell me more", thread_ts=root)
    assert (await people.status("dm:@ada", root))["prompts"] == []
