"""Bot tokens that expire: refreshed once by whichever process comes first, also for posts that no event started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.clients import CredentialsUnavailableError, works
from bot.installs import INSTALLATIONS, Installs
from bot.rotation import Rotation
from bot.service import Service
from tests.bot.bench import HARBOR, Bench, Storage
from tests.waiting import until
from workflows.storage import Select, Store, StoreUnavailableError

SERVERS = pytest.mark.parametrize("storage", ["servers"], indirect=True)
HOUR = 3600.0
QUESTION = "how did Brand Search do last week?"


@pytest.fixture
async def bench(tmp_path: Path, storage: Storage) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, storage, token_rotation=True) as bench:
        assert (await bench.install()).status == 200
        yield bench


async def row(bench: Bench) -> dict[str, Any]:
    [found] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))
    return found


async def token(service: Service) -> str:
    service.installs.refresh(HARBOR)
    found = await service.installs.credentials(HARBOR)
    assert found is not None
    return found.token


def slack(bench: Bench, token: str) -> AsyncWebClient:
    return AsyncWebClient(token=token, base_url=bench.emulator.api_url, retry_handlers=[])


async def refreshes(bench: Bench) -> list[str]:
    """How Slack answered each refresh: "" for a good one."""
    calls = await bench.people.calls("oauth.v2.access")
    return [each["result"].get("error", "") for each in calls if each["args"].get("grant_type") == "refresh_token"]


async def test_both_tokens_are_sealed_and_an_early_use_refreshes_nothing(bench: Bench) -> None:
    kept = await row(bench)
    now = await token(bench.service)
    assert now.startswith("xoxe.xoxb-")
    assert kept["refresh_token"].startswith("v1.")
    await bench.time_passes(9 * HOUR)
    assert await token(bench.service) == now
    assert await refreshes(bench) == []


async def test_two_hours_before_its_end_a_token_is_replaced_behind_the_back_of_whoever_uses_it(bench: Bench) -> None:
    old = await token(bench.service)
    await bench.time_passes(10.5 * HOUR)
    assert await token(bench.service) == old, "nobody waits for a refresh as long as the old token works"

    async def replaced() -> bool:
        return await token(bench.service) != old

    await until(replaced, "a new token")
    assert await works(slack(bench, old)), "calls under way go through"
    assert await refreshes(bench) == [""]


async def test_a_post_that_no_event_started_refreshes_first(bench: Bench) -> None:
    """A schedule fires days later, and the worker is the first to need a token."""
    await bench.people.command("#ads", "@dana", "/summaries", "every monday 9:00")
    old = await token(bench.service)
    await bench.time_passes(8 * 24 * HOUR)

    async def posted() -> bool:
        return any(each["metadata"] for each in await bench.people.messages("#ads") if each["is_bot"])

    await until(posted, "the summary")
    with pytest.raises(SlackApiError, match="token_expired"):
        await slack(bench, old).auth_test()
    assert await refreshes(bench) == [""]


@SERVERS
async def test_replicas_that_need_a_token_at_once_refresh_it_once(bench: Bench) -> None:
    others = [(await bench.replica())[0] for _ in range(2)]
    for _ in range(3):  # each refresh token leads to the next one
        before = len(await refreshes(bench))
        await bench.time_passes(13 * HOUR)
        services = [bench.service, *others] * 5
        tokens = await asyncio.gather(*(token(service) for service in services))
        assert len(set(tokens)) == 1
        assert (await refreshes(bench))[before:] == [""]


async def test_a_refresh_that_another_process_died_in_is_made_a_minute_later(bench: Bench) -> None:
    await bench.time_passes(13 * HOUR)
    claim = await row(bench)
    assert await bench.service.workspaces.rotation._claimed(claim, await bench.service.store.now())
    with pytest.raises(Exception, match="is not refreshed yet"):
        await token(bench.service)
    assert await refreshes(bench) == []
    await bench.time_passes(61)
    await token(bench.service)
    assert await refreshes(bench) == [""]


async def test_events_wait_with_503_while_slack_does_not_refresh_and_are_answered_then(bench: Bench) -> None:
    await bench.time_passes(13 * HOUR)
    bench.service.installs.refresh(HARBOR)
    await bench.people.fault("oauth.v2.access", "http_500", times=1)
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")

    async def refused() -> bool:
        attempts = [each["attempts"] for each in await bench.people.deliveries(ts=ts)]
        return bool(attempts) and all(len(each) >= 2 and each[1]["status"] == 503 for each in attempts)

    await until(refused, "503 for both events of the mention, twice")
    # The product's clock first: Slack's next attempt is made the moment that its own is moved.
    await bench.service.store.set_clock_offset(timedelta(seconds=bench.emulator.slack.clock.offset_s + 10))
    await bench.people.advance_clock(61)
    assert "Brand Search" in (await bench.answer(ts, "#ads"))["plain"]


async def test_a_new_pair_is_kept_until_storage_takes_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack has handed it out and the old refresh token is used up: there is no second chance."""
    store, write, refused = bench.service.store, bench.service.store.write, 0

    async def away(*writes: Any) -> int:
        nonlocal refused
        if refused < 2 and any("expires_at" in getattr(each, "values", {}) for each in writes):
            refused += 1
            raise StoreUnavailableError("away")
        return await write(*writes)

    await bench.time_passes(13 * HOUR)
    monkeypatch.setattr(store, "write", away)
    fresh = await token(bench.service)
    assert refused == 2
    assert await token(bench.service) == fresh
    assert await works(slack(bench, fresh))


