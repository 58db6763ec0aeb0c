"""An Enterprise Grid organization: one token for all its workspaces, and one tenant."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.installs import INSTALLATIONS
from tests.bot.bench import Bench
from tests.waiting import until
from workflows.storage import Select

ORG, EUROPE, ASIA = "E0MERIDIAN", "T0MERIDIANEU", "T0MERIDIANAS"
QUESTION = "how did Brand Search do last week?"


@pytest.fixture(params=["http", "socket"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    token = "xapp-1-of-the-tests" if request.param == "socket" else ""
    async with Bench(tmp_path, {}, grid=True, app_token=token) as bench:
        yield bench


async def installed(bench: Bench, place: str = ORG) -> str:
    page = await bench.install(installer=f"{place}:U0NOOR")
    assert page.status == 200
    return page.text


async def asked(bench: Bench, channel: str, user: str, text: str = QUESTION) -> str:
    return await bench.people.post_message(channel, user, f"@Threadline {text}")


async def test_one_installation_answers_in_every_workspace_as_one_tenant(bench: Bench) -> None:
    assert "Meridian Group" in await installed(bench)
    [row] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": ORG}))
    assert (row["name"], row["bot_user_id"]) == ("Meridian Group", "U0THREADMERIDIAN")
    for channel, user in (("#launches", "@noor"), ("#performance", "@kenji"), ("dm:@kenji", "@kenji")):
        ts = await asked(bench, channel, user)
        assert "Brand Search" in (await bench.answer(ts, channel))["plain"]
    assert {run.tenant for run in await bench.idle(ORG)} == {ORG}
    for team in (EUROPE, ASIA):
        assert await bench.service.engine.runs(tenant=team) == []


async def test_an_answer_streams_to_whoever_asked_in_their_own_workspace(bench: Bench) -> None:
    await installed(bench)
    for channel, user, team in (("#launches", "@noor", EUROPE), ("#performance", "@kenji", ASIA)):
        await bench.answer(await asked(bench, channel, user), channel)
        [*_, started] = await bench.people.calls("chat.startStream")
        assert (started["result"]["ok"], started["args"]["recipient_team_id"]) == (True, team)


async def test_a_command_and_a_click_belong_to_the_organization(bench: Bench) -> None:
    """A command says that it is org-wide with a string, a click with a boolean."""
    await installed(bench)
    typed = await bench.people.command("#performance", "@kenji", "/summaries", "every monday 9:00")
    assert "I will post a campaign summary here" in typed["response"]["text"]
    assert await bench.service.desk.scheduled(tenant=ORG, channel="C0MERIDIANPERFORMANCE") is not None
    ts = await asked(bench, "#launches", "@noor", "pause Brand Search")

    async def card() -> bool:
        return any("Approve" in each["plain"] for each in await bench.replies(ts, "#launches"))

    await until(card, "a card")
    [shown] = [each for each in await bench.replies(ts, "#launches") if "Approve" in each["plain"]]
    assert (await bench.people.click("#launches", shown["ts"], "approval_approve", "@noor"))["ok"]

    async def paused() -> bool:
        return await bench.status_of("Brand Search", tenant=ORG) == "paused"

    await until(paused, "the campaign to be paused")


async def test_removing_it_ends_it_in_every_workspace(bench: Bench) -> None:
    await installed(bench)
    await bench.people.uninstall(ASIA)
    await bench.settled(type="app_uninstalled")
    assert await bench.service.installs.credentials(ORG) is None
    [row] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": ORG}))
    assert row["removed_at"] is not None
    await installed(bench)
    await bench.answer(await asked(bench, "#launches", "@noor"), "#launches")


async def test_one_workspace_of_an_organization_can_have_it_alone(bench: Bench) -> None:
    assert "Meridian Europe" in await installed(bench, EUROPE)
    await bench.answer(await asked(bench, "#launches", "@noor"), "#launches")
    assert {run.tenant for run in await bench.idle(EUROPE)} == {EUROPE}
    assert await bench.service.installs.credentials(ORG) is None


async def test_an_event_without_a_workspace_belongs_to_the_organization(bench: Bench) -> None:
    """App events of an org-wide installation may name no workspace."""
    await installed(bench)
    authorization = {"enterprise_id": ORG, "team_id": None, "user_id": "U0THREADMERIDIAN", "is_bot": True}
    event = {"type": "message", "channel": "D0KENJI", "channel_type": "im", "user": "U0KENJI", "text": QUESTION}
    ts = await bench.people.post_message("dm:@kenji", "@kenji", "hello")
    envelope = {
        "type": "event_callback", "team_id": None, "enterprise_id": ORG, "api_app_id": "A0THREADLINE", "event_id": "Ev1", "event_time": 1,
        "authorizations": [{**authorization, "is_enterprise_install": True}], "event": {**event, "ts": ts, "event_ts": ts},
    }  # fmt: skip
    assert (await bench.post(json.dumps(envelope).encode())).status == 200
    await bench.answer(ts, "dm:@kenji")
    assert {run.tenant for run in await bench.idle(ORG)} == {ORG}
