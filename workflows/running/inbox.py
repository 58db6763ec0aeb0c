"""The inbox of one claimed run: which signals are there, and which of its arms has taken which."""

from collections.abc import Callable, Iterable

from workflows.running.recorder import Recorder
from workflows.storage.base import Signal, Store


class Inbox:
    """Looks into storage only when the recorder has learned of signals that were not seen. `known` are those the claim began with."""

    def __init__(self, store: Store, run_id: str, recorder: Recorder, known: Iterable[Signal] = ()) -> None:
        self._store = store
        self._run_id = run_id
        self._recorder = recorder
        self._signals = list(known)
        self._looked = max((each.seq for each in self._signals), default=0)
        self._taken: set[int] = set()

    @property
    def seen(self) -> int:
        """How far into the inbox this claim has looked."""
        return self._looked or self._recorder.inbox_seq

    async def take_all(self, name: str | None) -> list[Signal]:
        """The pending signals of `name` (None: all but the engine's own) that no other arm has taken, in order."""
        await self._look()
        meant = [each for each in self._pending() if (each.name == name if name else not each.name.startswith("$"))]
        self._taken.update(each.seq for each in meant)
        return meant

    async def take(self, wanted: Callable[[Signal], bool]) -> tuple[Signal | None, int]:
        """The first pending signal that is `wanted`, or None; and how far this look went."""
        await self._look()
        found = next((each for each in self._pending() if wanted(each)), None)
        if found is not None:
            self._taken.add(found.seq)
        return found, self._looked

    def give_back(self, numbers: Iterable[int]) -> None:
        """Signals that a failed try had taken are pending again."""
        self._taken.difference_update(numbers)

    async def holds(self, name: str) -> bool:
        """Whether a signal of this name is there, taken or not."""
        await self._look()
        return any(each.name == name for each in self._signals)

    async def unread(self) -> bool:
        """Whether signals are left that no step has used; only a look at memory when none ever came."""
        await self._look()
        return any(not each.name.startswith("$") for each in self._pending())

    def rewind(self) -> None:
        """Signals of steps that did not finish are pending again; the next look asks storage."""
        self._looked = 0
        self._taken.clear()

    def _pending(self) -> list[Signal]:
        return [each for each in self._signals if each.seq not in self._taken]

    async def _look(self) -> None:
        if self._recorder.inbox_seq > self._looked:
            seen = self._recorder.inbox_seq
            self._signals = await self._store.inbox(self._run_id)
            self._looked = max(seen, *(each.seq for each in self._signals), 0)
