"""The points a process passes, counted."""

import asyncio
from collections.abc import Callable

QUIET = frozenset(
    {
        "beat",
        "cancelled",
        "now",
        "open_span_owners",
        "reap",
        "register",
        "release",
        "schedules",
        "unregister",
        "waiting_suspect",
    }
)
"""Operations a worker asks for every second whatever it does; dying around them is dying while idle."""


class Points:
    """Counts what is passed, and calls `strike` at the point numbered `at` (0: never), with its name. If that returns, the process goes no
    further. `tell` hears of each point before that.
    """

    def __init__(self, at: int, strike: Callable[[str], None], *, tell: Callable[[str], None] = lambda _: None) -> None:
        self._at = at
        self._strike = strike
        self._tell = tell
        self.passed: list[str] = []

    async def passing(self, moment: str, about: str = "") -> None:
        """Pass a point."""
        operation = moment.removeprefix("before ").removeprefix("after ")
        if operation in QUIET or moment == "before claim":
            return
        self.passed.append(moment)
        self._tell(moment)
        if len(self.passed) == self._at:
            self._strike(moment)
            await asyncio.Event().wait()
