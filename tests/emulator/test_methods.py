"""Methods of several families: messages for later, views on views, files that go, leaving, looking people up, checking blocks."""

import time

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from bot.emulator.seed import install
from tests.emulator.conftest import TOKEN, Sink, settled

CAMPAIGNS = "C0CAMPAIGNS"
MODAL = {"type": "modal", "title": {"type": "plain_text", "text": "One"}, "blocks": []}


async def test_a_message_for_later_is_listed_can_be_taken_back_and_stands_there_in_time(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    post_at = int(time.time()) + 3600
    kept = await web_api.chat_scheduleMessage(channel=CAMPAIGNS, post_at=post_at, text="later")
    taken = await web_api.chat_scheduleMessage(channel=CAMPAIGNS, post_at=post_at, text="never")
    await web_api.chat_deleteScheduledMessage(channel=CAMPAIGNS, scheduled_message_id=taken["scheduled_message_id"])
    listed = await web_api.chat_scheduledMessages_list(channel=CAMPAIGNS)
    assert [each["id"] for each in listed["scheduled_messages"]] == [kept["scheduled_message_id"]]
    assert await people.messages("#campaigns") == []
    await people.advance_clock(3601)

    async def posted() -> bool:
        return [each["text"] for each in await people.messages("#campaigns")] == ["later"]

    await people.wait_for(posted, what="the scheduled message")
    with pytest.raises(SlackApiError, match="invalid_scheduled_message_id"):
        await web_api.chat_deleteScheduledMessage(channel=CAMPAIGNS, scheduled_message_id=kept["scheduled_message_id"])


@pytest.mark.parametrize(
    "after_s, error", [(-60, "time_in_past"), (121 * 86_400, "time_too_far"), (None, "invalid_time")]
)
async def test_a_time_that_can_not_be_is_refused(web_api: AsyncWebClient, after_s: int | None, error: str) -> None:
    post_at = "soon" if after_s is None else int(time.time()) + after_s
    with pytest.raises(SlackApiError, match=error):
        await web_api.chat_scheduleMessage(channel=CAMPAIGNS, post_at=post_at, text="later")


async def test_a_view_is_changed_only_by_who_has_seen_its_last_state(
    emulator: Emulator, web_api: AsyncWebClient
) -> None:
    interactions = emulator.slack.interactions
    opened = await web_api.views_open(trigger_id=interactions.new_trigger("T0NORTHWIND", "U0ADA"), view=MODAL)
    view_id, first = opened["view"]["id"], opened["view"]["hash"]
    await web_api.views_update(view_id=view_id, hash=first, view=MODAL)
    with pytest.raises(SlackApiError, match="hash_conflict"):
        await web_api.views_update(view_id=view_id, hash=first, view=MODAL)
    with pytest.raises(SlackApiError, match="not_found"):
        await web_api.views_update(view_id="V0NOWHERE", view=MODAL)


async def test_three_views_can_lie_on_each_other(emulator: Emulator, web_api: AsyncWebClient) -> None:
    interactions = emulator.slack.interactions

    def trigger() -> str:
        return interactions.new_trigger("T0NORTHWIND", "U0ADA")

    with pytest.raises(SlackApiError, match="not_found"):
        await web_api.views_push(trigger_id=trigger(), view=MODAL)
    first = (await web_api.views_open(trigger_id=trigger(), view=MODAL))["view"]["id"]
    second = (await web_api.views_push(trigger_id=trigger(), view=MODAL))["view"]
    assert (second["root_view_id"], second["previous_view_id"]) == (first, first)
    used = trigger()
    third = (await web_api.views_push(trigger_id=used, view=MODAL))["view"]
    assert (third["root_view_id"], third["previous_view_id"]) == (first, second["id"])
    with pytest.raises(SlackApiError, match="push_limit_reached"):
        await web_api.views_push(trigger_id=trigger(), view=MODAL)
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await web_api.views_push(trigger_id=used, view=MODAL)


async def test_the_app_deletes_its_own_files_and_no_others(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    await web_api.files_upload_v2(channel=CAMPAIGNS, filename="mine.csv", content="a,b")
    await people.post_message("#campaigns", "@ada", "", files={"hers.csv": b"c,d"})
    files = {each["name"]: each["id"] for each in (await web_api.files_list(channel=CAMPAIGNS))["files"]}
    assert set(files) == {"mine.csv", "hers.csv"}
    with pytest.raises(SlackApiError, match="cant_delete_file"):
        await web_api.files_delete(file=files["hers.csv"])
    await web_api.files_delete(file=files["mine.csv"])
    with pytest.raises(SlackApiError, match="file_not_found"):
        await web_api.files_info(file=files["mine.csv"])
    assert [each["name"] for each in (await web_api.files_list())["files"]] == ["hers.csv"]


async def test_reactions_are_read_with_their_scope(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    ts = await people.post_message("#campaigns", "@ada", "well done")
    with pytest.raises(SlackApiError, match="missing_scope"):
        await web_api.reactions_get(channel=CAMPAIGNS, timestamp=ts)


async def test_a_conversation_of_several_is_heard_as_one(
    web_api: AsyncWebClient, people: EmulatorClient, sink: Sink
) -> None:
    ts = await people.post_message("dm:@ada,@ben", "@ben", "hello, all of you")
    await settled(people, ts=ts)
    [body] = sink.events("message")
    assert body["event"]["channel_type"] == "mpim"
    assert await people.post_message("dm:@ben,@ada", "@ada", "and you") != ts
    assert len(await people.messages("dm:@ada,@ben")) == 2
    with pytest.raises(SlackApiError, match="missing_scope"):
        await web_api.conversations_open(users="U0ADA,U0BEN")


async def test_the_app_leaves_a_channel_and_hears_it_no_more(
    emulator: Emulator, web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    allow(emulator, "channels:manage")
    with pytest.raises(SlackApiError, match="cant_leave_general"):
        await web_api.conversations_leave(channel="C0GENERAL")
    await web_api.conversations_leave(channel=CAMPAIGNS)
    assert (await web_api.conversations_leave(channel=CAMPAIGNS))["not_in_channel"]
    await people.post_message("#campaigns", "@ada", "are you there?")
    assert await people.deliveries() == []


def allow(emulator: Emulator, *scopes: str) -> None:
    installation = emulator.slack.home.installation
    assert installation is not None
    installation.scopes += scopes


async def test_people_are_found_by_their_address_with_its_scope(emulator: Emulator, web_api: AsyncWebClient) -> None:
    found = await web_api.users_lookupByEmail(email="Ada@northwind-outdoors.example")
    assert found["user"]["id"] == "U0ADA"
    with pytest.raises(SlackApiError, match="users_not_found"):
        await web_api.users_lookupByEmail(email="nobody@northwind-outdoors.example")
    with pytest.raises(SlackApiError, match="missing_scope"):
        await web_api.users_profile_get(user="U0ADA")
    allow(emulator, "users.profile:read", "emoji:read", "usergroups:read", "reactions:read")
    assert (await web_api.users_profile_get(user="U0ADA"))["profile"]["title"] == "Head of Growth"
    assert (await web_api.emoji_list())["emoji"] == {}
    assert (await web_api.usergroups_list())["usergroups"] == []


async def test_blocks_are_checked_without_being_posted(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    good = [{"type": "section", "text": {"type": "mrkdwn", "text": "fine"}}]
    await web_api.blocks_validate(blocks=good)
    with pytest.raises(SlackApiError, match="invalid_blocks"):
        await web_api.blocks_validate(blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}])
    assert await people.messages("#campaigns") == []


async def test_an_events_context_leads_to_all_it_is_for() -> None:
    config = EmulatorConfig(signing_secret="s", bot_token=TOKEN, app_token="xapp-1", connect=True)
    async with Emulator(config) as emulator, EmulatorClient(emulator.url) as people:
        install(emulator.slack.workspaces["T0HARBOR"], "xoxb-harbor", scopes=config.scopes, installer_id="U0DANA")
        await people.post_message("#partners", "@dana", "hello")
        [context] = emulator.slack.contexts
        client = AsyncWebClient("xapp-1", base_url=emulator.api_url)
        told = await client.apps_event_authorizations_list(event_context=context)
        assert [each["team_id"] for each in told["authorizations"]] == ["T0NORTHWIND", "T0HARBOR"]
        with pytest.raises(SlackApiError, match="invalid_event_context"):
            await client.apps_event_authorizations_list(event_context="4-made-up")
