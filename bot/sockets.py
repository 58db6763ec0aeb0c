"""Socket Mode: the WebSockets over which Slack sends events, commands and clicks where it can't reach the app by HTTP.

The SDK's client reconnects when Slack asks it to, when a connection closes and when pongs stay away. What it does not notice is here: a
connection on which Slack never says hello, one that Slack ended without giving another, one that outlives the time Slack gave it, and its
own loop around an address that was used up.
"""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from logging import getLogger
from typing import Any

import structlog
from aiohttp import WSMessage
from slack_bolt import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.bodies import Envelope, MalformedBodyError, read_payload

HELLO_S = 10.0
"""How long a connection may take to be greeted."""
DOWN_PINGS = 6
"""Intervals between pings after which a connection that is down is given up. The SDK itself notices after four."""
MOST_S = 300.0
"""The longest wait before another connection is tried."""
LIFE_MARGIN_S = 600.0
LEAVE_S = 5.0
"""How long closing waits for what is being stored."""

Answer = Callable[[Envelope, dict[str, str]], Awaitable[BoltResponse]]


@dataclass(slots=True, eq=False)
class Connection:
    """One client of the SDK's, and when it was last well. Times are monotonic seconds; `life_s` is what Slack gave it."""

    client: SocketModeClient
    connecting: asyncio.Task[None]
    began: float = field(default_factory=time.monotonic)
    well: float = field(default_factory=time.monotonic)
    greeted: float | None = None
    told_to_go: float | None = None
    life_s: float = float("inf")

    def hear(self, said: dict[str, Any]) -> None:
        """Slack has greeted this client, at first or after it reconnected, or asks it to do so."""
        if said.get("type") == "disconnect":
            self.told_to_go = time.monotonic()
        elif said.get("type") == "hello":
            self.greeted, self.told_to_go = time.monotonic(), None
            self._live(said)

    def _live(self, hello: dict[str, Any]) -> None:
        debug = hello.get("debug_info")
        life_s = debug.get("approximate_connection_time") if isinstance(debug, dict) else None
        self.life_s = float(life_s) if isinstance(life_s, int | float) else float("inf")


@dataclass(slots=True, eq=False)
class Place:
    """Where one connection is held open. `base_s`: how long the second one in a row that came to nothing is waited for."""

    base_s: float
    rng: random.Random
    connection: Connection | None = None
    failures: int = 0  # in a row
    due: float = 0.0  # monotonic seconds

    def lose(self) -> None:
        """The connection ends. The next one may come at once if Slack had greeted it, else later each time: asking for an address is a
        method that Slack allows about once a minute, and a refused token stays refused.
        """
        lost, self.connection = self.connection, None
        self.failures = 0 if lost is not None and lost.greeted is not None else self.failures + 1
        wait_s = min(self.base_s * 2 ** min(self.failures - 1, 30), MOST_S) if self.failures else 0.0
        self.due = time.monotonic() + wait_s * self.rng.uniform(0.5, 1.0)


