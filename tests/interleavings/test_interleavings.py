"""Seeded histories of a whole cluster on virtual time: whatever happens in which order, every run ends as it should.

`THREADLINE_SEEDS=17` plays one seed again, with the last things that happened if it fails; `THREADLINE_SEEDS=0-9999` plays that many.
"""

import logging
import os
from collections.abc import Iterator

import pytest
import structlog

from tests.interleavings.scenario import Scenario, SeedFailed
from tests.tally import Tally
from tests.weakened import WEAKNESSES, Weakness


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


SEEDS = _seeds(os.environ.get("THREADLINE_SEEDS", "0-499"))
PARTS = [SEEDS[begin : begin + 25] for begin in range(0, len(SEEDS), 25)]
ENOUGH = 250
"""Seeds within which a weakened store is found out; most are within twenty."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A storm logs a great deal, and rendering it would take longer than the storm."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@pytest.mark.parametrize("seeds", PARTS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_every_run_ends_and_nothing_happens_twice(seeds: range, tally: Tally) -> None:
    for seed in seeds:
        scenario = Scenario(seed)
        scenario.play()
        tally.count("interleavings", seeds=1, runs_ended=scenario.ended, processes_lost=scenario.lost)
        tally.count("invariants", checks=scenario.checks, violations=0)


def test_a_seed_is_the_same_history_each_time() -> None:
    first, second = Scenario(7), Scenario(7)
    first.play()
    second.play()
    assert first.digest == second.digest != 0


@pytest.mark.parametrize("weakness", WEAKNESSES, ids=lambda weakness: weakness.name)
def test_a_weakened_store_is_found_out(weakness: Weakness) -> None:
    weakened = 0
    for seed in range(ENOUGH):
        store = weakness.make()
        try:
            Scenario(seed, make_store=lambda store=store: store, overtaken=weakness.at).play()  # type: ignore[misc]
        except SeedFailed as failed:
            assert f"THREADLINE_SEEDS={seed} ./dev test" in str(failed)  # noqa: PT017 — which seed is not known before
            assert store.weakened
            return
        weakened += store.weakened
    pytest.fail(f"{ENOUGH} seeds passed on a store that is weakened, {weakened} times at work")
