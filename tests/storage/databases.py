"""Databases to migrate: SQL scripts into them, catalogs out of them, stores over them."""

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

from workflows.storage import PostgresStore, Schema, SqliteStore, Table
from workflows.storage.dialect import Dialect, Postgres, Sqlite
from workflows.storage.migrations.engine import ENGINE

HERE = Path(__file__).parent
Catalog = dict[str, Any]
"""Each table's columns, constraints, indexes and options, by its name."""


class SqliteDatabase:
    """A SQLite file."""

    dialect: Dialect = Sqlite()
    first = (HERE / "first-sqlite.sql").read_text()

    def __init__(self, path: Path) -> None:
        self.path = path

    def store(self, *tables: Table | Schema, engine: Schema = ENGINE) -> SqliteStore:
        store = SqliteStore(self.path, tables=tables)
        store._schemas = (engine, *store._schemas[1:])
        return store

    async def empty(self) -> None:
        for path in self.path.parent.glob(self.path.name + "*"):
            path.unlink()

    async def run(self, script: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.create_function("threadline_now", 0, lambda: 0)
            connection.executescript(script)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(sql).fetchall()

    async def catalog(self) -> Catalog:
        names = await self.rows("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
        return {name: await self._table(name) for (name,) in names}

    async def _table(self, name: str) -> Any:
        # The text of CREATE TABLE is no part of it: ALTER TABLE edits that text in its own way.
        columns = await self.rows(
            f"select name, lower(type), \"notnull\", dflt_value, pk from pragma_table_xinfo('{name}')"
        )
        made = await self.rows(f"select name, \"unique\", origin, partial from pragma_index_list('{name}')")
        texts = await self.rows(f"select name, sql from sqlite_master where type = 'index' and tbl_name = '{name}'")
        return columns, sorted(made), sorted((name, str(text).lower()) for name, text in texts)


class PostgresDatabase:
    """A PostgreSQL database."""

    dialect: Dialect = Postgres()
    first = (HERE / "first-postgres.sql").read_text()

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def store(self, *tables: Table | Schema, engine: Schema = ENGINE) -> PostgresStore:
        store = PostgresStore(self.dsn, tables=tables, pool_size=2)
        store._schemas = (engine, *store._schemas[1:])
        return store

    async def empty(self) -> None:
        await self.run("drop schema public cascade; create schema public")

    async def run(self, script: str) -> None:
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(self.dsn)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    async def catalog(self) -> Catalog:
        names = await self.rows(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        )
        return {name: await self._table(name) for (name,) in names}

    async def _table(self, name: str) -> Any:
        columns = f"""select attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attidentity, attstorage
                        from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
                       where attrelid = '{name}'::regclass and attnum > 0 and not attisdropped order by attnum"""
        constraints = f"select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = '{name}'::regclass order by conname"
        indexes = (
            f"select indexdef from pg_indexes where schemaname = 'public' and tablename = '{name}' order by indexname"
        )
        options = f"select relpersistence, reloptions from pg_class where oid = '{name}'::regclass"
        return [await self.rows(sql) for sql in (columns, constraints, indexes, options)]


Database = SqliteDatabase | PostgresDatabase


async def migrated(database: Database, *tables: Table | Schema, engine: Schema = ENGINE) -> None:
    """Open a store once, so that the database has all migrations."""
    store = database.store(*tables, engine=engine)
    try:
        await store.open()
    finally:
        await store.close()


async def applied(database: Database) -> list[tuple[Any, ...]]:
    """The migrations a database says it has, as (schema, number, name)."""
    return await database.rows("select schema, number, name from threadline_migrations order by schema, number")


async def process(database: Database, history: str) -> asyncio.subprocess.Process:
    """A process of its own that waits for a line on its standard input, then migrates `database` (see `tests.storage.migrating`)."""
    where = str(database.path) if isinstance(database, SqliteDatabase) else database.dsn
    kind = "sqlite" if isinstance(database, SqliteDatabase) else "postgres"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.storage.migrating", kind, where, history,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=HERE.parents[1],
    )  # fmt: skip
    assert child.stdout is not None
    assert await child.stdout.readline() == b"ready\n"
    return child


def go(child: asyncio.subprocess.Process) -> None:
    """Let it begin."""
    assert child.stdin is not None
    child.stdin.write(b"go\n")
