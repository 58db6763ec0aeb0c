"""The engine's bench: a turn, the same without an agent, a long turn, and beside each the bare minimum, on one PostgreSQL with fsync."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from tests.bench.agent_turn import AgentTurn
from tests.bench.engine_turn import EngineTurn
from tests.bench.minimum import Minimum
from tests.bench.profiling import PREFIX, profile
from tests.bench.report import Report, Row
from tests.bench.rounds import Databases, Figures, Load, measure
from tests.bench.subject import Shape, Subject
from tests.servers import PostgresServer, RedisServer
from workflows.pubsub import MemoryPubSub, PubSub, RedisPubSub

PRODUCTION = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",  # no checkpoint within a round: it would charge its page images to whoever runs then
    "checkpoint_timeout": "1h",
}
ROW_BYTES = 512
"""What the minimum writes per step: about what a turn's step has to keep, its record and its share of the messages."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How long the bench runs."""

    rounds: int
    short: Load
    long: Load
    iterations: int = 100


FULL = Scale(rounds=5, short=Load(one_by_one=50, clients=32, each=8, warm_up=5), long=Load(one_by_one=3, warm_up=1))
QUICK = Scale(rounds=1, short=Load(one_by_one=5, clients=4, each=2), long=Load(one_by_one=1, warm_up=0))
Progress = Callable[[str], None]


async def bench(scale: Scale, *, progress: Progress = lambda _: None) -> Report:
    """Start the servers, run the rounds, and report. Raises ServerStartError."""
    with PostgresServer(**PRODUCTION) as postgres, RedisServer(appendfsync="everysec") as redis:
        databases = Databases(postgres.dsn)
        subjects = _subjects(redis.url, scale.iterations)
        rounds: dict[str, list[Figures]] = {subject.name: [] for subject in subjects}
        for number in range(scale.rounds):
            for subject in subjects:
                progress(f"round {number + 1} of {scale.rounds}: {subject.name}")
                load = scale.short if subject.shape.short else scale.long
                rounds[subject.name].append(await measure(subject, load, await databases.of(subject)))
    return Report([_row(subject, rounds[subject.name]) for subject in subjects], setting=_setting(scale))


async def profiles(scale: Scale, *, turns: int | None = None) -> AsyncIterator[str]:
    """A text per subject: where client CPU goes, and its statements. `turns`: by default 200 short ones, four long ones."""
    with PostgresServer(**PRODUCTION, log_line_prefix=PREFIX) as postgres, RedisServer(appendfsync="everysec") as redis:
        databases = Databases(postgres.dsn)
        for subject in _subjects(redis.url, scale.iterations):
            if not isinstance(subject, Minimum):
                yield await profile(subject, turns or (200 if subject.shape.short else 4), postgres, databases)


def _subjects(redis_url: str, iterations: int) -> Sequence[Subject]:
    def memory() -> PubSub:
        return MemoryPubSub(quiet=True)

    def redis() -> PubSub:
        return RedisPubSub(redis_url, "bench")

    turn = Shape(rounds=1, calls=3)
    found: list[Subject] = [
        least(turn),
        AgentTurn("memory bus", memory, turn),
        AgentTurn("Redis", redis, turn),
        EngineTurn(turn),
    ]
    for shape in (Shape(rounds=iterations, calls=1), Shape(rounds=iterations // 2, calls=1)):
        found += [least(shape), AgentTurn("memory bus", memory, shape), EngineTurn(shape)]
    return found


def least(shape: Shape) -> Minimum:
    """The minimum beside a shape."""
    return Minimum(shape, row_bytes=ROW_BYTES)


def _row(subject: Subject, rounds: Sequence[Figures]) -> Row:
    against = None if isinstance(subject, Minimum) else least(subject.shape).name
    return Row(subject.kind, subject.shape, subject.name, against, tuple(rounds))


def _setting(scale: Scale) -> str:
    short = scale.short
    return (
        f"PostgreSQL with fsync, full_page_writes and synchronous_commit on; {scale.rounds} rounds, medians; scripted model, spans and validation"
        f" included. One client process holds worker, bus and callers.\np50 and p95 of turns one after another; turns/s at concurrency {short.clients};"
        f" per turn: commits that wrote, WAL bytes, stored bytes (heap, TOAST, indexes), bytes of live rows, client CPU. Minimum: rows of {ROW_BYTES} bytes."
    )
