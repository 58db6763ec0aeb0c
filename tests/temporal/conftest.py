"""Engines whose runs are in the shared Temporal server, in a fleet of the test's own."""

import pytest

from tests.conformance.engines import Boot, booting_in_temporal


@pytest.fixture
def boot(temporal_address: str, temporal_fleet: str) -> Boot:
    return booting_in_temporal(temporal_address, temporal_fleet)
