"""An Enterprise Grid organization: one token for all its workspaces, and one tenant."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.installs import INSTALLATIONS
from tests.bot.bench import Bench
from tests.waiting import until
from workflows.storage import Insert, Select

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


async def took_over(bench: Bench) -> None:
    async def ended() -> bool:
        return not await bench.service.installs.installed(EUROPE)

    await until(ended, "the organization to take the workspace over")
    await bench.idle(ORG)
    await bench.idle(EUROPE)


async def test_an_organization_that_installs_goes_on_with_what_a_workspace_had_begun(bench: Bench) -> None:
    await installed(bench, EUROPE)
    await bench.people.command("#launches", "@noor", "/summaries", "every monday 9:00")
    ts = await asked(bench, "#launches", "@noor")
    await bench.answer(ts, "#launches")
    await installed(bench)
    await took_over(bench)
    told = await bench.people.command("#launches", "@noor", "/summaries", "")
    assert "09:00 on Monday" in told["response"]["text"]
    await bench.people.post_message("#launches", "@noor", "and the week before?", thread_ts=ts)
    await bench.answer(ts, "#launches", count=2)
    await bench.idle(ORG)
    await bench.time_passes(7 * 86_400)

    async def posted() -> bool:
        return any("Weekly summary" in each["plain"] for each in await bench.people.messages("#launches"))

    await until(posted, "the summary")
    await bench.idle(ORG)
    assert [run.workflow for run in await bench.service.engine.runs(tenant=EUROPE) if run.workflow == "summary"] == []
    summaries = [each for each in await bench.people.messages("#launches") if "Weekly summary" in each["plain"]]
    assert len(summaries) == 1


async def test_a_card_of_a_workspace_that_was_taken_over_can_not_be_clicked_any_more(bench: Bench) -> None:
    await installed(bench, EUROPE)
    ts = await asked(bench, "#launches", "@noor", "pause Brand Search")

    async def card() -> bool:
        return any("[Approve]" in each["plain"] for each in await bench.replies(ts, "#launches"))

    await until(card, "a card")
    await bench.idle(EUROPE)
    await installed(bench)
    await took_over(bench)
    assert not await card()


async def test_a_workspace_that_comes_to_an_organizations_installation_later_is_taken_over(bench: Bench) -> None:
    """Slack adds the app to none of an organization's workspaces by itself; and a workspace's own events may still be on their way."""
    await installed(bench)
    await bench.idle(ORG)
    [row] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": ORG}))
    before = {
        **row,
        "tenant": EUROPE,
        "token": bench.service.installs._keyring.seal("xoxb-1", tenant=EUROPE, column="token"),
    }
    await bench.service.store.write(Insert(INSTALLATIONS, before))
    await bench.answer(await asked(bench, "#launches", "@noor"), "#launches")
    await took_over(bench)
    ts = await bench.people.post_message("dm:@noor", "@noor", "hello")
    event = {"type": "message", "channel": "D0NOOR", "channel_type": "im", "user": "U0NOOR", "text": QUESTION}
    late = {
        "type": "event_callback", "team_id": EUROPE, "enterprise_id": ORG, "api_app_id": "A0THREADLINE", "event_id": "Ev2", "event_time": 1,
        "authorizations": [{"enterprise_id": ORG, "team_id": EUROPE, "user_id": "U0THREADMERIDIAN", "is_enterprise_install": False}],
        "event": {**event, "ts": ts, "event_ts": ts},
    }  # fmt: skip
    assert (await bench.post(json.dumps(late).encode())).status == 200
    await bench.answer(ts, "dm:@noor")
    assert await bench.service.installs.kept(EUROPE) == {}
