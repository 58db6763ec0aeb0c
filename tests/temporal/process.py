"""A worker process of its own that works one case in Temporal and may kill itself at an exact point."""

import asyncio
import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from tests.crashes.pointed import PointedLedger
from tests.crashes.points import Points
from tests.flows import FileLedger, catalogue
from workflows import Engine
from workflows.pubsub import MemoryPubSub
from workflows.storage import MemoryStore
from workflows.temporal import TemporalExecution

HEARTBEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is to do. It dies at point `at` of those around what it does to the world, counted from 1 (0: never)."""

    address: str
    fleet: str
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
    case = catalogue(PointedLedger(FileLedger(orders.ledger), points))[orders.case]
    async with Engine(**engine_options(orders.address, orders.fleet), workflows=case.flows) as engine:
        await engine.serve()


def engine_options(address: str, fleet: str, *, worker: bool = True) -> dict[str, Any]:
    """Of an engine whose runs are in Temporal, and that keeps nothing else."""
    execution = TemporalExecution(address, fleet=fleet, worker=worker, heartbeat_s=HEARTBEAT_S)
    return {"execution": execution, "store": MemoryStore(), "pubsub": MemoryPubSub(quiet=True)}


def _kill(moment: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _line(path: Path, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{text}\n".encode())
    finally:
        os.close(file)
