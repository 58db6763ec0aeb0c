"""Waiting for a described condition, never for a fixed time."""

import asyncio
from collections.abc import Awaitable, Callable

from workflows.pubsub import Event

DEADLINE_S = 15.0


async def until(
    condition: Callable[[], bool | Awaitable[bool]], description: str = "", *, deadline_s: float = DEADLINE_S
) -> None:
    """Return when `condition` holds; fail with `description` after `deadline_s`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline_s
    while True:
        holds = condition()
        if not isinstance(holds, bool):
            holds = await holds
        if holds:
            return
        assert loop.time() < end, f"did not happen within {deadline_s} s: {description or condition}"
        await asyncio.sleep(0.005)


class Seen:
    """A handler that keeps what it saw. `fail`: how many deliveries raise first; `gate`: each delivery waits for it."""

    def __init__(self, *, fail: int = 0, gate: asyncio.Event | None = None) -> None:
        self.events: list[Event] = []
        self.started = 0
        self.gate = gate
        self._fail = fail

    async def __call__(self, event: Event) -> None:
        self.started += 1
        if self.gate is not None:
            await self.gate.wait()
        self.events.append(event)
        if len(self.events) <= self._fail:
            raise RuntimeError(f"failure {len(self.events)}")

    @property
    def types(self) -> list[str]:
        """The types of what was seen, in order."""
        return [event.type for event in self.events]

    async def reach(self, count: int, *, deadline_s: float = DEADLINE_S) -> None:
        """Return when `count` deliveries were seen."""
        await until(lambda: len(self.events) >= count, f"{count} events, saw {self.types}", deadline_s=deadline_s)

    async def start(self, count: int) -> None:
        """Return when `count` deliveries have begun."""
        await until(lambda: self.started >= count, f"{count} deliveries begun, not {self.started}")
