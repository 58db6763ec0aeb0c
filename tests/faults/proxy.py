"""A loopback proxy before a server that does to its connections what networks do, by a seed."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

CHUNK = 65_536


class Fault(StrEnum):
    """What happens to one message."""

    REQUEST_LOST = "request_lost"
    """It never reaches the server; the connection breaks."""
    REPLY_LOST = "reply_lost"
    """The server has done what was asked; its reply never comes, and the connection breaks."""
    REQUEST_SWALLOWED = "request_swallowed"
    """It never reaches the server, and nobody is told: the connection stays open."""
    CUT = "cut"
    """Half of it arrives, and the connection breaks."""
    DELAYED = "delayed"
    """It arrives late."""


@dataclass(slots=True)
class Weather:
    """The chance of each fault, per message, and how long a delayed one takes at most, in seconds. `done` counts what was done."""

    chances: dict[Fault, float] = field(default_factory=dict)
    delay_s: float = 0.2
    done: Counter[Fault] = field(default_factory=Counter)

    def calm(self) -> None:
        """No more faults from now on."""
        self.chances = {}

    def strikes(self, rng: random.Random, *among: Fault) -> Fault | None:
        """Which of these faults the next message meets, if any."""
        for fault in among:
            if rng.random() < self.chances.get(fault, 0.0):
                self.done[fault] += 1
                return fault
        return None


class Proxy:
    """Stands before the server of `url`; `url` of the proxy is the same with its own port. Use as an async context manager."""

    def __init__(self, url: str, *, seed: int, weather: Weather) -> None:
        self._parts = urlsplit(url)
        self._rng = random.Random(seed)
        self._weather = weather
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user = f"{self._parts.username}@" if self._parts.username else ""
        return urlunsplit(self._parts._replace(netloc=f"{user}127.0.0.1:{port}"))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            return  # the server is away, or the proxy is closing: either way the client sees its connection end
        finally:
            writer.close()
            self._connections.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        pumps = [
            asyncio.create_task(
                self._pump(reader, back, (Fault.REQUEST_LOST, Fault.REQUEST_SWALLOWED, Fault.CUT, Fault.DELAYED))
            ),
            asyncio.create_task(self._pump(there, writer, (Fault.REPLY_LOST, Fault.CUT, Fault.DELAYED))),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            back.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, faults: tuple[Fault, ...]) -> None:
        """Carry messages one way until one is lost or a side hangs up."""
        while data := await source.read(CHUNK):
            match self._weather.strikes(self._rng, *faults):
                case Fault.REQUEST_LOST | Fault.REPLY_LOST:
                    return
                case Fault.REQUEST_SWALLOWED:
                    continue
                case Fault.CUT:
                    sink.write(data[: len(data) // 2])
                    await sink.drain()
                    return
                case Fault.DELAYED:
                    await asyncio.sleep(self._rng.uniform(0, self._weather.delay_s))
            sink.write(data)
            await sink.drain()
