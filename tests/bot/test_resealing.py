"""Keys that are retired: what they sealed is sealed anew first, and no pair of tokens is lost over it."""

import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from structlog.testing import capture_logs

from bot.clients import works
from bot.installs import INSTALLATIONS
from bot.keyring import Keyring
from bot.resealing import Resealing
from tests.bot.bench import HARBOR, Bench, Storage
from workflows.storage import Select

OLD, NEW = (f"{name}:{base64.b64encode(name[0].encode() * 32).decode()}" for name in ("old", "new"))


@pytest.fixture
async def bench(tmp_path: Path, storage: Storage) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, {**storage, "THREADLINE_ENCRYPTION_KEYS": OLD}, token_rotation=True) as bench:
        assert (await bench.install()).status == 200
        await bench.idle(HARBOR)
        yield bench


async def row(bench: Bench) -> dict[str, Any]:
    [found] = await bench.service.store.read(Select(INSTALLATIONS, {"tenant": HARBOR}))
    return found


async def sealed_with(bench: Bench) -> list[str]:
    found = await row(bench)
    return [found[column].split(".")[1] for column in ("token", "refresh_token")]


def resealing(bench: Bench, keys: str = f"{NEW},{OLD}") -> Resealing:
    return Resealing(bench.service.store, Keyring.parse(keys))


@pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)
async def test_an_old_key_can_be_retired_after_one_pass(bench: Bench) -> None:
    assert await sealed_with(bench) == ["old", "old"]
    sweep = resealing(bench)
    with capture_logs() as logs:
        assert await sweep.sweep() == 1
    assert await sealed_with(bench) == ["new", "new"]
    assert [each["under_old_keys"] for each in logs if each["event"] == "tokens_looked_through"] == [0]
    assert await sweep.sweep() == 0
    replica, _ = await bench.replica(THREADLINE_ENCRYPTION_KEYS=NEW)
    await bench.time_passes(13 * 3600)
    found = await replica.installs.credentials(HARBOR)
    assert found is not None, "refreshed with a refresh token that was sealed anew"
    assert await works(AsyncWebClient(token=found.token, base_url=bench.emulator.api_url, retry_handlers=[]))


async def test_a_pair_that_is_being_replaced_is_left_to_whoever_replaces_it(bench: Bench) -> None:
    """The new pair takes the place of the old one, which is known by its sealed text."""
    before, rotation = await row(bench), bench.service.workspaces.rotation
    assert await rotation._claimed(before, await bench.service.store.now())
    with capture_logs() as logs:
        assert await resealing(bench).sweep() == 0
    assert [each["under_old_keys"] for each in logs if each["event"] == "tokens_looked_through"] == [1]
    later = before["expires_at"] + timedelta(hours=12)
    stored = await rotation._stored(before, {"token": before["token"], "expires_at": later, "refreshing_until": None})
    assert stored is not None
    assert (await row(bench))["expires_at"] == later


async def test_a_key_that_is_missing_is_told_and_nothing_is_changed(bench: Bench) -> None:
    before = await row(bench)
    with capture_logs() as logs:
        assert await resealing(bench, NEW).sweep() == 0
    assert await row(bench) == before
    [told] = [each for each in logs if each["event"] == "token_not_resealed"]
    assert "'old', which is not in THREADLINE_ENCRYPTION_KEYS" in told["error"]
