"""An empty database of each SQL dialect."""

from pathlib import Path

import pytest

from tests.storage.databases import Database, PostgresDatabase, SqliteDatabase


@pytest.fixture(params=("sqlite", "postgres"))
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return SqliteDatabase(tmp_path / "one.db")
    return PostgresDatabase(request.getfixturevalue("fresh_database"))
