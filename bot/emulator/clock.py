"""The workspace's clock: real time plus an offset that tests move."""

import asyncio
import contextlib
import time
from collections.abc import Callable


class Clock:
    """Time as the local Slack sees it, in seconds since the epoch. Retries and expiries wait on it, never on real time."""

    def __init__(self, real_time: Callable[[], float] = time.time) -> None:
        self._real_time = real_time
        self._offset_s = 0.0
        self._moved = asyncio.Event()
        self._last_us = 0

    @property
    def offset_s(self) -> float:
        return self._offset_s

    def now(self) -> float:
        return self._real_time() + self._offset_s

    def advance(self, seconds: float) -> None:
        """Move time forward by `seconds` and wake whoever waits."""
        self._offset_s += seconds
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def sleep_until(self, deadline_s: float) -> None:
        """Return when the clock shows `deadline_s`, by waiting or because it was moved."""
        while (left_s := deadline_s - self.now()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), left_s)

    async def sleep(self, seconds: float) -> None:
        await self.sleep_until(self.now() + seconds)

    def timestamp(self) -> str:
        """A message timestamp: unique and growing, also when two are taken in one microsecond."""
        self._last_us = max(int(self.now() * 1_000_000), self._last_us + 1)
        seconds, micros = divmod(self._last_us, 1_000_000)
        return f"{seconds}.{micros:06d}"
