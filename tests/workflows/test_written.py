"""What a turn writes on PostgreSQL: its statements, its log (WAL), and how both grow. On a server of its own, since the log is the server's."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.bench import engine_turn
from tests.bench.engine_turn import EngineTurn
from tests.bench.meter import Meter, Reading
from tests.bench.subject import Session, Shape, WatchedStore
from tests.servers import PostgresServer

TURN = Shape(rounds=1, calls=3)
STATEMENTS = ("insert into received", "insert into steps", "insert into steps", "state = 'done'")
"""The message that starts the run and claims it; the model's answer; what its three calls gave; the last answer, with the end."""
TURN_WAL = 6_500
"""Bytes of the log that a turn may take, with its spans. Measured: 5,230."""
RECORD_WAL = 640
"""Bytes of the log that one more record of a turn may take, with its spans. Measured: 500."""
QUIET = {"autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "4GB"}
"""Nothing but what is asked of the server is logged."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(**QUIET) as started:
        yield started


@pytest.fixture
async def dsn(server: PostgresServer, request: pytest.FixtureRequest) -> str:
    """A database of this test's."""
    name = str(request.node.originalname)[-40:]
    connection = await asyncpg.connect(server.dsn)
    await connection.execute(f'create database "{name}"')
    await connection.close()
    return server.dsn.removesuffix("postgres") + name


class LoggedStore(WatchedStore):
    """Keeps the text of every statement its connections send, of all of its kind."""

    sent: list[str] = []  # noqa: RUF012 — the subject makes the store, the test reads what was sent

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        async with super()._connection() as connection:
            with connection.query_logger(lambda query: self.sent.append(" ".join(query.query.split()))):
                yield connection


async def written(dsn: str, shape: Shape, *, turns: int, rounds: int = 3) -> Reading:
    """What a turn of this shape writes: of some rounds of so many turns the one that wrote least, after a round that is not counted (a page
    that is new, and a type that is looked up, cost once).
    """
    connection = await asyncpg.connect(dsn)
    try:
        async with EngineTurn(shape).open(dsn, clients=1) as session:
            await _round(session, turns)
            meter, readings = Meter(connection), list[Reading]()
            for _ in range(rounds):
                before = await meter.read()
                await _round(session, turns)
                readings.append(await meter.read() - before)
        return min(readings, key=lambda each: each.wal)
    finally:
        await connection.close()


async def _round(session: Session, turns: int) -> None:
    for _ in range(turns):
        await session.turn()
    await session.settle()


async def test_a_turn_is_four_commits_and_nothing_is_read(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement is a commit of its own, so counting one counts the other."""
    monkeypatch.setattr(engine_turn, "WatchedStore", LoggedStore)
    async with EngineTurn(TURN).open(dsn, clients=1) as session:
        await _round(session, 3)
        for _ in range(5):
            LoggedStore.sent.clear()
            await session.turn()
            sent = list(LoggedStore.sent)
            assert len(sent) == len(STATEMENTS), "\n".join(sent)
            for text, said in zip(sent, STATEMENTS, strict=True):
                assert said in text


async def test_the_server_counts_four_commits_a_turn(dsn: str) -> None:
    """And one now and then for a batch of spans, by the clock."""
    turns = 50
    took = await written(dsn, TURN, turns=turns)
    assert 4 * turns <= took.commits < 5 * turns


async def test_a_turn_takes_no_more_of_the_log_than_its_budget(dsn: str) -> None:
    took = await written(dsn, TURN, turns=50)
    assert took.wal / 50 < TURN_WAL


async def test_one_more_record_takes_no_more_of_the_log_than_its_budget_however_many_there_are(dsn: str) -> None:
    """Twice the iterations write twice as much: nothing that grows is written again."""
    half, whole = await written(dsn, Shape(50, 3), turns=1), await written(dsn, Shape(100, 3), turns=1)
    assert (whole.wal - half.wal) / (50 * 4) < RECORD_WAL
    assert 1.85 < whole.wal / half.wal < 2.1
    assert 1.9 < whole.rows / half.rows < 2.1
    assert 1.9 < whole.commits / half.commits < 2.1
