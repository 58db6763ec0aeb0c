"""One store per backend; every store test runs on all of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance.engines import Boot, booting, booting_in_temporal
from tests.storage.histories import AHEAD as LATER
from workflows.storage import Column, CompositeStore, MemoryStore, PostgresStore, SqliteStore, Table

BACKENDS = ("memory", "sqlite", "postgres")

NOTES = Table(
    "notes",
    (
        Column("tenant", "text"),
        Column("id", "text"),
        Column("body", "json", null=True),
        Column("at", "time", null=True),
        Column("n", "int", default=0),
        Column("done", "bool", default=False),
        Column("raw", "bytes", null=True),
        Column("ratio", "float", null=True),
    ),
    ("tenant", "id"),
)

SingleStore = MemoryStore | SqliteStore | PostgresStore
AnyStore = MemoryStore | SqliteStore | PostgresStore | CompositeStore

AHEAD = ("sqlite ahead", "postgres ahead")
"""Databases that a later version has migrated, additively: this version still works on them."""
COMPOSITES = ("sqlite and memory", "postgres and sqlite")
"""Spans in a store of their own."""
FURTHER = {
    **dict.fromkeys(("approvals", "claims", "ends", "letters", "schedules", "suspensions", "workers"), AHEAD),
    **dict.fromkeys(("signals", "steps"), (*AHEAD, *COMPOSITES)),
    **dict.fromkeys(("retention", "rows"), COMPOSITES),
    "spans": (*AHEAD, "postgres and sqlite"),
}
"""Backends of the store that a module of tests runs on besides the three, by its name without `test_`."""


EXECUTIONS = (*BACKENDS, "temporal")
"""What the engine's suite runs on. A case marked `store_only("why")` is about what only runs in a store have, and is given the stores alone.
What Temporal can't do is tested in tests/temporal, and listed in docs/temporal.md.
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", _backends(metafunc), indirect=True)


def _backends(metafunc: pytest.Metafunc) -> tuple[str, ...]:
    names = metafunc.module.__name__.split(".")
    if "engine" not in names:
        return (*BACKENDS, *FURTHER.get(names[-1].removeprefix("test_"), ()))
    reasons = [mark.args[0] for mark in metafunc.definition.iter_markers("store_only")]
    assert all(reasons), "store_only says why"
    return BACKENDS if reasons else EXECUTIONS


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_store(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], AnyStore]:
    """Makes stores over the same data, as separate processes would have them (memory: one and the same)."""
    kind, _, besides = backend.partition(" ")
    make = _maker(kind, tmp_path / "store.db", request)
    if besides == "ahead":
        _migrate_ahead(make())
    if besides:
        spans = _maker(besides.removeprefix("and "), tmp_path / "spans.db", request)
        return lambda: CompositeStore(default=make(), spans=spans())
    return make


def _migrate_ahead(store: SingleStore) -> None:
    """In a thread of its own, since asyncio.run would take pytest-asyncio's event loop away from this one."""

    async def migrate() -> None:
        store._schemas = (LATER, *store._schemas[1:])
        await store.open()
        await store.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(asyncio.run, migrate()).result()


def _maker(kind: str, path: Path, request: pytest.FixtureRequest) -> Callable[[], SingleStore]:
    if kind == "memory":
        memory = MemoryStore(tables=[NOTES])
        return lambda: memory
    if kind == "sqlite":
        return lambda: SqliteStore(path, tables=[NOTES])
    dsn = request.getfixturevalue("engine_database")
    return lambda: PostgresStore(dsn, tables=[NOTES])


@pytest.fixture
async def store(make_store: Callable[[], AnyStore]) -> AsyncIterator[AnyStore]:
    opened = make_store()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def boot(backend: str, request: pytest.FixtureRequest) -> Boot:
    if backend == "temporal":
        address = request.getfixturevalue("temporal_address")
        return booting_in_temporal(address, request.getfixturevalue("temporal_fleet"))
    return booting(request.getfixturevalue("make_store"))
