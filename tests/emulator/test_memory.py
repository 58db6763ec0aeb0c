"""What the local Slack remembers over a restart, and what it says when its file can't be read."""

import json
import stat
from pathlib import Path

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient, EmulatorConfig, StateFileError
from tests.emulator.conftest import SECRET, TOKEN, Sink, settled
from tests.waiting import until


def config(path: Path, sink: Sink | None = None, *, token: str = TOKEN, secret: str = SECRET) -> EmulatorConfig:
    return EmulatorConfig(
        signing_secret=secret, bot_token=token, request_url=sink.url if sink else "", ack_timeout_s=0.5, state_path=path
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slack.json"


async def test_what_a_person_saw_is_there_again(path: Path, sink: Sink) -> None:
    async with Emulator(config(path, sink)) as emulator, EmulatorClient(emulator.url) as people:
        root = await people.post_message("#campaigns", "@ada", "*hello* @ben", files={"a.png": b"\x89PNG\xff"})
        await people.post_message("#campaigns", "@ben", "a reply", thread_ts=root)
        await people.react("#campaigns", "@ben", root, "eyes")
        await people.add_member("#random", "@Threadline")
        await people.advance_clock(3600)
        app = AsyncWebClient(TOKEN, base_url=emulator.api_url)
        await app.chat_postMessage(
            channel="C0CAMPAIGNS",
            thread_ts=root,
            text="a card",
            blocks=[
                {
                    "type": "actions",
                    "elements": [
                        {
                            "type": "button",
                            "action_id": "go",
                            "text": {"type": "plain_text", "text": "Go"},
                            "value": "1",
                        }
                    ],
                }
            ],
            metadata={"event_type": "card", "event_payload": {"id": 7}},
        )
        await app.chat_postEphemeral(channel="C0CAMPAIGNS", user="U0ADA", text="only you")
        await settled(people)
        before = await people.messages("#campaigns"), await people.messages("#campaigns", thread_ts=root)

    async with Emulator(config(path, sink)) as emulator, EmulatorClient(emulator.url) as people:
        after = await people.messages("#campaigns"), await people.messages("#campaigns", thread_ts=root)
        card = after[1][-1]
        assert (await people.click("#campaigns", card["ts"], "go", "@ada"))["ok"]
        state = await people.state()
        file = after[0][0]["files"][0]
        async with aiohttp.ClientSession() as session, session.get(file["permalink"]) as response:
            assert await response.read() == b"\x89PNG\xff"
        assert file["permalink"].startswith(emulator.url)
        assert (await AsyncWebClient(TOKEN, base_url=emulator.api_url).auth_test())["team_id"] == "T0NORTHWIND"

    def without_addresses(messages: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{**message, "files": len(message["files"])} for message in messages]  # type: ignore[arg-type]

    assert [without_addresses(one) for one in before] == [without_addresses(one) for one in after]
    assert "U0THREADLINE" in next(c for c in state["workspaces"][0]["channels"] if c["name"] == "random")["members"]
    assert state["clock"]["offset_s"] == 3600


async def test_the_first_run_s_secrets_stay(path: Path) -> None:
    """The app has stored what it was given then: with a new token nothing it knows would be good any more."""
    async with Emulator(config(path)):
        pass
    async with Emulator(config(path, token="xoxb-another", secret="another")) as emulator:
        assert (emulator.config.bot_token, emulator.config.signing_secret) == (TOKEN, SECRET)
        assert (await AsyncWebClient(TOKEN, base_url=emulator.api_url).auth_test())["ok"]


async def test_a_removed_app_stays_removed(path: Path) -> None:
    async with Emulator(config(path)) as emulator:
        await AsyncWebClient(TOKEN, base_url=emulator.api_url).auth_revoke()
    async with Emulator(config(path)) as emulator, EmulatorClient(emulator.url) as people:
        assert not (await people.state())["workspaces"][0]["installed"]


async def test_a_message_nobody_took_is_delivered_after_the_restart(path: Path, sink: Sink) -> None:
    async with Emulator(config(path)) as emulator, EmulatorClient(emulator.url) as people:
        ts = await people.post_message("#general", "@ada", "@Threadline are you there?")
    async with Emulator(config(path, sink)) as emulator, EmulatorClient(emulator.url) as people:
        await until(lambda: len(sink.events("app_mention")) == 1, "the mention to arrive")
        await settled(people)
        [message] = await people.messages("#general")
    assert (message["ts"], message["delivery"]) == (ts, "delivered")
    assert len(sink.events()) == 2


async def test_it_is_saved_while_it_runs_and_for_its_owner_alone(path: Path) -> None:
    """`kill -9` leaves what was there a moment before."""
    async with Emulator(config(path)) as emulator, EmulatorClient(emulator.url) as people:
        await people.post_message("#campaigns", "@ada", "remember me")
        await until(lambda: path.exists() and "remember me" in path.read_text(), "the message to be saved")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["slack.json"]


@pytest.mark.parametrize("content", ["", "{", json.dumps({"version": 0}), "[]"])
async def test_a_file_it_can_not_read_is_one_sentence_with_the_way_out(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(StateFileError, match=r"slack\.json.* is broken or of another version.*\./dev reset"):
        Emulator(config(path))
    assert path.read_text() == content
