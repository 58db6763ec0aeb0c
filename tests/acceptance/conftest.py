"""A stack of processes on a fresh database and a Redis prefix of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.stack import Stack


@pytest.fixture
async def stack(tmp_path: Path, engine_database: str, redis_url: str, redis_prefix: str) -> AsyncIterator[Stack]:
    async with Stack(
        tmp_path, dsn=engine_database, redis_url=redis_url, redis_prefix=redis_prefix, THREADLINE_LEASE_S="1"
    ) as started:
        yield started
