"""Calls beyond a method's tier are refused until the minute is over."""

from collections.abc import AsyncIterator

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from bot.emulator.api import METHODS
from bot.emulator.limits import POST, SPECIAL, TIERS
from tests.emulator.conftest import SECRET, TOKEN

CAMPAIGNS = "C0CAMPAIGNS"


@pytest.fixture(params=[{"rate_limits": True}, {"commercial": True}], ids=["tiers", "commercial"])
async def emulator(request: pytest.FixtureRequest) -> AsyncIterator[Emulator]:
    async with Emulator(EmulatorConfig(signing_secret=SECRET, bot_token=TOKEN, **request.param)) as emulator:
        yield emulator


@pytest.fixture
async def people(emulator: Emulator) -> AsyncIterator[EmulatorClient]:
    async with EmulatorClient(emulator.url) as client:
        yield client


def test_every_limit_is_of_a_method_there_is() -> None:
    assert {POST, *SPECIAL, *(method for methods in TIERS.values() for method in methods)} <= set(METHODS)


@pytest.mark.parametrize("emulator", [{"rate_limits": True}], indirect=True)
async def test_a_second_tier_method_is_refused_after_twenty_calls_and_says_for_how_long(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    for _ in range(20):
        await web_api.users_list()
    with pytest.raises(SlackApiError, match="ratelimited") as caught:
        await web_api.users_list()
    assert caught.value.response.status_code == 429
    assert 1 <= int(caught.value.response.headers["Retry-After"]) <= 60
    await web_api.users_info(user="U0ADA")
    await people.advance_clock(60)
    await web_api.users_list()


@pytest.mark.parametrize("emulator", [{"rate_limits": True}], indirect=True)
async def test_posts_are_counted_by_channel_and_refused_calls_have_no_effect(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    for number in range(60):
        await web_api.chat_postMessage(channel=CAMPAIGNS, text=f"{number}")
    with pytest.raises(SlackApiError, match="ratelimited"):
        await web_api.chat_postMessage(channel=CAMPAIGNS, text="one too many")
    await web_api.chat_postMessage(channel="C0GENERAL", text="elsewhere")
    assert len(await people.messages("#campaigns")) == 60


@pytest.mark.parametrize("emulator", [{"commercial": True}], indirect=True)
async def test_an_app_sold_outside_the_marketplace_reads_once_a_minute_and_fifteen_messages(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    for number in range(20):
        await web_api.chat_postMessage(channel=CAMPAIGNS, text=f"{number}")
    page = await web_api.conversations_history(channel=CAMPAIGNS, limit=200)
    assert (len(page["messages"]), page["has_more"]) == (15, True)
    with pytest.raises(SlackApiError, match="ratelimited"):
        await web_api.conversations_history(channel=CAMPAIGNS)
    await people.advance_clock(60)
    await web_api.conversations_history(channel=CAMPAIGNS)