class Failing:
    """Another process's way to the store, of which one operation fails: before it is done, or so that its reply is lost."""

    def __init__(self, store: Store, nth: int, *, done: bool) -> None:
        self._store = store
        self.left = nth
        self._done = done

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._store, name)

        async def asked(*given: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self._done:
                raise StoreUnavailableError("away")
            answer = await operation(*given)
            if self.left == 0:
                raise StoreUnavailableError("the reply was lost")
            return answer

        return asked


@pytest.mark.parametrize("done", [False, True], ids=["not done", "reply lost"])
async def test_whichever_storage_operation_of_a_refresh_fails_the_pair_is_kept_or_the_old_one_works(
    bench: Bench, done: bool
) -> None:
    service, settings = bench.service, bench.service.settings
    await bench.idle(HARBOR)
    for nth in count(1):
        await bench.time_passes(13 * HOUR)
        store: Any = Failing(service.store, nth, done=done)
        rotation = Rotation(
            store, service.installs._keyring, INSTALLATIONS,
            client=AsyncWebClient(base_url=settings.slack_api_url, timeout=5, retry_handlers=[]),
            client_id=settings.slack_client_id, client_secret=settings.slack_client_secret.get_secret_value(),
        )  # fmt: skip
        installs = Installs(store, service.installs._keyring, rotation, service.installs._departures)
        with suppress(StoreUnavailableError, CredentialsUnavailableError):
            assert await installs.credentials(HARBOR) is not None, "the app is installed, whatever storage says"
        await rotation.close()
        if store.left > 0:  # none was left to fail
            break
        await bench.time_passes(61)  # another process's turn, if this one's claim stands
        fresh = await token(service)
        assert await works(slack(bench, fresh))
    assert nth > 5, "a refresh asks storage more often than that"
    assert set(await refreshes(bench)) == {""}, "no refresh token is used twice"


async def test_whoever_waits_may_be_cut_off_between_slacks_answer_and_the_commit(bench: Bench) -> None:
    """A Stop or a deploy cancels the step that asked for a token."""
    await bench.time_passes(13 * HOUR)
    await bench.people.fault("oauth.v2.access", "delay", delay_s=0.2)
    asking = asyncio.create_task(token(bench.service))

    async def claimed() -> bool:
        return (await row(bench))["refreshing_until"] is not None

    await until(claimed, "the refresh to be under way")
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await bench.service.workspaces.rotation.close()
    assert (await row(bench))["refreshing_until"] is None
    await token(bench.service)
    assert await refreshes(bench) == [""]


async def test_a_lost_pair_ends_with_the_token_and_an_install_brings_the_workspace_back(bench: Bench) -> None:
    """A process was killed between Slack's answer and the commit: the refresh token it used works for nobody."""
    workspace = bench.emulator.slack.workspaces[HARBOR]
    assert workspace.installation is not None
    workspace.installation.rotate("xoxe.xoxb-nobody-has-it", "xoxe-1-nobody-has-it", expires_s=1e12)
    await bench.time_passes(11 * HOUR)
    await token(bench.service)

    async def lost() -> bool:
        return bool((await row(bench))["lost"])

    await until(lost, "the refusal to be known")
    assert await token(bench.service), "what is left of the old token's time can be used"
    await bench.time_passes(2 * HOUR)
    bench.service.installs.refresh(HARBOR)
    ts = await bench.people.post_message("#ads", "@dana", f"@Threadline {QUESTION}")
    await bench.settled(ts=ts)
    assert await bench.service.installs.credentials(HARBOR) is None
    assert await refreshes(bench) == ["invalid_refresh_token"], "it is not tried again and again"
    await bench.install()
    assert "Brand Search" in (await bench.answer(ts, "#ads"))["plain"]


async def test_an_install_during_a_refresh_keeps_the_tokens_of_the_install(bench: Bench) -> None:
    await bench.time_passes(13 * HOUR)
    stale = await row(bench)
    await bench.install()
    installed = await token(bench.service)
    rotation: Rotation = bench.service.workspaces.rotation
    assert await rotation._stored(stale, {"token": "older"}) == await row(bench)
    assert await token(bench.service) == installed


async def test_an_uninstall_takes_the_refresh_token_too(bench: Bench) -> None:
    await bench.people.uninstall(HARBOR)
    await bench.settled()
    kept = await row(bench)
    assert (kept["refresh_token"], kept["expires_at"]) == ("", None)
    assert await bench.service.installs.credentials(HARBOR) is None
