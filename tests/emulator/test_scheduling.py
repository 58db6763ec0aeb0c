"""Messages for later, views on views, files that go, reactions that are read, and conversations of several."""

import time

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient
from tests.emulator.conftest import Sink, settled

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
