"""A local HTTP server that plays a provider: real sockets, real SSE, one scripted reply per request."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

from aiohttp import web

from tests.wire.script import Answer, Failure

ODD_SLICE = 7
"""Bytes per write: events, JSON and characters are cut in their middle."""


class ProviderServer(ABC):
    """`script` holds the replies to come; `requests` the bodies that came, `headers` theirs. `left` is set when a client hangs up."""

    path: str

    def __init__(self) -> None:
        self.script: list[Answer | Failure] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = asyncio.Event()
        self.url = ""
        self._held = asyncio.Event()

    @abstractmethod
    def events(self, answer: Answer) -> Iterator[bytes]:
        """The answer as server-sent events."""

    @abstractmethod
    def error_event(self) -> bytes:
        """An overload, told in the middle of a stream."""

    @abstractmethod
    def error_body(self, failure: Failure) -> dict[str, Any]:
        """The body of an HTTP error."""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post(self.path, self._reply)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}{self.path.split('/v1')[0]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._held.set()
        await self._runner.cleanup()

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        reply = self.script.pop(0)
        if isinstance(reply, Failure):
            return web.json_response(self.error_body(reply), status=reply.status, headers=reply.headers)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._stream(request, response, reply)
        except (asyncio.CancelledError, ConnectionResetError):
            self.left.set()
            raise
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, answer: Answer) -> None:
        for number, event in enumerate(self.events(answer)):
            if number == answer.cut_after:
                await response.write(event[: len(event) // 2])
                assert request.transport is not None
                request.transport.abort()
                return
            if number == answer.hold_after:
                await self._held.wait()
            if number == answer.fail_after:
                await response.write(self.error_event())
                return
            for start in range(0, len(event), ODD_SLICE):
                await response.write(event[start : start + ODD_SLICE])
        await response.write_eof()


def sse(data: dict[str, Any] | str, *, event: str | None = None) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {text}\n\n".encode()
