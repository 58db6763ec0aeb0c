"""An open sandbox."""

from collections.abc import AsyncIterator

import pytest

from tests.agent.campaigns.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A sandbox at SUNDAY, with an empty store."""
    made = World()
    await made.store.open()
    yield made
    await made.store.close()
