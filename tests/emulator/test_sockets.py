"""Socket Mode of the local Slack: who may connect, and what an envelope is."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from tests.emulator.conftest import SECRET, TOKEN

APP_TOKEN = "xapp-1-test"


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    config = EmulatorConfig(signing_secret=SECRET, bot_token=TOKEN, app_token=APP_TOKEN, ack_timeout_s=0.5)
    async with Emulator(config) as emulator:
        yield emulator


async def opened(emulator: Emulator) -> str:
    answer = await AsyncWebClient(base_url=emulator.api_url).apps_connections_open(app_token=APP_TOKEN)
    return str(answer["url"])


@pytest.mark.parametrize("token, error", [(TOKEN, "not_allowed_token_type"), ("xapp-other", "invalid_auth")])
async def test_a_connection_needs_the_apps_own_token(emulator: Emulator, token: str, error: str) -> None:
    with pytest.raises(SlackApiError, match=error):
        await AsyncWebClient(base_url=emulator.api_url).apps_connections_open(app_token=token)


async def test_an_address_works_once_and_ten_connections_are_the_most(emulator: Emulator) -> None:
    async with aiohttp.ClientSession() as session:
        url = await opened(emulator)
        first = await session.ws_connect(url)
        hello: Any = await first.receive_json()
        assert (hello["type"], hello["num_connections"]) == ("hello", 1)
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)
        others = [await session.ws_connect(await opened(emulator)) for _ in range(9)]
        assert (await others[-1].receive_json())["num_connections"] == 10
        eleventh = await session.ws_connect(await opened(emulator))
        assert (await eleventh.receive_json())["reason"] == "too_many_websockets"
        for each in (first, *others, eleventh):
            await each.close()


async def test_an_unacknowledged_event_is_sent_again_and_counts_on_whichever_connection_its_ack_comes(
    emulator: Emulator,
) -> None:
    async with EmulatorClient(emulator.url) as people, aiohttp.ClientSession() as session:
        one = await session.ws_connect(await opened(emulator))
        two = await session.ws_connect(await opened(emulator))
        assert [(await each.receive_json())["type"] for each in (one, two)] == ["hello", "hello"]
        ts = await people.post_message("dm:@ada", "@ada", "hello")
        first, second = await asyncio.wait_for(one.receive_json(), 5), await asyncio.wait_for(two.receive_json(), 5)
        assert first["payload"]["event"]["ts"] == second["payload"]["event"]["ts"] == ts
        assert (first["type"], first["retry_attempt"], first["accepts_response_payload"]) == ("events_api", 0, False)
        assert (second["retry_attempt"], second["retry_reason"]) == (1, "timeout")
        assert first["envelope_id"] != second["envelope_id"]
        await one.send_str(json.dumps({"envelope_id": second["envelope_id"]}))

        async def delivered() -> bool:
            [delivery] = await people.deliveries(ts=ts)
            return bool(delivery["delivered"])

        await people.wait_for(delivered, what="the acknowledgement")
        await asyncio.gather(one.close(), two.close())


async def test_a_commands_answer_comes_with_its_acknowledgement(emulator: Emulator) -> None:
    async with EmulatorClient(emulator.url) as people, aiohttp.ClientSession() as session:
        nobody = await people.command("#campaigns", "@ada", "/report")
        assert nobody["problem"] == "dispatch_failed"
        ws = await session.ws_connect(await opened(emulator))
        await ws.receive_json()
        typed = asyncio.create_task(people.command("#campaigns", "@ada", "/report", "last week"))
        envelope = await asyncio.wait_for(ws.receive_json(), 5)
        assert (envelope["type"], envelope["payload"]["text"]) == ("slash_commands", "last week")
        await ws.send_str(json.dumps({"envelope_id": envelope["envelope_id"], "payload": {"text": "on it"}}))
        assert (await typed)["response"] == {"text": "on it"}
        await ws.close()
