"""One store per backend; every store test runs on all of them."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.conformance.engines import Boot, booting
from workflows.storage import Column, MemoryStore, PostgresStore, SqliteStore, Table

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

AnyStore = MemoryStore | SqliteStore | PostgresStore


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_store(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], AnyStore]:
    """Makes stores over the same data, as separate processes would have them (memory: one and the same)."""
    if backend == "memory":
        memory = MemoryStore(tables=[NOTES])
        return lambda: memory
    if backend == "sqlite":
        return lambda: SqliteStore(tmp_path / "store.db", tables=[NOTES])
    dsn = request.getfixturevalue("fresh_database")
    return lambda: PostgresStore(dsn, tables=[NOTES])


@pytest.fixture
async def store(make_store: Callable[[], AnyStore]) -> AsyncIterator[AnyStore]:
    opened = make_store()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def boot(make_store: Callable[[], AnyStore]) -> Boot:
    return booting(make_store)
