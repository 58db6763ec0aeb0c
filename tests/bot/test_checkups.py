"""A removal of which no event arrives: found by trying the token, twice, and never taken from one wrong answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError

from agent.messages import MESSAGES
from bot.checkups import AGAIN, CHECKUPS, EVERY
from bot.departures import DEPARTURES
from bot.installs import INSTALLATIONS
from tests.bot.bench import HARBOR, HARBOR_BOT, NORTHWIND, Bench, envelope
from tests.waiting import until
from workflows.storage import Insert, Select, Update, Write

SERVERS = pytest.mark.parametrize("storage", ["servers"], indirect=True)
DAY_S, MINUTES_S = EVERY.total_seconds() + 1, AGAIN.total_seconds() + 1
QUESTION = "how did Brand Search do last week?"


async def row(bench: Bench, workspace: str = HARBOR) -> dict[str, Any] | None:
    rows = await bench.service.store.read(Select(CHECKUPS, {"workspace": workspace}))
    return rows[0] if rows else None


async def asked(bench: Bench) -> int:
    """How often Slack was asked about a token."""
    return len(await bench.people.calls("auth.test"))


async def seen(bench: Bench, refused: int | None, workspace: str = HARBOR) -> None:
    """Wait for a workspace to have been refused so often in a row; None: until it is looked after no more."""

    async def there() -> bool:
        found = await row(bench, workspace)
        return (None if found is None else found["refused"]) == refused

    await until(there, f"{refused} refusals of {workspace} in a row")


async def scheduled(bench: Bench, tenant: str = HARBOR) -> int:
    return len(await bench.service.store.schedules(tenant=tenant))


@pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
async def test_work_ends_and_data_goes_also_where_no_event_tells_of_the_removal(bench: Bench) -> None:
    await bench.install()
    await bench.people.command("#ads", "@dana", "/summaries", "every monday 9:00")
    await bench.people.uninstall(HARBOR, tell=False)
    before = await asked(bench)
    await bench.time_passes(DAY_S)
    await seen(bench, 1)
    assert await bench.service.installs.installed(HARBOR), "one answer may be wrong"
    assert await scheduled(bench) == 1
    await bench.time_passes(MINUTES_S)
    await seen(bench, None)
    assert not await bench.service.installs.installed(HARBOR)
    assert await scheduled(bench) == 0
    assert await asked(bench) - before == 2
    await bench.time_passes(30 * DAY_S)

    async def gone() -> bool:
        return not await bench.service.store.read(Select(DEPARTURES, {}))

    await until(gone, "the deletion")
    assert await bench.service.engine.runs(tenant=HARBOR) == []


async def test_the_workspace_of_the_settings_leaves_in_the_same_way(bench: Bench) -> None:
    ts = await bench.asked(f"@Threadline {QUESTION}")
    await bench.answer(ts)
    await bench.people.command("#campaigns", "@ada", "/summaries", "every monday 9:00")
    await bench.people.uninstall(NORTHWIND, tell=False)
    await bench.time_passes(DAY_S)
    await seen(bench, 1, NORTHWIND)
    assert await scheduled(bench, NORTHWIND) == 1
    await bench.time_passes(MINUTES_S)
    await seen(bench, None, NORTHWIND)
    assert await scheduled(bench, NORTHWIND) == 0
    await bench.time_passes(30 * DAY_S)

    async def gone() -> bool:
        return not await bench.service.store.read(Select(MESSAGES, {"tenant": NORTHWIND}))

    await until(gone, "the deletion")


async def test_an_event_tells_of_the_workspace_of_the_settings_too(bench: Bench) -> None:
    await bench.answer(await bench.asked(f"@Threadline {QUESTION}"))
    await bench.idle()
    await bench.people.uninstall(NORTHWIND)
    await bench.settled(type="app_uninstalled")
    [departure] = await bench.service.store.read(Select(DEPARTURES, {}))
    assert departure["workspace"] == NORTHWIND


async def test_a_token_that_works_again_at_the_second_look_is_kept(bench: Bench) -> None:
    await bench.install()
    await bench.people.fault("auth.test", "error", error="account_inactive", times=1)
    await bench.time_passes(DAY_S)
    await seen(bench, 1)
    await bench.time_passes(MINUTES_S)
    await seen(bench, 0)
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    await bench.answer(ts, "#ads")


async def test_a_slack_that_does_not_say_takes_nothing_away(bench: Bench) -> None:
    await bench.install()
    await bench.people.fault("auth.test", "http_500", times=2)
    before = await asked(bench)
    for looks in (1, 2):
        await bench.time_passes(DAY_S if looks == 1 else MINUTES_S)

        async def looked(looks: int = looks) -> bool:
            return await asked(bench) - before == looks

        await until(looked, "another look")
    found = await row(bench)
    assert found is not None
    assert found["refused"] == 0


async def test_any_refused_call_brings_the_look_forward_without_a_storm(bench: Bench) -> None:
    await bench.install()
    client = await bench.service.clients.of(HARBOR)
    await bench.people.uninstall(HARBOR, tell=False)
    before = await asked(bench)

    async def refused_calls() -> None:
        for _ in range(20):
            with pytest.raises(SlackApiError, match=r"token_revoked|account_inactive|invalid_auth"):
                await client.users_info(user="U0DANA")

    await refused_calls()
    await seen(bench, 1)
    await refused_calls()
    await looked_again(bench)
    assert await asked(bench) - before == 1, "the second look waits for its time, whatever is refused meanwhile"
    await bench.time_passes(MINUTES_S)
    await seen(bench, None)
    assert not await bench.service.installs.installed(HARBOR)
    assert await asked(bench) - before == 2


async def test_calls_that_are_refused_though_the_token_works_ask_once_in_minutes(bench: Bench) -> None:
    await bench.install()
    client = await bench.service.clients.of(HARBOR)
    before = await asked(bench)
    await bench.people.fault("users.info", "error", error="invalid_auth", times=6)
    for _ in range(6):
        with pytest.raises(SlackApiError, match="invalid_auth"):
            await client.users_info(user="U0DANA")
        await looked_again(bench)
    assert await asked(bench) - before == 1
    await bench.idle(HARBOR)
    assert await bench.service.installs.installed(HARBOR)


async def looked_again(bench: Bench) -> None:
    """What was refused until now is known, and the clock has had its turn."""
    await bench.service.workspaces.refusals.close()
    await bench.service.workspaces.checkups.sweep()


async def test_where_an_organization_takes_a_workspace_away_its_token_decides(bench: Bench) -> None:
    await bench.install()
    first = await row(bench)
    assert first is not None
    event = {"type": "team_access_revoked", "team_ids": [HARBOR, "T0UNKNOWN", 7, None], "event_ts": "1.2"}
    for malformed in ({"team_ids": "T1"}, {}):
        page = await bench.post_json(envelope({"type": event["type"], **malformed}, team=HARBOR, bot=HARBOR_BOT))
        assert page.status == 200
    assert (await bench.post_json(envelope(event, team="T0OTHER"))).status == 200

    async def looked() -> bool:
        found = await row(bench)
        return found is not None and found["asked_at"] > first["asked_at"]

    await until(looked, "a look at the workspace")
    assert await bench.service.installs.installed(HARBOR)


@SERVERS
async def test_clocks_of_several_replicas_ask_once(bench: Bench) -> None:
    await bench.install()
    others = [(await bench.replica())[0] for _ in range(2)]
    before = await asked(bench)
    await bench.time_passes(DAY_S)
    await asyncio.gather(*(each.workspaces.checkups.sweep() for each in others * 3))
    first = await row(bench)
    assert first is not None
    assert first["refused"] == 0
    assert await asked(bench) - before == 1


@pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
async def test_a_removal_that_crosses_a_resealing_is_a_removal(bench: Bench) -> None:
    """The sealed text changes between its look and its write; the token does not."""
    await bench.install()
    await bench.idle(HARBOR)
    token = await token_of(bench)
    await bench.people.uninstall(HARBOR, tell=False)
    async with crossed(bench, token):
        await bench.service.installs.uninstall(HARBOR, token=token)
    assert not await bench.service.installs.installed(HARBOR)
    assert await row(bench) is None


@pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
async def test_a_removal_that_crosses_a_new_token_takes_nothing_away(bench: Bench) -> None:
    await bench.install()
    await bench.idle(HARBOR)
    token = await token_of(bench)
    async with crossed(bench, "xoxb-another"):
        await bench.service.installs.uninstall(HARBOR, token=token)
    assert await bench.service.installs.installed(HARBOR)
    assert await row(bench) is not None, "it is looked after as before"


async def test_a_removal_that_was_cut_off_is_looked_after_no_more(bench: Bench) -> None:
    """What is left of it is the checkup alone."""
    await bench.install()
    await bench.idle(HARBOR)
    left = await row(bench)
    await bench.people.uninstall(HARBOR)
    await bench.settled(type="app_uninstalled")
    assert left is not None
    await bench.service.store.write(Insert(CHECKUPS, left))
    await bench.time_passes(DAY_S)
    await seen(bench, None)


async def token_of(bench: Bench) -> str:
    found = await bench.service.installs.credentials(HARBOR)
    assert found is not None
    return found.token


@asynccontextmanager
async def crossed(bench: Bench, token: str) -> AsyncIterator[None]:
    """While it lasts, the first removal finds its installation's token sealed anew, as `token`, after it has looked."""
    departures, keyring = bench.service.installs._departures, bench.service.installs._keyring
    left, crossings = departures.left, [{"token": keyring.seal(token, tenant=HARBOR, column="token")}]

    async def late(workspace: str) -> Write:
        while crossings:
            await bench.service.store.write(Update(INSTALLATIONS, {"tenant": HARBOR}, crossings.pop()))
        return await left(workspace)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(departures, "left", late)
        yield
    assert not crossings
