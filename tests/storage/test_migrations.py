"""Migrations: a database of any age becomes what a fresh one is, once, wholly or not at all."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from agent.schema import AGENT
from bot.checkups import CHECKUPS
from bot.groups import GROUPS
from bot.installs import INSTALLATIONS
from bot.schema import BOT, CHECKED
from tests.storage.databases import Database, PostgresDatabase, SqliteDatabase, applied, go, migrated, process
from tests.storage.histories import BOOKS, GROWN, LOANS, OLD, PAGES, STUCK_AT, YOUNG
from tests.waiting import until
from workflows.errors import SchemaError
from workflows.storage import (
    AddColumn,
    AddIndex,
    Column,
    DropIndex,
    Index,
    Insert,
    Migration,
    Schema,
    Select,
    Statements,
)
from workflows.storage.ddl import create
from workflows.storage.dialect import Dialect, Postgres, Sqlite
from workflows.storage.migrations import baseline
from workflows.storage.migrations.engine import ENGINE
from workflows.storage.tables import refers

BOOKKEEPING = ("threadline_clock", "threadline_migrations")
REGISTERED = (ENGINE, AGENT, BOT)
A_RUN = "insert into runs (run_id, tenant, workflow, key, created_at, available_at) values ('r1', 'T1', 'w', 'k', {now}, {now})"
A_STEP = "insert into steps (run_id, path, seq, fence, status, finished_at) values ('r1', 'a', 1, 1, 'ok', {now})"


def filled(database: Database) -> str:
    """The first version's database with a run and a record in it."""
    now = "1767225600000000" if isinstance(database, SqliteDatabase) else "'2026-01-01Z'"
    return database.first + "".join(f"{each.format(now=now)};\n" for each in (A_RUN, A_STEP))


async def young(database: Database) -> None:
    """A library of the first age, with two books."""
    await migrated(database, YOUNG)
    store = database.store(YOUNG)
    await store.open()
    await store.write(*(Insert(BOOKS, {"tenant": "T1", "id": str(n), "title": f"Book {n}"}) for n in (1, 2)))
    await store.close()


@pytest.mark.parametrize("schema", REGISTERED, ids=lambda schema: schema.name)
@pytest.mark.parametrize("dialect", (Sqlite(), Postgres()), ids=("sqlite", "postgres"))
def test_every_table_is_what_its_migrations_yield(schema: Schema, dialect: Dialect) -> None:
    """Red when a table was changed without a migration: append one to the schema's list."""
    schema.check(dialect)


@pytest.mark.parametrize("schema", REGISTERED, ids=lambda schema: schema.name)
def test_every_column_of_values_has_the_index_that_finds_what_it_refers_to(schema: Schema) -> None:
    """Red when a value column came without `refers(table, column)`: collecting blobs would read the whole table."""
    for table in schema.tables:
        for column in table.columns:
            assert column.type != "value" or refers(table.name, column.name) in table.indexes, (
                f"{table.name}.{column.name}"
            )


