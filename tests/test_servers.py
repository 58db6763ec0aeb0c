"""The harness itself: servers that start, die, come back with their data, and never outlive the tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
from redis.asyncio import Redis

from tests.servers import PostgresServer, RedisServer

ORPHAN = """
import os, sys
from tests.servers import RedisServer
server = RedisServer()
server.start()
print(server._pid, server.directory, flush=True)
os.kill(os.getpid(), 9)
"""


def until(condition: Callable[[], bool], *, deadline_s: float = 10) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether no such process runs; a zombie that init has not collected counts as gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z"


async def test_each_worker_has_a_database_of_its_own(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    assert await connection.fetchval("show synchronous_commit") == "on"
    assert postgres_url.endswith("/" + await connection.fetchval("select current_database()"))
    await connection.close()


async def test_a_fresh_database_is_empty(fresh_database: str) -> None:
    connection = await asyncpg.connect(fresh_database)
    assert await connection.fetchval("select count(*) from pg_tables where schemaname = 'public'") == 0
    await connection.close()


async def test_a_killed_postgres_comes_back_on_its_port_with_its_rows(private_postgres: PostgresServer) -> None:
    dsn = private_postgres.dsn
    connection = await asyncpg.connect(dsn)
    await connection.execute("create table kept as select 17 as answer")
    private_postgres.kill()
    connection.terminate()
    private_postgres.start()
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("select answer from kept") == 17
    await connection.close()
    private_postgres.restart()
    assert private_postgres.dsn == dsn


async def test_a_killed_redis_comes_back_on_its_port_with_its_keys(private_redis: RedisServer) -> None:
    url = private_redis.url
    async with Redis.from_url(url) as client:
        await client.set("kept", "17")
    private_redis.kill()
    private_redis.start()
    async with Redis.from_url(url) as client:
        assert await client.get("kept") == b"17"


def test_a_server_goes_with_its_data_when_the_harness_is_killed() -> None:
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", ORPHAN], cwd=root, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    pid, directory = done.stdout.split()
    until(lambda: gone(int(pid)) and not Path(directory).exists())
