"""The process dies at every point it passes, for every operation of the builder, in memory and on a SQLite file: another one takes the
run over, it ends as if nothing had happened, and nothing happens twice.

What dies is a simulated process: nothing of it runs any more, as after kill -9. Real processes are killed in test_kills.py.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog

from tests.crashes.history import History, Outcome
from tests.flows import MemoryLedger, catalogue
from tests.invariants import InvariantViolation
from tests.tally import Tally
from workflows import Effect
from workflows.storage import MemoryStore, SqliteStore

T = TypeVar("T")
NAMES = tuple(catalogue(MemoryLedger()))
OPERATIONS = frozenset({"claim", "load", "step", "end", "suspend", "inbox", "run", "read"})
"""Of storage; the other points are of the bus and of the world outside."""


class InlineSqlite(SqliteStore):
    """SQLite in the caller's thread: virtual time knows no other."""

    async def _call(self, function: Callable[[], T]) -> T:
        return function()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@pytest.fixture(params=("memory", "sqlite"))
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Outcome]:
    """Plays a history of a case on storage of its own."""
    made = iter(range(10_000))

    def played(name: str, *, at: int = 0) -> Outcome:
        if request.param == "memory":
            return _in_memory(name, at=at)
        path, opened = tmp_path / f"{next(made)}.db", list[InlineSqlite]()

        def connect() -> InlineSqlite:
            store = InlineSqlite(path)
            opened.append(store)
            return store

        try:
            return History(name, connect, at=at).play()
        finally:
            for store in opened:
                store._db.close()

    return played


def _in_memory(name: str, **options: Any) -> Outcome:
    memory = MemoryStore()
    return History(name, lambda: memory, **options).play()


@pytest.mark.parametrize("name", NAMES)
def test_a_death_at_any_point_loses_nothing_and_doubles_nothing(
    play: Callable[..., Outcome], name: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    undisturbed = play(name)
    assert undisturbed.points
    backend = request.node.callspec.params["play"]
    tally.count("crash points", backend, operations=1)
    for number, point in enumerate(undisturbed.points, 1):
        try:
            outcome = play(name, at=number)
        except (InvariantViolation, TimeoutError) as error:
            raise AssertionError(
                f"{name}, dead at point {number} ({point}) of {undisturbed.points}: {error}"
            ) from error
        assert outcome.struck
        assert outcome.results <= undisturbed.results
        tally.count("crash points", backend, killed=1, survived=1)
        tally.count("invariants", checks=2, violations=0)


@pytest.mark.parametrize("name", NAMES)
def test_a_request_or_a_reply_lost_at_any_point_changes_nothing(name: str, tally: Tally) -> None:
    """An operation that says it could not reach storage may have happened or not; either way the run goes on."""
    points = _in_memory(name).points
    for number, point in enumerate(points, 1):
        if point.split()[-1] not in OPERATIONS:
            continue
        try:
            _in_memory(name, at=number, blow="loss")
        except (InvariantViolation, TimeoutError) as error:
            raise AssertionError(f"{name}, lost at point {number} ({point}) of {points}: {error}") from error
        tally.count("lost messages", "requests" if point.startswith("before") else "replies", survived=1)


def test_without_intents_something_is_seen_to_happen_twice(
    play: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the deaths above would show it."""
    monkeypatch.setattr(Effect, "needs_intent", property(lambda effect: False))
    died_at = play("irreversible").points.index("after spend") + 1
    with pytest.raises(InvariantViolation, match="spend was done 2 times"):
        play("irreversible", at=died_at)
