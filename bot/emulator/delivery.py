"""Delivery of events to the app, by signed POSTs or in Socket Mode: acknowledged within three seconds, retried three times."""

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlencode

import aiohttp
import structlog
from pydantic import ConfigDict

from bot.emulator.clock import Clock
from bot.emulator.config import EmulatorConfig, request_urls
from bot.emulator.signing import signature_headers
from bot.emulator.sockets import EnvelopeType, Sockets
from bot.emulator.updates import Updates
from bot.emulator.workspace import Json

log = structlog.get_logger(__name__)

# The first attempt and Slack's three retries, in seconds after the attempt before.
RETRY_DELAYS_S = (0.0, 0.0, 60.0, 300.0)


@dataclass(slots=True)
class Attempt:
    """One POST to the app, or one envelope. `status` is None when no answer came; `reason` is Slack's word for a failure, else empty."""

    url: str
    retry_num: int
    retry_reason: str
    at: float
    status: int | None = None
    reason: str = ""
    duration_ms: float = 0.0


@dataclass(slots=True)
class Delivery:
    """One event on its way. `done`: no further attempt will follow; `delivered`: the app acknowledged it."""

    # memory.py lets pydantic read it back; the asyncio.Event is made anew.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        arbitrary_types_allowed=True, ser_json_bytes="base64", val_json_bytes="base64"
    )

    event_id: str
    team_id: str
    event_type: str
    body: bytes
    attempts: list[Attempt] = field(default_factory=list)
    done: bool = False
    delivered: bool = False
    tried: asyncio.Event = field(default_factory=asyncio.Event)

    def seen(self) -> Json:
        event = json.loads(self.body).get("event", {})
        return {
            "event_id": self.event_id,
            "team_id": self.team_id,
            "type": self.event_type,
            "channel": event.get("channel"),
            "ts": event.get("ts") or event.get("event_ts"),
            "done": self.done,
            "delivered": self.delivered,
            "attempts": [asdict(attempt) for attempt in self.attempts],
        }


@dataclass(frozen=True, slots=True)
class Reply:
    """The app's answer to a command or a click. `problem` is empty when it acknowledged in time."""

    status: int | None
    body: str
    problem: str = ""


