"""What changed, numbered, for pages that watch."""

import asyncio
import contextlib
from collections import deque

from bot.emulator.ids import new_secret
from bot.emulator.workspace import Json


class Updates:
    """The last thousand changes. A page that fell further behind is told to load everything again."""

    def __init__(self, size: int = 1000) -> None:
        self.boot = new_secret("boot-")
        self._entries: deque[Json] = deque(maxlen=size)
        self._last = 0
        self._arrived = asyncio.Event()
        self.closed = False

    @property
    def last(self) -> int:
        return self._last

    def publish(self, kind: str, **facts: object) -> None:
        """Record one change of `kind` (message, deleted, status, session, delivery, view, channel,
        workspace, clock, config).
        """
        self._last += 1
        self._entries.append({"n": self._last, "kind": kind, **facts})
        self._wake()

    def close(self) -> None:
        """Let every waiting page go, so that the server can stop."""
        self.closed = True
        self._wake()

    def after(self, number: int) -> list[Json]:
        """The changes since `number`; one of kind `reset` when some of them are no longer kept."""
        oldest = self._entries[0]["n"] if self._entries else self._last + 1
        if number > self._last or number < oldest - 1:
            return [{"n": self._last, "kind": "reset"}]
        return [entry for entry in self._entries if entry["n"] > number]

    async def wait(self, number: int, timeout_s: float) -> list[Json]:
        """As `after`, waiting up to `timeout_s` real seconds for the first change."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self.after(number) and not self.closed:
                    await self._arrived.wait()
        return self.after(number)

    async def changed(self, number: int) -> None:
        """Return when there is a change after `number`, kept or not."""
        while self._last <= number:
            await self._arrived.wait()

    def _wake(self) -> None:
        arrived, self._arrived = self._arrived, asyncio.Event()
        arrived.set()
