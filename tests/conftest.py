"""Fixtures that hand out real servers: one PostgreSQL and one Redis per run, whatever the number of xdist workers.

* `postgres_url`: DSN of this worker's own database, shared by its tests.
* `engine_database`: DSN of a database for one test, that has the engine's tables and no rows; `fresh_database`: an empty one, which costs
  three times as much; `module_database`: an empty one for the tests of one module.
* `redis_url`, `redis_prefix`: the shared server, and a key prefix that no other test has. Never FLUSHALL here.
* `temporal_address`, `temporal_fleet`: the shared Temporal server, and a fleet that no other test has.
* `private_postgres`, `private_redis`: a server of the test's own that it may kill, pause, flush and restart.

`DATABASE_URL`, `REDIS_URL` and `TEMPORAL_ADDRESS` name servers to use instead of starting them; databases are then created there and dropped again.
With xdist the controller starts the servers before its first worker and tells each worker where they are.
"""

import asyncio
import itertools
import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.servers import PostgresServer, RedisServer, TemporalServer
from workflows.storage import PostgresStore

pytest_plugins = ("tests.tally",)

_numbers = itertools.count(1)


class Servers:
    """The run's shared servers; started at first use, or known from the controller. `run_id` keeps parallel runs apart."""

    def __init__(self) -> None:
        self.run_id = uuid.uuid4().hex[:8]
        self._started: list[PostgresServer | RedisServer | TemporalServer] = []
        self._postgres_url = os.environ.get("DATABASE_URL", "")
        self._redis_url = os.environ.get("REDIS_URL", "")
        self._temporal_address = os.environ.get("TEMPORAL_ADDRESS", "")
        self._template = self._told = False

    @property
    def postgres_url(self) -> str:
        """DSN of a database whose user may create databases."""
        if not self._postgres_url:
            server = PostgresServer()
            self._started.append(server)
            server.start()
            self._postgres_url = server.dsn
        return self._postgres_url

    @property
    def redis_url(self) -> str:
        """URL of the shared Redis."""
        if not self._redis_url:
            server = RedisServer()
            self._started.append(server)
            server.start()
            self._redis_url = server.url
        return self._redis_url

    @property
    def temporal_address(self) -> str:
        """Where the shared Temporal serves; its namespace is "default"."""
        if not self._temporal_address:
            server = TemporalServer()
            self._started.append(server)
            server.start()
            self._temporal_address = server.address
        return self._temporal_address

    def engine_template(self) -> str:
        """The name of a database with the engine's tables, to copy; made once for all workers."""
        name = f"threadline_{self.run_id}_template"
        if not self._template:
            with ThreadPoolExecutor(max_workers=1) as pool:
                pool.submit(asyncio.run, _make_template(self.postgres_url, name)).result()
            self._template = True
        return name

    def told(self, urls: dict[str, str]) -> None:
        """Use what the controller started."""
        self._told = True
        self.run_id, self._postgres_url, self._redis_url = urls["run_id"], urls["postgres"], urls["redis"]
        self._temporal_address = urls["temporal"]

    def tell(self) -> dict[str, str]:
        """What a worker has to know; starts the servers."""
        return {
            "run_id": self.run_id, "postgres": self.postgres_url, "redis": self.redis_url, "temporal": self.temporal_address,
        }  # fmt: skip

    def close(self) -> None:
        """Stop what was started here."""
        if os.environ.get("DATABASE_URL") and not self._told:  # a server of somebody else's keeps nothing of ours
            _execute(self.postgres_url, f'drop database if exists "threadline_{self.run_id}_template"')
        for server in self._started:
            server.close()
        self._started.clear()


_servers = pytest.StashKey[Servers]()


def pytest_configure(config: pytest.Config) -> None:
    servers = config.stash[_servers] = Servers()
    if hasattr(config, "workerinput"):
        servers.told(config.workerinput["threadline_servers"])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["threadline_servers"] = node.config.stash[_servers].tell()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_servers].close()


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Servers:
    return pytestconfig.stash[_servers]


@pytest.fixture(scope="session")
def worker_id(pytestconfig: pytest.Config) -> str:
    """This xdist worker ("gw0", "gw1" …), or "main" without xdist."""
    return str(getattr(pytestconfig, "workerinput", {}).get("workerid", "main"))


@pytest.fixture(scope="session")
def postgres_url(servers: Servers, worker_id: str) -> Iterator[str]:
    yield from _database(servers.postgres_url, f"threadline_{servers.run_id}_{worker_id}")


@pytest.fixture
def fresh_database(servers: Servers, worker_id: str) -> Iterator[str]:
    yield from _database(servers.postgres_url, f"threadline_{servers.run_id}_{worker_id}_{next(_numbers)}")


@pytest.fixture
def engine_database(servers: Servers, worker_id: str) -> Iterator[str]:
    name = f"threadline_{servers.run_id}_{worker_id}_{next(_numbers)}"
    yield from _database(servers.postgres_url, name, template=servers.engine_template())


@pytest.fixture(scope="module")
def module_database(servers: Servers, worker_id: str) -> Iterator[str]:
    yield from _database(servers.postgres_url, f"threadline_{servers.run_id}_{worker_id}_{next(_numbers)}")


@pytest.fixture(scope="session")
def redis_url(servers: Servers) -> str:
    return servers.redis_url


@pytest.fixture
def redis_prefix(servers: Servers, worker_id: str) -> str:
    return f"test-{servers.run_id}-{worker_id}-{next(_numbers)}"


@pytest.fixture(scope="session")
def temporal_address(servers: Servers) -> str:
    return servers.temporal_address


@pytest.fixture
def temporal_fleet(servers: Servers, worker_id: str) -> str:
    return f"test-{servers.run_id}-{worker_id}-{next(_numbers)}"


@pytest.fixture
def private_postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def private_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def _database(server_url: str, name: str, *, template: str = "template1") -> Iterator[str]:
    _execute(server_url, f'create database "{name}" template "{template}"')
    yield _named(server_url, name)
    _execute(server_url, f'drop database if exists "{name}" with (force)')


def _named(server_url: str, name: str) -> str:
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))


async def _make_template(server_url: str, name: str) -> None:
    connection = await asyncpg.connect(server_url)
    try:
        await connection.execute("select pg_advisory_lock(hashtext($1))".replace("$1", f"'{name}'"))
        if not await connection.fetchval("select exists (select from pg_database where datname = $1)", name):
            half = f"{name}_half"
            await connection.execute(f'drop database if exists "{half}" with (force)')
            await connection.execute(f'create database "{half}"')
            store = PostgresStore(_named(server_url, half), pool_size=1)
            await store.open()
            await store.close()
            await connection.execute(f'alter database "{half}" rename to "{name}"')  # from now on it is whole
    finally:
        await connection.close()


def _execute(dsn: str, statement: str) -> None:
    """Run one statement. In a thread of its own, since asyncio.run would take pytest-asyncio's event loop away from this one."""

    async def execute() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            for _ in range(30):
                try:
                    await connection.execute(statement)
                    return
                except asyncpg.ObjectInUseError:  # the server's own vacuum is in the template
                    await asyncio.sleep(0.2)
            await connection.execute(statement)
        finally:
            await connection.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(asyncio.run, execute()).result()
