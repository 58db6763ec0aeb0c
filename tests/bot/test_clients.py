"""One pool of connections for all calls to Slack, against a server of a few lines that counts them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import pytest

from bot.clients import Clients, Connections, Credentials

ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: b=of-one-workspace\r\nContent-Length: 11\r\n\r\n"
    b'{"ok":true}'
)
ONE, TWO = Credentials("T1", "xoxb-1", "U1", "B1"), Credentials("T2", "xoxb-2", "U2", "B2")


@dataclass
class Server:
    """`patience`: requests that a connection answers; it is closed, without a word, when the next one has arrived."""

    patience: int = 1_000
    mute: bool = False
    connections: int = 0
    requests: list[str] = field(default_factory=list)
    headers: set[str] = field(default_factory=set)
    ends: list[asyncio.Event] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        end = asyncio.Event()
        self.ends.append(end)
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            end.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answered = 0
        while line := await reader.readline():
            self.requests.append(line.split()[0].decode())
            length = 0
            while (header := await reader.readline()) not in (b"\r\n", b""):
                self.headers.add(header.split(b":")[0].decode().lower())
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            await reader.readexactly(length)
            if answered == self.patience:
                break
            if not self.mute:
                answered += 1
                writer.write(ANSWER)
                await writer.drain()


@asynccontextmanager
async def calling(server: Server, *, timeout_s: float = 5) -> AsyncIterator[Clients]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    connections = Connections(timeout_s=timeout_s)
    try:
        yield Clients(NoSource(), api_url=f"http://localhost:{port}/api/", connections=connections)
    finally:
        await connections.close()
        listening.close()
        for each in server.ends:
            await each.wait()


class NoSource:
    """Knows nobody."""

    async def credentials(self, tenant: str) -> Credentials | None:
        return None

    async def installed(self, tenant: str) -> bool:
        return False

    def refresh(self, tenant: str) -> None:
        return None


async def test_calls_of_all_workspaces_share_connections_and_nothing_else() -> None:
    server = Server()
    async with calling(server) as clients:
        for _ in range(5):
            for whose in (ONE, TWO):
                await clients.client(whose).chat_postMessage(channel="C1", text="a word")
        assert (len(server.requests), server.connections) == (10, 1)
        assert "authorization" in server.headers
        assert "cookie" not in server.headers
        assert clients.client(ONE).token != clients.client(TWO).token


async def test_a_server_that_does_not_answer_is_given_up_after_the_time_out() -> None:
    async with calling(Server(mute=True), timeout_s=0.2) as clients:
        with pytest.raises(TimeoutError):
            await clients.client(ONE).chat_postMessage(channel="C1", text="a word")


async def test_a_question_on_a_connection_that_was_closed_meanwhile_is_asked_again() -> None:
    server = Server(patience=1)
    async with calling(server) as clients:
        for _ in range(3):
            assert (await clients.client(ONE).users_info(user="U1"))["ok"]
        assert server.connections > 1


async def test_a_post_on_such_a_connection_is_not_sent_twice() -> None:
    """Whether it was done is for the delivery to find out."""
    server = Server(patience=1)
    async with calling(server) as clients:
        await clients.client(ONE).chat_postMessage(channel="C1", text="a word")
        with pytest.raises(aiohttp.ClientError):
            await clients.client(ONE).chat_postMessage(channel="C1", text="another")
        assert server.requests == ["POST", "POST"]
