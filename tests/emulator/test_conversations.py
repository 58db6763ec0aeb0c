"""conversations.* and users.*: reading what is there."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import EmulatorClient

CAMPAIGNS = "C0CAMPAIGNS"


async def test_channels_are_listed_by_type_and_only_if_visible(web_api: AsyncWebClient) -> None:
    public = await web_api.conversations_list()
    everything = await web_api.conversations_list(types="public_channel,private_channel,im")
    mine = await web_api.users_conversations()
    assert [c["name"] for c in public["channels"]] == ["campaigns", "general", "random"]
    assert not any(c.get("name") == "planning" for c in everything["channels"])
    assert len([c for c in everything["channels"] if c["is_im"]]) == 3
    assert [c["name"] for c in mine["channels"]] == ["campaigns", "general"]


async def test_lists_come_in_pages(web_api: AsyncWebClient) -> None:
    names: list[str] = []
    async for page in await web_api.conversations_list(limit=1):
        names += [channel["name"] for channel in page["channels"]]
    assert names == ["campaigns", "general", "random"]
    with pytest.raises(SlackApiError, match="invalid_cursor"):
        await web_api.conversations_list(cursor="somewhere")


async def test_history_has_roots_only_newest_first_and_knows_ranges(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    first, second, third = [await people.post_message("#campaigns", "@ada", text) for text in ("1", "2", "3")]
    await people.post_message("#campaigns", "@ben", "reply", thread_ts=first)
    whole = await web_api.conversations_history(channel=CAMPAIGNS)
    after = await web_api.conversations_history(channel=CAMPAIGNS, oldest=first)
    with_ends = await web_api.conversations_history(channel=CAMPAIGNS, oldest=first, latest=second, inclusive=True)
    page = await web_api.conversations_history(channel=CAMPAIGNS, limit=2)
    assert [m["ts"] for m in whole["messages"]] == [third, second, first]
    assert [m["ts"] for m in after["messages"]] == [third, second]
    assert [m["ts"] for m in with_ends["messages"]] == [second, first]
    assert page["has_more"] is True


async def test_replies_begin_with_the_root_whatever_the_range(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    root = await people.post_message("#campaigns", "@ada", "root")
    replies = [await people.post_message("#campaigns", "@ben", text, thread_ts=root) for text in ("a", "b")]
    later = await web_api.conversations_replies(channel=CAMPAIGNS, ts=root, oldest=replies[0])
    assert [m["ts"] for m in later["messages"]] == [root, replies[1]]
    assert later["messages"][0]["thread_ts"] == root
    with pytest.raises(SlackApiError, match="thread_not_found"):
        await web_api.conversations_replies(channel=CAMPAIGNS, ts="1.000001")


async def test_a_channel_the_app_is_not_in_can_not_be_read(web_api: AsyncWebClient) -> None:
    with pytest.raises(SlackApiError, match="not_in_channel"):
        await web_api.conversations_history(channel="C0RANDOM")
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await web_api.conversations_info(channel="G0PLANNING")


async def test_a_direct_message_is_opened_by_the_persons_id(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    opened = await web_api.conversations_open(users=["U0CHLOE"])
    await web_api.chat_postMessage(channel=opened["channel"]["id"], text="Good morning")
    await web_api.chat_postMessage(channel="U0CHLOE", text="again")
    assert [m["text"] for m in await people.messages("dm:@chloe")] == ["Good morning", "again"]


async def test_people_have_time_zones_that_know_summer(web_api: AsyncWebClient) -> None:
    chloe = await web_api.users_info(user="U0CHLOE")
    ben = await web_api.users_info(user="U0BEN")
    offset = datetime.now(UTC).astimezone(ZoneInfo("America/New_York")).utcoffset()
    assert offset is not None
    assert (chloe["user"]["tz"], chloe["user"]["tz_offset"]) == ("Asia/Tokyo", 32_400)
    assert ben["user"]["tz_offset"] == offset.total_seconds()
    with pytest.raises(SlackApiError, match="user_not_found"):
        await web_api.users_info(user="U0NOBODY")


async def test_workspace_bot_and_members_are_known(web_api: AsyncWebClient) -> None:
    assert (await web_api.team_info())["team"]["name"] == "Northwind Outdoors"
    assert (await web_api.bots_info(bot="B0THREADLINE"))["bot"]["user_id"] == "U0THREADLINE"
    members = await web_api.conversations_members(channel=CAMPAIGNS)
    assert members["members"] == ["U0ADA", "U0BEN", "U0CHLOE", "U0THREADLINE"]
