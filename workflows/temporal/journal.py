"""What a run has recorded and been sent. It lives in the workflow's memory: Temporal makes it anew from the run's history."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from workflows.storage.base import Record, Status
from workflows.temporal.messages import RecordMessage, SignalMessage, Taken

PAGE_CHARS = 500_000
"""About how much of the records one answer holds; Temporal takes 2 MB."""


class Journal:
    """The records of one run, in the order they were made. `now()` is the run's clock."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.records: dict[str, Record] = {}

    def add(
        self,
        path: str,
        status: Status,
        output: bytes | None = None,
        *,
        error: dict[str, Any] | None = None,
        started_at: datetime | None = None,
    ) -> Record:
        """Record something at `path`. What is there already stays."""
        if path not in self.records:
            self.records[path] = Record(
                path, status, output, error, started_at, seq=len(self.records) + 1, finished_at=self._now()
            )
        return self.records[path]

    def note(self, path: str, name: str, value: Any) -> Record:
        """Note a fact of the step at `path`; the first value under a name stays."""
        return self.add(f"{path}!{name}", Status.NOTE, to_json(value))

    def notes(self, path: str) -> dict[str, Any]:
        """The notes of the step at `path`, by name."""
        start = f"{path}!"
        return {
            each.path.removeprefix(start): each.output.decode() if each.output else "null"
            for each in self.records.values()
            if each.status is Status.NOTE and each.path.startswith(start)
        }

    def page(self, after: int) -> list[RecordMessage]:
        """The records after number `after`, as many as fit into an answer."""
        found: list[RecordMessage] = []
        chars = 0
        for each in list(self.records.values())[after:]:
            chars += len(each.output or b"") + len(str(each.error or "")) + 300
            if found and chars > PAGE_CHARS:
                break
            found.append(RecordMessage.of(each))
        return found


class Mailbox:
    """The signals of one run. One that is taken is some step's or wait's; one that is used is nobody's any more."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._signals: list[Taken] = []
        self._keys: dict[str, Taken] = {}
        self._taken: set[int] = set()
        self._used: set[int] = set()

    def accept(self, message: SignalMessage) -> int | None:
        """Put a signal in; its number, or None if one of its key was accepted before."""
        if message.dedup_key in self._keys:
            return None
        signal = Taken(seq=len(self._signals) + 1, created_at=self._now(), **message.model_dump())
        self._signals.append(signal)
        self._keys[message.dedup_key] = signal
        return signal.seq

    def known(self, dedup_key: str) -> Taken | None:
        """The signal that was accepted under a key, used or not."""
        return self._keys.get(dedup_key)

    def unused(self) -> list[Taken]:
        """What no step has used, in order."""
        return [each for each in self._signals if each.seq not in self._used]

    def first(self, wanted: Callable[[Taken], bool]) -> Taken | None:
        """The first signal that is wanted and nobody's yet."""
        return next((each for each in self._signals if self._free(each) and wanted(each)), None)

    def take(self, name: str | None) -> list[Taken]:
        """All of one name (None: all but the engine's own) that are nobody's yet. They are the taker's from now on."""
        found = [each for each in self._signals if self._free(each) and _meant(each, name)]
        self._taken.update(each.seq for each in found)
        return found

    def hold(self, signal: Taken) -> None:
        """Make a signal the asker's."""
        self._taken.add(signal.seq)

    def give_back(self, numbers: Iterable[int]) -> None:
        """Signals that a failed try had taken are nobody's again."""
        self._taken.difference_update(numbers)

    def use(self, numbers: Iterable[int]) -> None:
        """They were used: nobody gets them any more."""
        self._used.update(numbers)

    def _free(self, signal: Taken) -> bool:
        return signal.seq not in self._taken and signal.seq not in self._used


def _meant(signal: Taken, name: str | None) -> bool:
    return signal.name == name if name is not None else not signal.name.startswith("$")
