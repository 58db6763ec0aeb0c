"""Where a turn's client CPU goes, by sampling, and what it asks of the server, by the server's own log."""

import re
import signal
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import asyncpg

from tests.bench.rounds import Databases
from tests.bench.subject import Session, Subject
from tests.servers import PostgresServer

INTERVAL_S = 0.001
OURS = ("workflows", "agent", "bot")
LOGGING = {"log_min_duration_statement": "0", "log_parameter_max_length": "0"}
PREFIX = "@%d "
ENTRY = re.compile(
    r"^@(\S*) LOG:  duration: ([\d.]+) ms  (parse|bind|execute|statement)[^:]*: (.*?)(?=^@|\Z)",
    re.MULTILINE | re.DOTALL,
)
WRITE = re.compile(r"\b(insert into|delete from|update) \"?(\w+)\"? ?(?:r |s )?(?=\(|set |where |$|select|values)")


class Sampler:
    """Looks at the stack each time this process has used so much CPU. C code counts for the Python function that called it."""

    def __init__(self) -> None:
        self.total = 0
        self.own: Counter[str] = Counter()
        self.within: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)

    def _look(self, number: int, frame: FrameType | None) -> None:
        self.total += 1
        seen: set[str] = set()
        while frame is not None:
            name = _name(frame)
            if not seen:
                self.own[name] += 1
            seen.add(name)
            frame = frame.f_back
        self.within.update(seen)

    def lines(self, *, most: int = 25) -> list[str]:
        """By package, by function alone, and by function of ours with all it calls, in per cent of the samples."""
        packages: Counter[str] = Counter()
        for name, count in self.own.items():
            packages[name.split(".")[0]] += count
        ours = Counter({name: count for name, count in self.within.items() if name.split(".")[0] in OURS})
        parts = (
            ("by package", packages, 12),
            ("by function, alone", self.own, most),
            ("of ours, with what they call", ours, most),
        )
        return [line for title, counts, top in parts for line in self._part(title, counts, top)]

    def _part(self, title: str, counts: "Counter[str]", top: int) -> list[str]:
        return [
            f"  {title}:",
            *(f"    {100 * count / max(self.total, 1):5.1f} %  {name}" for name, count in counts.most_common(top)),
        ]


def _name(frame: FrameType) -> str:
    module = str(frame.f_globals.get("__name__", "?"))
    return f"{module}.{frame.f_code.co_qualname}"


async def profile(subject: Subject, turns: int, server: PostgresServer, databases: Databases) -> str:
    """Run turns under the sampler, then some more with the server's log on. `server` logs with the line prefix PREFIX."""
    dsn = await databases.of(subject)
    async with subject.open(dsn, clients=1) as session:
        await _turns(session, turns)
        with Sampler() as sampler:
            await _turns(session, turns)
    statements = await _statements(subject, turns, server, dsn)
    return "\n".join([f"{subject.name}, {turns} turns: client CPU", *sampler.lines(), "  statements:", *statements, ""])


async def _turns(session: Session, turns: int) -> None:
    for _ in range(turns):
        await session.turn()
    await session.settle()


async def _statements(subject: Subject, turns: int, server: PostgresServer, dsn: str) -> list[str]:
    log = server.directory / "log"
    async with subject.open(dsn, clients=1) as session:
        await _turns(session, 2)
        await _set(server.dsn, LOGGING)
        begin = log.stat().st_size
        await _turns(session, turns)
        await _set(server.dsn, dict.fromkeys(LOGGING, "default"))
    return _counted(_tail(log, begin), dsn.rsplit("/", 1)[1], turns)


async def _set(dsn: str, settings: dict[str, str]) -> None:
    connection = await asyncpg.connect(dsn)
    for name, value in settings.items():
        await connection.execute(f"alter system set {name} = {value}")
    await connection.execute("select pg_reload_conf()")
    await connection.close()
    connection = await asyncpg.connect(dsn)  # a session begun after it sees it, and so do those that begin a statement
    await connection.close()


def _tail(log: Path, begin: int) -> str:
    with log.open(errors="replace") as file:
        file.seek(begin)
        return file.read()


def _counted(log: str, database: str, turns: int) -> list[str]:
    """Per turn: how often, and the mean time in the server without the way there; the most expensive first."""
    spent: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for name, duration, phase, text in ENTRY.findall(log):
        if name == database:
            statement = _short(" ".join(text.split()))
            spent[statement] += float(duration)
            counts[statement] += phase in ("execute", "statement")
    total = f"    {sum(counts.values()) / turns:7.1f} a turn  {sum(spent.values()) / turns:7.3f} ms a turn  in all"
    by_cost = sorted(spent, key=lambda each: -spent[each])[:30]
    return [total, *(_line(each, counts[each], spent[each], turns) for each in by_cost)]


def _short(statement: str) -> str:
    """What it writes, each table once, or how it begins."""
    writes = dict.fromkeys(f"{verb.split()[0]} {table}" for verb, table in WRITE.findall(statement))
    return ", ".join(writes) or statement[:120]


def _line(statement: str, count: int, spent: float, turns: int) -> str:
    return f"    {count / turns:7.1f} a turn  {spent / max(count, 1):7.3f} ms each    {statement}"
