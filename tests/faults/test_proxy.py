"""The proxy does to a connection what it is told to, and nothing else."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.faults.proxy import Fault, Proxy, Weather


class Echo:
    """A server that answers each line with itself and keeps what it got."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            self.got.append(data)
            writer.write(b"re: " + data)
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    echo.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    yield echo
    server.close()


async def ask(url: str, text: bytes, *, timeout_s: float = 5.0) -> bytes:
    """What comes back before the connection ends or nothing more comes."""
    port = int(url.rsplit(":", 1)[1].split("/", maxsplit=1)[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    try:
        async with asyncio.timeout(timeout_s):
            return await reader.read(1000)
    finally:
        writer.close()


async def test_in_calm_weather_it_carries_everything(echo: Echo) -> None:
    async with Proxy(echo.url, seed=1, weather=Weather()) as proxy:
        assert proxy.url.startswith("redis://127.0.0.1:")
        assert proxy.url.endswith("/0")
        assert await ask(proxy.url, b"hello") == b"re: hello"
        assert await ask(proxy.url, b"x" * 900) == (b"re: " + b"x" * 900)


@pytest.mark.parametrize(
    ("fault", "got", "answered"),
    [
        (Fault.REQUEST_LOST, [], b""),
        (Fault.REPLY_LOST, [b"hello!"], b""),
        (Fault.DELAYED, [b"hello!"], b"re: hello!"),
    ],
)
async def test_a_message_is_lost_on_its_way_there_or_back(
    echo: Echo, fault: Fault, got: list[bytes], answered: bytes
) -> None:
    weather = Weather({fault: 1.0}, delay_s=0.01)
    async with Proxy(echo.url, seed=1, weather=weather) as proxy:
        assert await ask(proxy.url, b"hello!") == answered
        assert echo.got == got
        assert weather.done[fault] >= 1


async def test_half_a_message_arrives_and_the_connection_breaks(echo: Echo) -> None:
    async with Proxy(echo.url, seed=1, weather=Weather({Fault.CUT: 1.0})) as proxy:
        assert await ask(proxy.url, b"hello!") == b""
        assert echo.got == [b"hel"]


async def test_a_swallowed_message_leaves_the_connection_open(echo: Echo) -> None:
    weather = Weather({Fault.REQUEST_SWALLOWED: 1.0})
    async with Proxy(echo.url, seed=1, weather=weather) as proxy:
        with pytest.raises(TimeoutError):
            await ask(proxy.url, b"hello!", timeout_s=0.1)
        assert echo.got == []
        weather.calm()
        assert await ask(proxy.url, b"again") == b"re: again"


async def test_a_server_that_is_away_is_a_connection_that_ends() -> None:
    async with Proxy("redis://127.0.0.1:1/0", seed=1, weather=Weather()) as proxy:
        assert await ask(proxy.url, b"hello") == b""
