"""Faults on demand, and the log of what happened."""

import time

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient
from tests.emulator.conftest import TOKEN

CAMPAIGNS = "C0CAMPAIGNS"


async def test_a_call_can_be_rate_limited_and_works_again_after(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    await people.fault("chat.postMessage", "ratelimited", times=2, retry_after=7)
    for _ in range(2):
        with pytest.raises(SlackApiError) as caught:
            await web_api.chat_postMessage(channel=CAMPAIGNS, text="x")
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["Retry-After"] == "7"
    await web_api.chat_postMessage(channel=CAMPAIGNS, text="x")
    assert len(await people.messages("#campaigns")) == 1


async def test_a_call_can_fail_with_any_error_or_a_500(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    await people.fault("chat.postMessage", "error", error="fatal_error")
    await people.fault("chat.postMessage", "http_500")
    with pytest.raises(SlackApiError, match="fatal_error"):
        await web_api.chat_postMessage(channel=CAMPAIGNS, text="x")
    with pytest.raises(SlackApiError) as caught:
        await web_api.chat_postMessage(channel=CAMPAIGNS, text="x")
    assert caught.value.response.status_code == 500
    assert await people.messages("#campaigns") == []


async def test_a_connection_can_break_after_the_message_was_posted(
    web_api: AsyncWebClient, people: EmulatorClient
) -> None:
    await people.fault("chat.postMessage", "reset_after_commit")
    with pytest.raises(Exception, match=r"disconnected|reset|closed"):
        await web_api.chat_postMessage(channel=CAMPAIGNS, text="once")
    assert [message["text"] for message in await people.messages("#campaigns")] == ["once"]


async def test_slack_sdks_own_retry_posts_twice_after_a_reset(emulator: Emulator, people: EmulatorClient) -> None:
    """What the product has to guard against: the default retry handler does not know that the post was committed."""
    eager = AsyncWebClient(TOKEN, base_url=emulator.api_url)
    await people.fault("chat.postMessage", "reset_after_commit")
    await eager.chat_postMessage(channel=CAMPAIGNS, text="once")
    assert [message["text"] for message in await people.messages("#campaigns")] == ["once", "once"]


async def test_a_call_can_be_delayed(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    await people.fault("*", "delay", delay_s=0.2)
    started = time.monotonic()
    await web_api.auth_test()
    assert time.monotonic() - started >= 0.2


async def test_a_tools_fault_is_kept_for_the_product_to_take_once(people: EmulatorClient) -> None:
    await people.fault("tool:change_budget", "delay", times=2, delay_s=30)
    await people.fault("*", "error")
    first = await people.take_fault("tool:change_budget")
    assert (first["kind"], first["delay_s"]) == ("delay", 30)
    assert (await people.take_fault("tool:change_budget"))["kind"] == "delay"
    assert await people.take_fault("tool:change_budget") == {}


async def test_faults_can_be_cleared(web_api: AsyncWebClient, people: EmulatorClient) -> None:
    await people.fault("auth.test", "http_500", times=99)
    await people.clear_faults()
    assert (await web_api.auth_test())["ok"]
