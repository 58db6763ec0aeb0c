"""Socket Mode: what Slack would POST goes to the app over the WebSockets it has opened (docs.slack.dev/apis/events-api/using-socket-mode)."""

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Literal
from uuid import uuid4

from aiohttp import WSMsgType, web

from bot.emulator.ids import new_id, new_secret
from bot.emulator.workspace import Json

MOST = 10
CONNECTION_LIFE_S = 18_060

EnvelopeType = Literal["events_api", "slash_commands", "interactive"]
Trouble = Literal["warning", "refresh_requested", "link_disabled", "mute", "drop"]


@dataclass(slots=True, eq=False)
class Connection:
    """One open WebSocket. `leaving`: it was told to go and gets nothing new; `muted`: half open, nothing passes and no pong comes."""

    ws: web.WebSocketResponse
    request: web.Request
    id: str = field(default_factory=lambda: new_id("W"))
    leaving: bool = False
    muted: bool = False
    sent: int = 0


class Sockets:
    """The app's connections. Envelopes go to them in turn; an acknowledgement counts on whichever it comes back."""

    def __init__(self, *, app_id: str) -> None:
        self._app_id = app_id
        self._tickets: set[str] = set()
        self._turn = itertools.count()
        self._acks: dict[str, asyncio.Future[Json]] = {}
        self._connected = asyncio.Event()
        self.disabled = False
        self.open: list[Connection] = []

    def ticket(self) -> str:
        """The right to open one connection."""
        ticket = new_secret("")
        self._tickets.add(ticket)
        return ticket

    async def link(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection until it ends."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets or self.disabled:
            return web.Response(status=403, text="the ticket was used or is unknown")
        self._tickets.discard(ticket)
        # Pings are answered by hand: a half-open connection is one that does not.
        connection = Connection(web.WebSocketResponse(autoping=False), request)
        await connection.ws.prepare(request)
        try:
            if len(self.open) >= MOST:
                await self._tell(connection, "too_many_websockets")
                return connection.ws
            self.open.append(connection)
            self._connected.set()
            await connection.ws.send_json(self._hello())
            await self._listen(connection)
        finally:
            self._ended(connection)
        return connection.ws

    async def send(
        self, kind: EnvelopeType, payload: Json, *, retry: tuple[int, str], timeout_s: float
    ) -> tuple[str, Json | None]:
        """Send one envelope and wait for its acknowledgement.

        Returns:
            The id of the connection it went to, and the payload of the acknowledgement; None when none came in time.

        """
        connection = await self._next()
        envelope_id = str(uuid4())
        acked = self._acks[envelope_id] = asyncio.get_running_loop().create_future()
        envelope: Json = {"type": kind, "envelope_id": envelope_id, "payload": payload}
        envelope["accepts_response_payload"] = kind != "events_api"
        if kind == "events_api":
            envelope |= {"retry_attempt": retry[0], "retry_reason": retry[1]}
        try:
            connection.sent += 1
            if not connection.muted:
                await connection.ws.send_json(envelope)
            async with asyncio.timeout(timeout_s):
                return connection.id, await acked
        except (TimeoutError, ConnectionError):
            return connection.id, None
        finally:
            del self._acks[envelope_id]

    async def trouble(self, kind: Trouble, connection_id: str = "") -> int:
        """Do to the connections, or to one, what happens to them in the wild. Returns how many it was."""
        chosen = [one for one in self.open if connection_id in {"", one.id}]
        if kind == "link_disabled":
            self.disabled = True
        for one in chosen:
            if kind == "mute":
                one.muted = True
            elif kind == "drop":
                self._ended(one)
                if one.request.transport is not None:
                    one.request.transport.abort()
            else:
                await self._tell(one, kind)
                if kind == "link_disabled":
                    await one.ws.close()
        return len(chosen)

    async def close(self) -> None:
        """End every connection."""
        for one in list(self.open):
            await one.ws.close()

    def seen(self) -> list[Json]:
        return [{"id": one.id, "leaving": one.leaving, "muted": one.muted, "sent": one.sent} for one in self.open]

    async def _next(self) -> Connection:
        """The connection whose turn it is; waits until there is one."""
        while not (ready := [one for one in self.open if not one.leaving]):
            self._connected.clear()
            await self._connected.wait()
        return ready[next(self._turn) % len(ready)]

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.ws:
            if connection.muted:
                continue
            if message.type == WSMsgType.PING:
                await connection.ws.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                self._take(message.data)

    def _take(self, text: str) -> None:
        try:
            ack = json.loads(text)
        except ValueError:
            return
        waiting = self._acks.get(str(ack.get("envelope_id"))) if isinstance(ack, dict) else None
        if waiting is not None and not waiting.done():
            payload = ack.get("payload")
            waiting.set_result(payload if isinstance(payload, dict) else {})

    async def _tell(self, connection: Connection, reason: str) -> None:
        connection.leaving = True
        await connection.ws.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "local-slack"}})

    def _ended(self, connection: Connection) -> None:
        if connection in self.open:
            self.open.remove(connection)

    def _hello(self) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self.open),
            "connection_info": {"app_id": self._app_id},
            "debug_info": {"host": "local-slack", "approximate_connection_time": CONNECTION_LIFE_S},
        }
