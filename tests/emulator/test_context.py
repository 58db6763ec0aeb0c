"""What the app is told, and may find out, around a message: where the reader is, links, searches, and its own departure."""

from dataclasses import replace
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import ControlError, Emulator, EmulatorClient, EmulatorConfig
from tests.emulator.conftest import TOKEN, Sink, settled

LINK = "https://reports.example/q3?a=1&b=2"
SEARCH = ("search:read.public", "search:read.files", "search:read.users")


@pytest.fixture
def config(sink: Sink, emulator: Emulator) -> EmulatorConfig:
    """As the other tests', for an app that unfurls links and searches."""
    scopes = (*emulator.config.scopes, *SEARCH, "links:read", "links:write")
    return replace(emulator.config, port=0, scopes=scopes, unfurl_domains=("reports.example",))


def client(emulator: Emulator) -> AsyncWebClient:
    return AsyncWebClient(TOKEN, base_url=emulator.api_url, retry_handlers=[])


def entity(channel: str) -> dict[str, str]:
    return {"type": "slack#/types/channel_id", "value": channel, "team_id": "T0NORTHWIND"}


async def test_the_app_hears_beside_which_channel_its_pane_stands(people: EmulatorClient, sink: Sink) -> None:
    await people.open_home("@ada", beside="#campaigns")
    await people.change_context("@ada", "#general")
    await people.open_home("@ada")
    await settled(people)
    opened, alone = (body["event"] for body in sink.events("app_home_opened"))
    [changed] = (body["event"] for body in sink.events("app_context_changed"))
    assert opened["context"]["entities"] == [entity("C0CAMPAIGNS")]
    assert changed["context"]["entities"] == [entity("C0GENERAL")]
    assert (changed["user"], alone["context"]["entities"]) == ("U0ADA", [])


async def test_an_app_is_sent_only_what_it_subscribes_to_and_may_hear(emulator: Emulator, sink: Sink) -> None:
    scopes = tuple(scope for scope in emulator.config.scopes if scope != "channels:history")
    config = replace(emulator.config, port=0, events=("app_mention", "message.channels", "message.im"), scopes=scopes)
    async with Emulator(config) as other, EmulatorClient(other.url) as people:
        await people.open_home("@ada")
        await people.post_message("#campaigns", "@ada", "@Threadline hi")
        await people.post_message("dm:@ada", "@ada", "hi")
        await settled(people)
    kinds = [(body["event"]["type"], body["event"]["channel"]) for body in sink.events()]
    assert sorted(kinds) == [("app_mention", "C0CAMPAIGNS"), ("message", "D0ADA")]


async def test_a_link_of_the_app_is_reported_and_its_unfurl_is_no_edit(config: EmulatorConfig, sink: Sink) -> None:
    async with Emulator(config) as emulator, EmulatorClient(emulator.url) as people:
        ts = await people.post_message("#random", "@ada", f"see {LINK} and https://other.example")
        await people.post_message("#campaigns", "@ada", f"see {LINK}")
        await settled(people)
        outside, inside = (body["event"] for body in sink.events("link_shared"))
        assert outside["links"] == [{"domain": "reports.example", "url": LINK}]
        assert (outside["message_ts"], outside["is_bot_user_member"]) == (ts, False)
        assert inside["is_bot_user_member"] is True
        about = {"unfurl_id": inside["unfurl_id"], "source": inside["source"]}
        await client(emulator).chat_unfurl(**about, unfurls={LINK: {"title": "Q3"}})
        await client(emulator).chat_unfurl(
            channel=inside["channel"], ts=inside["message_ts"], unfurls={LINK: {"title": "Q3, again"}}
        )
        await settled(people)
        [message] = await people.messages("#campaigns")
        changed: list[Any] = [body["event"] for body in sink.events() if body["event"].get("subtype")]
    assert [one["title"] for one in message["attachments"]] == ["Q3, again"]
    assert [one["message"]["text"] == one["previous_message"]["text"] for one in changed] == [True, True]
    assert message["edited"] is False
    assert not any("edited" in one["message"] for one in changed)


async def test_slacks_own_preview_is_told_as_a_change_without_an_edit(people: EmulatorClient, sink: Sink) -> None:
    ts = await people.post_message("#campaigns", "@ada", "@Threadline see https://x.example")
    await people.unfurl("#campaigns", ts, "Example")
    await settled(people)
    [changed] = [body["event"] for body in sink.events() if body["event"].get("subtype") == "message_changed"]
    assert changed["message"]["attachments"][0]["title"] == "Example"
    assert "edited" not in changed["message"]
    assert len(sink.events("app_mention")) == 1


