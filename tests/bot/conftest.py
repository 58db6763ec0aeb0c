"""The whole product in this process, behind real sockets, beside a local Slack."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.emulator import Emulator, EmulatorConfig
from bot.emulator.client import EmulatorClient
from tests.bot.bench import Bench, Storage
from tests.bot.desk import TOKEN, Desk
from tests.bot.listening import Listener


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    """SQLite and the embedded bus; parametrise with "servers" for PostgreSQL and Redis."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return {}
    return {
        "DATABASE_URL": request.getfixturevalue("engine_database"),
        "REDIS_URL": request.getfixturevalue("redis_url"),
        "THREADLINE_REDIS_PREFIX": request.getfixturevalue("redis_prefix"),
    }


@pytest.fixture
async def bench(tmp_path: Path, storage: Storage) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, storage) as bench:
        yield bench


@pytest.fixture
async def desk(request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    """Parametrise it with how long a post may be under way, in seconds, where it is not waited for."""
    emulator = Emulator(EmulatorConfig(signing_secret="s", bot_token=TOKEN), environment="test")
    async with emulator, EmulatorClient(emulator.url) as people:
        root = await people.post_message("#campaigns", "@ada", "hello")
        yield Desk(emulator, people, root, deadline_s=getattr(request, "param", 1.0))


@pytest.fixture
def listener(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Listener:
    """The bench with a model that only listens."""
    listener = Listener()
    monkeypatch.setattr(bench.service.model, "stream", listener.stream)
    return listener