class TestEquality:
    async def test_a_database_of_the_first_version_becomes_a_fresh_one_and_keeps_its_rows(
        self, database: Database
    ) -> None:
        await database.run(filled(database))
        await migrated(database, AGENT, BOT)
        found = await database.catalog()
        assert await database.rows("select run_id, state, priority from runs") == [("r1", "ready", 100)]
        assert await database.rows("select path, seq from steps") == [("a", 1)]
        await database.empty()
        await migrated(database, AGENT, BOT)
        assert found == await database.catalog()

    async def test_workspaces_that_had_the_app_before_are_looked_after_from_now_on(self, database: Database) -> None:
        before = Schema(
            "bot",
            tuple(each for each in BOT.tables if each not in (CHECKUPS, GROUPS)),
            BOT.migrations[: BOT.migrations.index(CHECKED)],
        )
        await migrated(database, before)
        store = database.store(before)
        await store.open()
        now = await store.now()
        for tenant, removed_at in (("T1", None), ("T2", now)):
            values = {"tenant": tenant, "bot_user_id": "U", "bot_id": "B", "token": "", "removed_at": removed_at}
            await store.write(Insert(INSTALLATIONS, values))
        await store.close()
        await migrated(database, BOT)
        store = database.store(BOT)
        await store.open()
        [row], now = await store.read(Select(CHECKUPS, {})), await store.now()
        assert (row["workspace"], row["due_at"] <= now, row["refused"]) == ("T1", True, 0)
        await store.close()

    async def test_a_fresh_database_is_what_its_tables_say(self, database: Database) -> None:
        await migrated(database, AGENT, BOT)
        found = await database.catalog()
        await database.empty()
        if isinstance(database, PostgresDatabase):
            await database.run("create function threadline_now() returns timestamptz language sql as 'select now()'")
        for schema in REGISTERED:
            for table in schema.tables:
                await database.run(";\n".join(create(table, database.dialect)))
        assert {name: each for name, each in found.items() if name not in BOOKKEEPING} == await database.catalog()

    async def test_every_kind_of_change_leads_where_a_fresh_database_begins(self, database: Database) -> None:
        await young(database)
        await migrated(database, GROWN)
        assert await database.rows("select id, title, pages, note from books order by id") == [
            ("1", "Book 1", 900, None),
            ("2", "Book 2", 100, None),
        ]
        await migrated(database, OLD)
        found = await database.catalog()
        assert await database.rows("select id, pages from books order by id") == [("1", 900), ("2", 100)]
        await database.empty()
        await migrated(database, OLD)
        assert found == await database.catalog()

    async def test_each_migration_is_recorded_once_with_its_time(self, database: Database) -> None:
        for history in (YOUNG, GROWN, GROWN):
            await migrated(database, history)
        assert [row for row in await applied(database) if row[0] == "library"] == [
            ("library", 1, "baseline"),
            ("library", 2, "more about books"),
            ("library", 3, "loans"),
            ("library", 4, "thick books"),
        ]
        assert await database.rows("select count(*) from threadline_migrations where applied_at is null") == [(0,)]

    async def test_the_first_versions_own_bookkeeping_goes(self, database: Database) -> None:
        await database.run(database.first)
        await migrated(database, AGENT, BOT)
        assert "threadline_schema" not in await database.catalog()
        assert {row[0] for row in await applied(database)} == {"engine", "agent", "bot"}


class TestTogether:
    async def test_processes_that_migrate_at_once_do_it_once(self, database: Database) -> None:
        await young(database)
        children = [await process(database, "grown") for _ in range(3)]
        for child in children:
            go(child)
        for child in children:
            _, errors = await child.communicate()
            assert child.returncode == 0, errors.decode()
        assert [number for schema, number, _ in await applied(database) if schema == "library"] == [1, 2, 3, 4]

    async def test_processes_that_find_an_empty_database_at_once_make_it_once(self, database: Database) -> None:
        children = [await process(database, "grown") for _ in range(3)]
        for child in children:
            go(child)
        for child in children:
            _, errors = await child.communicate()
            assert child.returncode == 0, errors.decode()
        assert [number for schema, number, _ in await applied(database) if schema == "library"] == [1, 2, 3, 4]

    async def test_a_process_killed_half_way_leaves_nothing_half_done(self, database: Database) -> None:
        await young(database)
        before = await database.catalog()
        async with _half_way(database) as child:
            child.kill()
            await child.wait()
        await migrated(database, YOUNG)
        assert await database.catalog() == before
        assert await database.rows("select title from books order by id") == [("Book 1",), ("Book 2",)]
        await migrated(database, GROWN)
        assert len(await applied(database)) == 4 + len(ENGINE.migrations)


