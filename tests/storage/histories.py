"""A schema at several ages, with every kind of change between them."""

from dataclasses import replace

from workflows.storage import (
    AddColumn,
    AddIndex,
    AddTable,
    Column,
    DropColumn,
    DropIndex,
    DropTable,
    Index,
    Migration,
    Schema,
    Statements,
    Table,
    baseline,
)
from workflows.storage.migrations.engine import ENGINE
from workflows.storage.tables import ENGINE_TABLES, RUNS, STEPS

BOOKS = Table(
    "books",
    (Column("tenant", "text"), Column("id", "text"), Column("title", "text"), Column("at", "time", default="now")),
    ("tenant", "id"),
    (Index("books_title", ("tenant", "title")),),
)
SHELVES = Table("shelves", (Column("tenant", "text"), Column("id", "text")), ("tenant", "id"), hot=True)
LOANS = Table("loans", (Column("id", "int", default="identity"), Column("book", "text")), ("id",), shared=True)

PAGES = Column("pages", "int", default=100)
RARE = Column("rare", "bool", default=True)
NOTE = Column("note", "json", null=True)
THICK = "update books set pages = 900 where id = '1'"
BY_PAGES = Index("books_pages", ("tenant", "pages"), where="pages > 0")

YOUNG = Schema("library", (BOOKS, SHELVES), (baseline(BOOKS, SHELVES),))

GROWN_BOOKS = replace(BOOKS, columns=(*BOOKS.columns, PAGES, RARE, NOTE), indexes=(BY_PAGES,))
GROWN = Schema(
    "library",
    (GROWN_BOOKS, SHELVES, LOANS),
    (
        *YOUNG.migrations,
        Migration("more about books", (AddColumn("books", PAGES), AddColumn("books", RARE), AddColumn("books", NOTE))),
        Migration("loans", (AddTable(LOANS), AddIndex("books", BY_PAGES), DropIndex("books", "books_title"))),
        Migration("thick books", (Statements(postgres=(THICK,), sqlite=(THICK,), additive=True),)),
    ),
)
"""Older by additive migrations only: the young version still works on it."""

OLD = Schema(
    "library",
    (replace(GROWN_BOOKS, columns=tuple(column for column in GROWN_BOOKS.columns if column.name != "title")), LOANS),
    (*GROWN.migrations, Migration("titles go", (DropColumn("books", "title"), DropTable("shelves")))),
)
"""The young version can't work on it."""

STUCK_AT = 7
"""The advisory lock that the stuck migration waits for on PostgreSQL. On SQLite it counts for ever."""
STUCK = Schema(
    "library",
    YOUNG.tables,
    (
        *YOUNG.migrations,
        Migration(
            "stuck",
            (
                Statements(
                    postgres=(
                        "update books set title = 'half done'",
                        "create table half (done int)",
                        f"select pg_advisory_lock({STUCK_AT})",
                    ),
                    sqlite=(
                        "update books set title = 'half done'",
                        "create table half (done int)",
                        "with recursive n(i) as (select 1 union all select i + 1 from n) insert into half select i from n where i < 0",
                    ),
                    additive=True,
                ),
            ),
        ),
    ),
)
"""A migration that stops half way, so that its process can be killed there."""

BORROWED = Column("borrowed", "text", default="no")
AHEAD = Schema(
    "engine",
    (
        replace(
            RUNS, columns=(*RUNS.columns, BORROWED), indexes=(*RUNS.indexes, Index("runs_borrowed", ("borrowed",)))
        ),
        replace(STEPS, columns=(*STEPS.columns, Column("weight", "float", null=True))),
        *ENGINE_TABLES[2:],
        SHELVES,
    ),
    (
        *ENGINE.migrations,
        Migration(
            "of tomorrow",
            (
                AddColumn("runs", BORROWED),
                AddIndex("runs", Index("runs_borrowed", ("borrowed",))),
                AddColumn("steps", Column("weight", "float", null=True)),
                AddTable(SHELVES),
            ),
        ),
    ),
)
"""The engine of a later version, whose migrations are additive."""
