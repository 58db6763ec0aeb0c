"""A store opens only where what it acknowledges is kept."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.storage.databases import PostgresDatabase
from workflows.errors import AccessError, DurabilityError
from workflows.storage import PostgresStore, SqliteStore, StoreUnavailableError

TLS = struct.pack("!i", 80877103)
"""The code by which a client asks for TLS before it begins."""


@asynccontextmanager
async def forgetful_pooler(dsn: str, *dropped: bytes) -> AsyncIterator[str]:
    """A way to the database that drops settings from the start of each session, as PgBouncer does with `ignore_startup_parameters`."""
    parts = urlsplit(dsn)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = await _message(reader)
        if start[:4] == TLS:
            writer.write(b"N")
            start = await _message(reader)
        behind, ahead = await asyncio.open_connection(parts.hostname, parts.port)
        ahead.write(_without(start, dropped))
        await asyncio.gather(_pump(reader, ahead), _pump(behind, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}"))


async def _message(reader: asyncio.StreamReader) -> bytes:
    """A message of a session's start: its length, which counts itself, then that many bytes."""
    (size,) = struct.unpack("!i", await reader.readexactly(4))
    return await reader.readexactly(size - 4)


def _without(start: bytes, dropped: tuple[bytes, ...]) -> bytes:
    version, words = start[:4], start[4:].rstrip(b"\0").split(b"\0")
    pairs = zip(words[::2], words[1::2], strict=True)
    kept = b"".join(name + b"\0" + value + b"\0" for name, value in pairs if name not in dropped)
    return struct.pack("!i", len(kept) + 9) + version + kept + b"\0"


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
    writer.close()


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("synchronous_commit", "off", r"synchronous_commit = off and needs 'on'"),
        ("synchronous_commit", "local", r"synchronous_commit = local and needs 'on'"),
        (
            "default_transaction_isolation",
            "repeatable read",
            "isolation level 'repeatable read' and needs 'read committed'",
        ),
        ("default_transaction_isolation", "serializable", "isolation level 'serializable'"),
    ],
)
async def test_a_session_that_is_not_durable_is_refused(
    fresh_database: str, setting: str, value: str, said: str
) -> None:
    name = urlsplit(fresh_database).path.removeprefix("/")
    await PostgresDatabase(fresh_database).run(f"alter database \"{name}\" set {setting} = '{value}'")
    async with forgetful_pooler(fresh_database, setting.encode()) as dsn:
        store = PostgresStore(dsn)
        with pytest.raises(DurabilityError, match=said):
            await store.open()
        with pytest.raises(StoreUnavailableError):
            await store.ping()


async def test_a_database_set_up_otherwise_does_not_matter_where_the_session_asks_for_what_it_needs(
    fresh_database: str,
) -> None:
    name = urlsplit(fresh_database).path.removeprefix("/")
    await PostgresDatabase(fresh_database).run(f'alter database "{name}" set synchronous_commit = off')
    async with forgetful_pooler(fresh_database) as dsn:
        store = PostgresStore(dsn)
        await store.open()
        await store.close()


async def test_a_file_that_can_have_no_write_ahead_log_is_refused(tmp_path: Path) -> None:
    """As on a network file system, which has no shared memory."""
    store = SqliteStore(f"file:{tmp_path}/one.db?vfs=unix-none")
    with pytest.raises(DurabilityError, match=r"journal_mode = delete.*local disk"):
        await store.open()
    await store.close()


@pytest.mark.parametrize(("user", "database"), [("postgres", "nodb"), ("nobody", "postgres")])
async def test_a_server_that_does_not_let_us_in_says_so_in_one_sentence(
    fresh_database: str, user: str, database: str
) -> None:
    parts = urlsplit(fresh_database)
    dsn = urlunsplit(parts._replace(netloc=f"{user}@{parts.hostname}:{parts.port}", path=f"/{database}"))
    with pytest.raises(AccessError, match=r"does not let this process in: .*\. Check the DSN"):
        await PostgresStore(dsn).open()
