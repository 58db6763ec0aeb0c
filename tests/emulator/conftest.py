"""A local Slack, and an app of slack_bolt behind a real socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient, EmulatorConfig
from bot.emulator.subscriptions import EVENT_SCOPES

SECRET = "signing-secret-of-the-tests"
TOKEN = "xoxb-northwind-test"

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes
    json: Any = None


@dataclass
class Sink:
    """Takes every POST, and answers with `answers` in turn, the last one from then on."""

    url: str = ""
    requests: list[Received] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/slack/events", self._take)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}/slack/events"

    async def stop(self) -> None:
        assert self.runner is not None
        await self.runner.cleanup()

    def events(self, kind: str = "") -> list[Any]:
        bodies = [received.json for received in self.requests if received.json]
        return [body for body in bodies if kind in {"", body["event"]["type"]}]

    async def _take(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        parsed = await request.json() if request.content_type == "application/json" else None
        self.requests.append(Received(dict(request.headers), body, parsed))
        if not self.answers:
            return web.Response()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def answering(status: int = 200, *, headers: dict[str, str] | None = None, body: Any = None) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        if body is not None:
            return web.json_response(body, status=status)
        return web.Response(status=status, headers=headers)

    return answer


def silent(seconds: float) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.Response()

    return answer


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    sink = Sink()
    await sink.start()
    yield sink
    await sink.stop()


@pytest.fixture
async def emulator(sink: Sink) -> AsyncIterator[Emulator]:
    config = EmulatorConfig(
        signing_secret=SECRET,
        client_id="1.2",
        client_secret="shh",
        bot_token=TOKEN,
        request_url=sink.url,
        ack_timeout_s=0.5,
        events=tuple(EVENT_SCOPES),
    )
    async with Emulator(config) as emulator:
        yield emulator


@pytest.fixture
async def people(emulator: Emulator) -> AsyncIterator[EmulatorClient]:
    async with EmulatorClient(emulator.url) as client:
        yield client


@pytest.fixture
def web_api(emulator: Emulator) -> AsyncWebClient:
    """The unmodified client of slack_sdk, without its retries so that each fault is seen."""
    return AsyncWebClient(TOKEN, base_url=emulator.api_url, retry_handlers=[])


async def settled(people: EmulatorClient, **wanted: str) -> list[Any]:
    """All deliveries, once none of them has an attempt to come."""

    async def done() -> list[Any] | None:
        deliveries = await people.deliveries(**wanted)
        return deliveries if deliveries and all(one["done"] for one in deliveries) else None

    return await people.wait_for(done, what="the end of all deliveries")