class Sockets:
    """Holds `count` connections open and answers what comes over them.

    An envelope is acknowledged when `answer` says 200, which it does once a message is durable. Anything else is not acknowledged,
    and Slack sends it again, on any of the app's connections.
    """

    def __init__(
        self,
        app_token: str,
        answer: Answer,
        *,
        api_url: str,
        count: int = 2,
        ping_s: float = 5.0,
        hello_s: float = HELLO_S,
        rng: random.Random | None = None,
    ) -> None:
        self._token = app_token
        self._answer = answer
        self._api_url = api_url
        self._ping_s = ping_s
        self._hello_s = hello_s
        jitter = rng or random.Random()  # noqa: S311 — replicas that were refused together must not come back together
        self._places = tuple(Place(hello_s, jitter) for _ in range(count))
        self._under_way: set[asyncio.Task[Any]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._leaving = False

    async def start(self) -> None:
        """Begin to connect; whether Slack can be reached is for `connected` to say."""
        for place in self._places:
            place.connection = self._connection()
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Take nothing new, acknowledge what is being stored, and disconnect: Slack sends the rest to others."""
        self._leaving = True
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=LEAVE_S)
        await asyncio.gather(*self._closing, *(_closed(each) for each in self._connections))

    @property
    def _connections(self) -> list[Connection]:
        return [place.connection for place in self._places if place.connection is not None]

    @property
    def connected(self) -> bool:
        """Whether at least one connection is open and was greeted."""
        return any(_open(each.client) and each.greeted is not None for each in self._connections)

    def _connection(self) -> Connection:
        client = SocketModeClient(
            self._token,
            web_client=AsyncWebClient(base_url=self._api_url, timeout=5),
            ping_interval=self._ping_s,
            logger=getLogger("slack_sdk.socket_mode"),
        )
        connection = Connection(client, asyncio.create_task(_connect(client)))

        async def heard(message: WSMessage) -> None:
            with contextlib.suppress(ValueError):
                said = json.loads(message.data)
                if isinstance(said, dict):
                    connection.hear(said)

        client.on_message_listeners.append(heard)
        client.socket_mode_request_listeners.append(self._take)
        return connection

    async def _take(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        task = asyncio.current_task()
        if self._leaving or task is None:
            return
        self._under_way.add(task)
        try:
            await self._taken(client, request)
        finally:
            self._under_way.discard(task)

    async def _taken(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        began = time.perf_counter()
        try:
            response = await self._answer(read_payload(request.payload), _headers(request))
        except MalformedBodyError as error:
            structlog.get_logger().info("request_refused", status=400, reason=str(error))
            return
        took_ms = round((time.perf_counter() - began) * 1000, 1)
        structlog.get_logger().debug("slack_envelope", type=request.type, status=response.status, took_ms=took_ms)
        if response.status != 200:
            return
        try:
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id, _payload(response)))
        except Exception as error:
            # The connection went meanwhile. What was said is stored; Slack sends it again and it is known for a copy.
            structlog.get_logger().warning("envelope_not_acknowledged", error=f"{type(error).__name__}: {error}")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._ping_s)
            for place in self._places:
                self._look_after(place)

    def _look_after(self, place: Place) -> None:
        if (ailing := place.connection) is not None and (reason := self._ailing(ailing)):
            place.lose()
            wait_s = round(max(0.0, place.due - time.monotonic()), 3)
            structlog.get_logger().warning("socket_replaced", reason=reason, wait_s=wait_s)
            closing = asyncio.create_task(_closed(ailing))  # takes seconds where the other end is silent
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        if place.connection is None and time.monotonic() >= place.due:
            place.connection = self._connection()

    def _ailing(self, connection: Connection) -> str:
        """Why a connection has to be replaced, or nothing."""
        now = time.monotonic()
        if _open(connection.client):
            connection.well = now
        if now - connection.well > DOWN_PINGS * self._ping_s:
            return "it is down and does not come back"
        if connection.greeted is None and now - connection.began > self._hello_s:
            return "Slack did not greet it"
        if connection.told_to_go is not None and now - connection.told_to_go > self._hello_s:
            return "Slack ended it and gave no other"
        if connection.greeted is not None and now - connection.greeted > connection.life_s + LIFE_MARGIN_S:
            return "it outlived the time Slack gave it"
        return ""


def _open(client: SocketModeClient) -> bool:
    session = client.current_session
    return not client.closed and not client.stale and session is not None and not session.closed


async def _connect(client: SocketModeClient) -> None:
    """Connect for the first time; the SDK raises here where Slack refuses, and tries forever where it can't be reached."""
    try:
        await client.connect()  # type: ignore[no-untyped-call] # the SDK leaves it untyped
    except Exception as error:
        structlog.get_logger().error("socket_refused", error=f"{type(error).__name__}: {error}")


async def _closed(connection: Connection) -> None:
    connection.connecting.cancel()
    await asyncio.gather(connection.connecting, return_exceptions=True)
    try:
        async with asyncio.timeout(LEAVE_S):  # a half-open connection does not answer the closing handshake
            await connection.client.close()  # type: ignore[no-untyped-call] # likewise
    except Exception as error:
        structlog.get_logger().debug("socket_not_closed", error=f"{type(error).__name__}: {error}")


def _headers(request: SocketModeRequest) -> dict[str, str]:
    """The headers that the same request has over HTTP."""
    given = {"x-slack-retry-num": request.retry_attempt, "x-slack-retry-reason": request.retry_reason}
    return {name: str(value) for name, value in given.items() if value}


def _payload(response: BoltResponse) -> dict[str, Any] | None:
    """What an acknowledgement carries: the message that a command answers with, or a view's errors."""
    if not response.body:
        return None
    if response.first_headers().get("content-type", "").startswith("application/json"):
        return dict(json.loads(response.body))
    return {"text": response.body}
