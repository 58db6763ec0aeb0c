"""Every case of the engine's suite runs on every execution: the stores, and Temporal.

A case marked `store_only("why")` is about something that only runs in a store have; it is given the stores alone. What Temporal can't do is
tested in tests/temporal, and listed in docs/temporal.md.
"""

import pytest

from tests.conformance.conftest import BACKENDS

EXECUTIONS = (*BACKENDS, "temporal")


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" not in metafunc.fixturenames:
        return
    only = [str(mark.args[0]) for mark in metafunc.definition.iter_markers("store_only")]
    assert all(only), "store_only says why"
    metafunc.parametrize("backend", BACKENDS if only else EXECUTIONS, indirect=True)