async def test_a_bot_searches_on_behalf_of_whoever_just_spoke_to_it(config: EmulatorConfig, sink: Sink) -> None:
    async with Emulator(config) as emulator, EmulatorClient(emulator.url) as people:
        await people.post_message("#random", "@ben", "The budget of Brand Search is too low")
        best = await people.post_message("#general", "@chloe", "Brand budget, brand budget!")
        await people.post_message("#planning", "@ben", "a secret budget")
        await people.post_message("#campaigns", "@ada", "@Threadline what is the plan?", files={"Budget.csv": b"x"})
        await settled(people)
        [mention] = sink.events("app_mention")
        token = mention["event"]["assistant_thread"]["action_token"]
        args = {"query": "brand BUDGET", "action_token": token, "content_types": ["messages", "files", "users"]}
        found = (await client(emulator).api_call("assistant.search.context", json=args))["results"]
        newest = {"query": "budget plan", "action_token": token, "sort": "timestamp", "limit": 1}
        first = await client(emulator).api_call("assistant.search.context", json=newest)
        cursor = first["response_metadata"]["next_cursor"]
        second = await client(emulator).api_call("assistant.search.context", json={**newest, "cursor": cursor})
        with pytest.raises(SlackApiError, match="invalid_action_token"):
            await client(emulator).api_call("assistant.search.context", json={"query": "budget"})
    assert [one["channel_name"] for one in found["messages"]] == ["general", "random"]
    assert found["messages"][0]["message_ts"] == best
    assert [one["title"] for one in found["files"]] == ["Budget.csv"]
    assert found["users"] == []
    assert [one["results"]["messages"][0]["channel_name"] for one in (first, second)] == ["campaigns", "general"]


async def test_a_search_finds_only_what_the_person_may_read(config: EmulatorConfig, sink: Sink) -> None:
    private = replace(config, scopes=(*config.scopes, "search:read.private"))
    async with Emulator(private) as emulator, EmulatorClient(emulator.url) as people:
        await people.post_message("#planning", "@ben", "a secret budget")
        found = []
        for name in ("@ada", "@chloe"):
            await people.post_message("#campaigns", name, "@Threadline what is secret?")
            await settled(people)
            token = sink.events("app_mention")[-1]["event"]["assistant_thread"]["action_token"]
            args = {"query": "budget", "action_token": token, "channel_types": "private_channel"}
            answer = await client(emulator).api_call("assistant.search.context", json=args)
            found.append(len(answer["results"]["messages"]))
    assert found == [1, 0]


async def test_no_token_for_a_search_comes_with_the_apps_own_words(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    await web_api.chat_postMessage(channel="C0CAMPAIGNS", text="hello")
    await settled(people)
    assert "assistant_thread" not in sink.events("message")[0]["event"]


@pytest.mark.parametrize("order", [["app_uninstalled", "tokens_revoked"], ["tokens_revoked", "app_uninstalled"]])
async def test_both_orders_of_the_farewell_can_be_had(people: EmulatorClient, sink: Sink, order: list[str]) -> None:
    await people.uninstall(order=order[0])
    await settled(people)
    assert [body["event"]["type"] for body in sink.events()] == order


async def test_only_an_admin_removes_the_app(people: EmulatorClient, web_api: AsyncWebClient) -> None:
    with pytest.raises(ControlError, match="Only an admin of Northwind Outdoors can remove Threadline"):
        await people.uninstall(user="@ben")
    await web_api.auth_test()
    await people.uninstall(user="@ada")
    with pytest.raises(SlackApiError, match="account_inactive"):
        await web_api.auth_test()


async def test_an_app_that_would_not_hear_stop_is_warned(emulator: Emulator) -> None:
    async with Emulator(replace(emulator.config, port=0, events=())) as deaf:
        ts = (await client(deaf).chat_postMessage(channel="C0CAMPAIGNS", text="x"))["ts"]
        asked = {"channel_id": "C0CAMPAIGNS", "thread_ts": ts, "status": "processing"}
        warned = await client(deaf).api_call("agents.sessions.setStatus", json=asked)
    assert warned["warning"] == "missing_agent_session_stopped_event_subscription"
