"""A worker process of its own that works one case and may kill itself at an exact point. It is forked from a server that has imported this
module, so that it begins within milliseconds.
"""

import asyncio
import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from tests.crashes.pointed import Pointed, PointedLedger
from tests.crashes.points import Points
from tests.flows import FileLedger, catalogue
from workflows import Engine
from workflows.pubsub import MemoryPubSub
from workflows.storage import PostgresStore


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is to do. It dies at point `at`, counted from 1 (0: never); `trace` gets a line for each point before it is passed."""

    dsn: str
    case: str
    ledger: Path
    trace: Path
    at: int = 0


def work(orders: Orders) -> None:
    """Work until killed."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    asyncio.run(_work(orders))


async def _work(orders: Orders) -> None:
    points = Points(orders.at, _kill, tell=lambda moment: _line(orders.trace, moment))
    ledger = PointedLedger(FileLedger(orders.ledger), points)
    case = catalogue(ledger)[orders.case]
    store: Any = Pointed(PostgresStore(orders.dsn, pool_size=3), points)
    bus: Any = Pointed(MemoryPubSub(quiet=True), points)
    async with Engine(store=store, pubsub=bus, workflows=case.flows, poll_s=0.05, lease_s=2) as engine:
        await engine.serve()


def _kill(moment: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _line(path: Path, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{text}\n".encode())
    finally:
        os.close(file)