@contextlib.asynccontextmanager
async def _half_way(database: Database) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process in the middle of a migration."""
    child = await process(database, "stuck")
    if isinstance(database, SqliteDatabase):
        go(child)
        await until(lambda: _locked(database), "the migration to hold the file")
        yield child
        return
    gate = await asyncpg.connect(database.dsn)
    await gate.execute("select pg_advisory_lock($1)", STUCK_AT)
    go(child)
    waiting = f"select count(*) = 1 from pg_locks where locktype = 'advisory' and objid = {STUCK_AT} and not granted"
    await until(lambda: gate.fetchval(waiting), "the migration to wait at its gate")
    yield child
    await gate.close()


def _locked(database: SqliteDatabase) -> bool:
    with contextlib.closing(sqlite3.connect(database.path, isolation_level=None, timeout=0)) as connection:
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError:
            return True
        return False


class TestVersions:
    async def test_an_older_version_works_on_a_newer_schema_that_only_added(self, database: Database) -> None:
        await young(database)
        await migrated(database, GROWN)
        store = database.store(YOUNG)
        await store.open()
        await store.write(Insert(BOOKS, {"tenant": "T1", "id": "3", "title": "Book 3"}))
        assert [row["title"] for row in await store.read(Select(BOOKS, {"tenant": "T1"}, order=("id",)))] == [
            "Book 1",
            "Book 2",
            "Book 3",
        ]
        await store.close()
        assert await database.rows("select pages from books where id = '3'") == [(100,)]

    async def test_a_version_that_is_running_goes_on_while_a_newer_one_migrates(self, database: Database) -> None:
        await young(database)
        store = database.store(YOUNG)
        await store.open()
        query = Select(BOOKS, {"tenant": "T1"})
        for _ in range(2):
            assert len(await store.read(query)) == 2
            await store.write(Insert(BOOKS, {"tenant": "T1", "id": "1", "title": "Book 1"}, on_conflict="replace"))
            await migrated(database, GROWN)
        await store.close()

    async def test_an_older_version_is_refused_where_something_it_needs_is_gone(self, database: Database) -> None:
        await young(database)
        await migrated(database, OLD)
        for history in (YOUNG, GROWN):
            with pytest.raises(SchemaError, match=r"newer version.*'library' 5 \(titles go\).*Start the newer version"):
                await migrated(database, history)

    async def test_a_migration_that_was_edited_after_it_was_made_is_refused(self, database: Database) -> None:
        await migrated(database, GROWN)
        first, second, *others = GROWN.migrations
        edited = replace(second, changes=(*second.changes[:2], AddColumn("books", Column("note", "int", null=True))))
        columns = tuple(
            Column("note", "int", null=True) if each.name == "note" else each for each in GROWN.tables[0].columns
        )
        tables = (replace(GROWN.tables[0], columns=columns), *GROWN.tables[1:])
        with pytest.raises(
            SchemaError, match="made by another version: its migration 2 of 'library' is 'more about books'"
        ):
            await migrated(database, Schema("library", tables, (first, edited, *others)))

    async def test_a_database_of_unknown_tables_is_refused_with_what_to_do(self, database: Database) -> None:
        await database.run(database.first)
        await database.run("update threadline_schema set fingerprint = 'another'")
        with pytest.raises(SchemaError, match=r"made by another version.*\./dev reset"):
            await migrated(database, AGENT, BOT)
        assert await database.rows("select fingerprint from threadline_schema") == [("another",)]

    async def test_a_first_version_without_a_floor_that_came_later_is_recognised(self, database: Database) -> None:
        await database.run(database.first)
        await migrated(database, AGENT, BOT, GROWN)
        assert len(await applied(database)) == 4 + sum(len(each.migrations) for each in REGISTERED)

    async def test_a_store_that_was_refused_is_not_open(self, database: Database) -> None:
        await migrated(database, OLD)
        store = database.store(YOUNG)
        for _ in range(2):
            with pytest.raises(SchemaError):
                await store.open()
        await store.close()


class TestMistakes:
    async def test_a_table_changed_without_a_migration_is_named(self, database: Database) -> None:
        changed = replace(YOUNG, tables=(replace(BOOKS, columns=(*BOOKS.columns, PAGES)), YOUNG.tables[1]))
        with pytest.raises(
            SchemaError,
            match=r"table books of the schema 'library'.*'pages (bigint|integer) not null default 100'.*adds a migration",
        ):
            await migrated(database, changed)

    async def test_a_table_without_a_migration_is_named(self, database: Database) -> None:
        with pytest.raises(SchemaError, match="table loans of the schema 'library'"):
            await migrated(database, replace(YOUNG, tables=(*YOUNG.tables, LOANS)))

    async def test_a_migration_the_database_refuses_changes_nothing_and_is_named(self, database: Database) -> None:
        await young(database)
        before = await database.catalog()
        wrong = ("insert into books (tenant, id, title) select tenant, id, title from books",)
        doubled = Migration(
            "doubled", (AddColumn("books", PAGES), Statements(postgres=wrong, sqlite=wrong, additive=True))
        )
        tables = (replace(BOOKS, columns=(*BOOKS.columns, PAGES)), YOUNG.tables[1])
        with pytest.raises(
            SchemaError, match=r"migration 2 \(doubled\) of 'library' can't be made .* nothing was changed"
        ):
            await migrated(database, Schema("library", tables, (*YOUNG.migrations, doubled)))
        assert await database.catalog() == before
        assert ("library", 2, "doubled") not in await applied(database)

    def test_a_change_that_does_not_fit_names_its_migration(self) -> None:
        schema = Schema(
            "library", (BOOKS,), (baseline(BOOKS), Migration("odd", (AddIndex("boks", Index("i", ("id",))),)))
        )
        with pytest.raises(SchemaError, match="migration 'odd' of 'library' can't be made: there is no table 'boks'"):
            schema.check(Sqlite())

    def test_a_new_column_says_what_old_rows_get(self) -> None:
        with pytest.raises(ValueError, match=r"books\.pages needs a default"):
            AddColumn("books", Column("pages", "int"))
        with pytest.raises(ValueError, match=r"books\.since can't have the default 'now'"):
            AddColumn("books", Column("since", "time", default="now"))

    def test_dropping_a_unique_index_says_so(self) -> None:
        unique = replace(BOOKS, indexes=(Index("books_title", ("title",), unique=True),))
        schema = Schema(
            "library", (unique,), (baseline(unique), Migration("loose", (DropIndex("books", "books_title"),)))
        )
        with pytest.raises(SchemaError, match="unique; say so"):
            schema.check(Sqlite())

    def test_a_table_is_registered_once(self, database: Database) -> None:
        with pytest.raises(ValueError, match="registered twice: books"):
            database.store(YOUNG, BOOKS)

    async def test_a_bare_table_is_made_and_never_changed(self, database: Database) -> None:
        await migrated(database, BOOKS)
        await migrated(database, LOANS, BOOKS)
        with pytest.raises(SchemaError, match="made by another version"):
            await migrated(database, replace(BOOKS, columns=(*BOOKS.columns, PAGES)))

    @pytest.mark.parametrize(
        ("change", "additive"),
        [
            (AddIndex("books", Index("i", ("id",))), True),
            (AddIndex("books", Index("i", ("id",), unique=True)), False),
            (DropIndex("books", "i"), True),
            (DropIndex("books", "i", unique=True), False),
        ],
    )
    def test_an_index_that_refuses_rows_is_not_additive(self, change: AddIndex | DropIndex, additive: bool) -> None:
        assert change.additive is additive


async def test_stores_that_open_together_in_one_process_are_all_open(database: Database) -> None:
    stores = [database.store(GROWN) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        await store.ping()
        await store.close()