class Deliveries:
    """The way out to the app. Attempts rotate over the app's replicas; each event runs in a task of its own."""

    def __init__(self, config: EmulatorConfig, clock: Clock, updates: Updates) -> None:
        self._config = config
        self._clock = clock
        self._updates = updates
        self._turn = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._url_set = asyncio.Event()
        self._session: aiohttp.ClientSession | None = None
        self.sockets = Sockets(app_id=config.app_id)
        self.log: deque[Delivery] = deque(maxlen=2000)
        self.urls: tuple[str, ...] = ()
        self.set_urls(request_urls(config.request_url))

    def set_urls(self, urls: tuple[str, ...]) -> None:
        """Where the app listens from now on. Events made before any URL was known are sent when one is."""
        self.urls = urls
        self._updates.publish("config", request_url=list(urls))
        if urls:
            self._url_set.set()
        else:
            self._url_set.clear()

    async def start(self) -> None:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._config.ack_timeout_s))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.sockets.close()
        if self._session:
            await self._session.close()

    def send(self, *bodies: Json, copies: int = 1) -> list[Delivery]:
        """Start delivering `bodies`, each `copies` times. A body's first attempt follows that of the one before it.

        Returns:
            One delivery per body and copy, in the order of sending.

        """
        deliveries = [
            Delivery(body["event_id"], body["team_id"], body["event"]["type"], json.dumps(body).encode())
            for body in bodies
            for _ in range(copies)
        ]
        before: Delivery | None = None
        for delivery in deliveries:
            self.log.append(delivery)
            self._start(delivery, before if copies == 1 else None)
            before = delivery
        return deliveries

    def resume(self, deliveries: Iterable[Delivery]) -> None:
        """Go on with deliveries that a stop cut short, as if they had not been tried: it is another app that listens now."""
        for delivery in deliveries:
            delivery.attempts.clear()
            self.log.append(delivery)
            self._start(delivery, None)

    async def ask(self, fields: dict[str, str]) -> Reply:
        """Send a command or an interaction once, as Slack does, and return the app's answer."""
        if self._config.app_token:
            return await self._ask_by_socket(fields)
        if not self.urls:
            return Reply(None, "", "the app's request URL is not set")
        attempt = Attempt(self._next_url(), 0, "", self._clock.now())
        answer = await self._post(attempt, urlencode(fields), "application/x-www-form-urlencoded", {})
        return Reply(attempt.status, answer, attempt.reason)

    def _start(self, delivery: Delivery, before: Delivery | None) -> None:
        task = asyncio.create_task(self._deliver(delivery, before))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery, before: Delivery | None) -> None:
        if before:
            await before.tried.wait()
        reason = ""
        for number, delay_s in enumerate(RETRY_DELAYS_S):
            await self._clock.sleep(delay_s)
            attempt = await self._attempted(delivery, number, reason)
            delivery.tried.set()
            delivery.delivered = not attempt.reason
            if delivery.delivered or attempt.reason == "no_retry":
                break
            reason = attempt.reason
            self._report(delivery)
        delivery.done = True
        self._report(delivery)

    async def _attempted(self, delivery: Delivery, number: int, reason: str) -> Attempt:
        if self._config.app_token:
            attempt = Attempt("", number, reason, self._clock.now())
            delivery.attempts.append(attempt)
            await self._send(attempt, "events_api", json.loads(delivery.body))
            return attempt
        await self._url_set.wait()
        attempt = Attempt(self._next_url(), number, reason, self._clock.now())
        headers = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason} if number else {}
        delivery.attempts.append(attempt)
        await self._post(attempt, delivery.body.decode(), "application/json", headers)
        return attempt

    async def _send(self, attempt: Attempt, kind: EnvelopeType, payload: Json) -> Json | None:
        """Send an envelope and fill in `attempt`; returns what the acknowledgement carries."""
        started_s = time.monotonic()
        retry = (attempt.retry_num, attempt.retry_reason)
        attempt.url, ack = await self.sockets.send(kind, payload, retry=retry, timeout_s=self._config.ack_timeout_s)
        attempt.duration_ms = round((time.monotonic() - started_s) * 1000, 1)
        if ack is None:
            attempt.reason = "timeout"
        else:
            attempt.status = 200
        return ack

    async def _ask_by_socket(self, fields: dict[str, str]) -> Reply:
        if not self.sockets.open:
            return Reply(None, "", "the app has no connection")
        attempt = Attempt("", 0, "", self._clock.now())
        payload: Json = json.loads(fields["payload"]) if "payload" in fields else dict(fields)
        ack = await self._send(attempt, "interactive" if "payload" in fields else "slash_commands", payload)
        return Reply(attempt.status, json.dumps(ack) if ack else "", "http_timeout" if ack is None else "")

    async def _post(self, attempt: Attempt, body: str, content_type: str, headers: dict[str, str]) -> str:
        """Send and fill in `attempt`; returns the answer's text."""
        started_s = time.monotonic()
        try:
            return await self._answer(attempt, body.encode(), {"Content-Type": content_type, **headers})
        except TimeoutError:
            attempt.reason = "http_timeout"
        except aiohttp.ClientError as error:
            log.info("app_not_reached", url=attempt.url, error=type(error).__name__)
            attempt.reason = "connection_failed"
        finally:
            attempt.duration_ms = round((time.monotonic() - started_s) * 1000, 1)
        return ""

    async def _answer(self, attempt: Attempt, body: bytes, headers: dict[str, str]) -> str:
        assert self._session is not None
        # Signed with real time whatever the emulator's clock shows: the app checks the age with its own.
        signed: dict[str, Any] = {**headers, **signature_headers(self._config.signing_secret, body, at_s=time.time())}
        async with self._session.post(attempt.url, data=body, headers=signed, allow_redirects=False) as response:
            attempt.status = response.status
            text = await response.text(errors="replace")
            if not 200 <= response.status < 300:
                attempt.reason = "no_retry" if response.headers.get("X-Slack-No-Retry") == "1" else "http_error"
            return text

    def _next_url(self) -> str:
        return self.urls[next(self._turn) % len(self.urls)]

    def _report(self, delivery: Delivery) -> None:
        self._updates.publish("delivery", **delivery.seen())
