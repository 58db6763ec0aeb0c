"""The world outside: it remembers what was done to it, whatever became of whoever did it."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from workflows import StepContext


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing done: by which step of which run, with which idempotency key."""

    what: str
    run_id: str
    path: str
    key: str


class Ledger(Protocol):
    """Steps of the test workflows write into it as they would call a service."""

    async def did(self, what: str, ctx: StepContext) -> None:
        """It is done. Whether the caller hears of it is another matter."""
        ...

    def entries(self) -> list[Entry]:
        """Everything done so far, in order."""
        ...


def entry(what: str, ctx: StepContext) -> Entry:
    """What a step does under its context."""
    return Entry(what, ctx.run_id, ctx.path, ctx.idempotency_key)


def found(ledger: Ledger, key: str) -> bool:
    """Whether something was done under this key: what a `reconcile` asks the service."""
    return any(each.key == key for each in ledger.entries())


def done(entries: Iterable[Entry]) -> Counter[str]:
    """How often each thing was done; what was repeated under its key counts once, as a service with idempotency keys counts."""
    return Counter(what for what, _ in {(each.what, each.key) for each in entries})


class MemoryLedger:
    """In this process."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    async def did(self, what: str, ctx: StepContext) -> None:
        self._entries.append(entry(what, ctx))

    def entries(self) -> list[Entry]:
        return list(self._entries)


class FileLedger:
    """In a file that several processes append to. A line is written whole, also by a process that is killed right after."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def did(self, what: str, ctx: StepContext) -> None:
        line = json.dumps(asdict(entry(what, ctx))) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def entries(self) -> list[Entry]:
        return (
            [Entry(**json.loads(line)) for line in self._path.read_text().splitlines()] if self._path.exists() else []
        )
