"""The emulator as a server: who may start it, who may talk to it, and what it says to nonsense."""

import asyncio
import io
import json
from typing import Any, cast

import aiohttp
import pytest

from bot.emulator import ControlError, Emulator, EmulatorClient, EmulatorConfig, PortBusyError, WrongEnvironmentError
from bot.emulator.config import DEFAULT_COMMANDS
from tests.emulator.conftest import SECRET


def test_it_refuses_to_start_outside_dev_and_tests() -> None:
    with pytest.raises(WrongEnvironmentError, match="'production'"):
        Emulator(EmulatorConfig(signing_secret=SECRET), environment=cast(Any, "production"))


async def test_a_busy_port_is_a_plain_sentence(emulator: Emulator) -> None:
    port = int(emulator.url.rpartition(":")[2])
    with pytest.raises(PortBusyError, match=f"Port {port} is taken by another program"):
        await Emulator(EmulatorConfig(signing_secret=SECRET, port=port)).start()


async def test_it_leaves_its_port_when_it_stops() -> None:
    async with Emulator(EmulatorConfig(signing_secret=SECRET)) as first:
        port = int(first.url.rpartition(":")[2])
    async with Emulator(EmulatorConfig(signing_secret=SECRET, port=port)) as second:
        assert second.url == first.url


async def test_other_sites_can_not_drive_it(emulator: Emulator) -> None:
    async with aiohttp.ClientSession() as session:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            async with session.get(f"{emulator.url}/_emulator/state", headers=headers) as response:
                assert response.status == 403
        async with session.get(f"{emulator.url}/_emulator/state", headers={"Origin": emulator.url}) as response:
            assert response.status == 200


@pytest.mark.parametrize(
    "path, body, sentence",
    [
        ("messages", "{", "Invalid JSON"),
        ("messages", "[]", "object"),
        ("messages", {"user": "@ada", "text": "x"}, "channel: Field required"),
        ("messages", {"channel": "#campaigns", "user": "@ada", "text": "x", "thred_ts": "1"}, "thred_ts"),
        ("messages", {"channel": "#campaigns", "user": "@ada", "text": " "}, "empty"),
        ("messages", {"channel": "dm:@ben", "user": "@ada", "text": "x"}, "Ada Keller is not in the direct message"),
        ("clock", {"advance_s": -1}, "greater than or equal to 0"),
        ("faults", {"method": "auth.test", "kind": "explode"}, "kind"),
        ("config", {"request_url": "ftp://x"}, "http://"),
    ],
)
async def test_bad_input_is_400_with_a_sentence(emulator: Emulator, path: str, body: object, sentence: str) -> None:
    data = body if isinstance(body, str) else json.dumps(body)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{emulator.url}/_emulator/{path}", data=data) as response,
    ):
        answer = await response.json()
    assert response.status == 400
    assert sentence in answer["error"]


async def test_names_that_mean_nothing_are_404(people: EmulatorClient) -> None:
    for channel, user, thread_ts in (
        ("#nowhere", "@ada", None),
        ("#campaigns", "@zoe", None),
        ("#campaigns", "@ada", "1.1"),
    ):
        with pytest.raises(ControlError) as caught:
            await people.post_message(channel, user, "x", thread_ts=thread_ts)
        assert caught.value.status == 404


async def test_a_body_over_10_mb_is_413(emulator: Emulator) -> None:
    async with aiohttp.ClientSession() as session:
        big = io.BytesIO(b"x" * (10 * 1024 * 1024 + 1))
        async with session.post(f"{emulator.url}/_emulator/messages", data=big) as response:
            assert response.status == 413


async def test_the_state_names_everybody_and_the_apps_commands(people: EmulatorClient) -> None:
    state = await people.state()
    northwind, harbor = state["workspaces"]
    assert {user["timezone"] for user in northwind["users"]} >= {"Europe/Berlin", "America/New_York", "Asia/Tokyo"}
    assert {c["name"] for c in northwind["channels"] if c["has_app"] and c["kind"] == "channel"} == {
        "campaigns",
        "general",
    }
    assert (northwind["installed"], harbor["installed"]) == (True, False)
    assert [command["command"] for command in state["commands"]] == [each.command for each in DEFAULT_COMMANDS]


async def test_changes_are_told_by_long_poll(emulator: Emulator, people: EmulatorClient) -> None:
    after = (await people.state())["last_update"]
    async with aiohttp.ClientSession(emulator.url) as session:

        async def poll() -> Any:
            async with session.get("/_emulator/updates", params={"after": after, "timeout_s": 5}) as response:
                return await response.json()

        waiting = asyncio.create_task(poll())
        ts = await people.post_message("#campaigns", "@ada", "hello")
        answer = await waiting
    assert (answer["updates"][0]["kind"], answer["updates"][0]["ts"]) == ("message", ts)


async def test_changes_are_told_by_an_event_stream_that_resumes(emulator: Emulator, people: EmulatorClient) -> None:
    after = (await people.state())["last_update"]
    ts = await people.post_message("#random", "@ada", "hello")
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    async with (
        aiohttp.ClientSession(emulator.url) as session,
        session.get("/_emulator/updates", headers=headers) as response,
    ):
        text = b""
        while ts.encode() not in text:
            text += await response.content.readany()
    lines = [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]
    assert [line["kind"] for line in lines] == ["hello", "message"]


async def test_waiting_names_what_did_not_come_true(people: EmulatorClient) -> None:
    async def never() -> bool:
        return False

    with pytest.raises(TimeoutError, match="the moon did not come true"):
        await people.wait_for(never, timeout_s=0.05, what="the moon")


async def test_it_stops_at_once_though_a_page_is_watching() -> None:
    emulator = Emulator(EmulatorConfig(signing_secret=SECRET))
    await emulator.start()
    headers = {"Accept": "text/event-stream"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{emulator.url}/_emulator/updates", headers=headers) as response,
    ):
        await response.content.readany()
        async with asyncio.timeout(2):
            await emulator.stop()
