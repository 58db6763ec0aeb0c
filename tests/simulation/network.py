"""What lies between a process and its storage: every operation takes time, and a request or a reply may be lost."""

import asyncio
import inspect
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.simulation.loop import Process
from workflows.pubsub import Event, Policy, PubSubUnavailableError
from workflows.pubsub.bus import Bus
from workflows.pubsub.memory_log import MemoryLog
from workflows.storage import StoreUnavailableError


@dataclass(slots=True)
class Weather:
    """How bad it is, as chances from 0.0 to 1.0. `slow_s`: what a slow message takes at most, in virtual seconds."""

    lost_request: float = 0.0
    lost_reply: float = 0.0
    slow: float = 0.0
    slow_s: float = 2.0
    lost_hint: float = 0.0

    def calm(self) -> None:
        """From now on nothing is lost, and nothing is slow."""
        self.lost_request = self.lost_reply = self.slow = self.lost_hint = 0.0


class Trace:
    """The last things that happened, for whoever has to understand a failing seed. `digest` is the same for the same history."""

    def __init__(self, *, keep: int = 200) -> None:
        self._lines: deque[tuple[float, str, str, Any]] = deque(maxlen=keep)
        self.digest = 0

    def add(self, at: float, who: object, what: str, detail: Any = None) -> None:
        """Note that at this virtual time somebody did this."""
        self.digest = hash((self.digest, at, str(who), what))
        self._lines.append((at, str(who), what, detail))

    def __str__(self) -> str:
        return "\n".join(f"{at:9.3f}  {who:<10} {what:<18} {_short(detail)}" for at, who, what, detail in self._lines)


Passing = Callable[[str, str], Awaitable[None]]
"""Awaited with a moment ("before step", "after step") and the first thing the operation was asked about, such as a run's id."""


async def pass_by(moment: str, about: str) -> None:
    """Nothing happens there."""


class Link:
    """A store as one process sees it. Operations are those of the store behind it, each at one moment between request and reply."""

    def __init__(
        self, store: Any, process: Process, weather: Weather, rng: random.Random, trace: Trace, passing: Passing
    ) -> None:
        self._store = store
        self._process = process
        self._weather = weather
        self._rng = rng
        self._trace = trace
        self.passing = passing

    async def open(self) -> None:
        """The store behind it is open."""

    async def close(self) -> None:
        """The store behind it stays open for the others."""

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._store, name)
        return self._through(name, operation) if inspect.iscoroutinefunction(operation) else operation

    def _through(self, name: str, operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def asked(*arguments: Any, **options: Any) -> Any:
            weather = self._weather
            about = str(arguments[0]) if arguments else ""
            await self.passing(f"before {name}", about)
            await self._travel()
            if self._rng.random() < weather.lost_request:
                self._say(name, "request lost")
                raise StoreUnavailableError("the request was lost")
            result = await operation(*arguments, **options)
            self._say(name, (arguments, result))
            if result != []:  # a claim of nothing and an empty inbox change nothing
                await self.passing(f"after {name}", about)
            await self._travel()
            if self._rng.random() < weather.lost_reply:
                self._say(name, "reply lost")
                raise StoreUnavailableError("the reply was lost")
            return result

        return asked

    async def _travel(self) -> None:
        slow = self._rng.random() < self._weather.slow
        await asyncio.sleep(
            self._rng.uniform(0, self._weather.slow_s) if slow else self._rng.choice((0, 0, 0.001, 0.004))
        )

    def _say(self, name: str, detail: Any) -> None:
        self._trace.add(asyncio.get_running_loop().time(), self._process, name, detail)


class LossyBus(Bus):
    """The bus as one process sees it: hints may be lost, and closing it leaves the log to the others."""

    def __init__(
        self,
        log: MemoryLog,
        policy: Policy,
        process: Process,
        weather: Weather,
        rng: random.Random,
        passing: Passing,
    ) -> None:
        super().__init__(log, policy=policy, consumer=process.name)
        self._weather = weather
        self._rng = rng
        self._passing = passing

    async def publish(self, topic: str, event: Event) -> str:
        await self._passing("before publish", topic)
        if self._rng.random() < self._weather.lost_hint:
            raise PubSubUnavailableError("the hint was lost")
        offset = await super().publish(topic, event)
        await self._passing("after publish", topic)
        return offset

    async def close(self) -> None:
        for subscriber in tuple(self._subscribers):
            await self.unsubscribe(subscriber)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:297]}..."
