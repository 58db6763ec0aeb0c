"""Commands, clicks and dialogs are answered within Slack's three seconds, however long the work takes.

Slack sends them once, and shows an error of its own after three seconds. Work that takes longer goes on behind: the person is told so at
once, and told its end. Work that fails is said to have failed. What a killed process had in hand is lost, which is what the first
words say; events are another matter, as Slack delivers those again.
"""

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Literal, Self

import structlog
from slack_bolt import BoltResponse

from bot.bodies import Envelope
from bot.clients import Clients
from bot.dialogs import Dialogs
from bot.render.replies import tell
from bot.views import View, notice, refilled

ACK_S = 2.0
"""Slack waits three seconds, and the way there and back is in them."""
BEHIND_S = 60.0
"""How long work may go on behind."""
LEAVE_S = 5.0
"""How long closing waits for it."""
LIMIT = 1_000
"""Commands, clicks and dialogs in hand at once. A database that stands still must not fill the memory."""

LATER = (
    "This takes longer than usual. I tell you here how it ended. If you hear nothing within a minute, it may not have been done: look"
    " before you try again."
)
FAILED = "I could not do this: something broke on our side, or the database does not answer. Nothing was done as far as I know; please try again in a minute."
BUSY = "I have too much in hand at the moment. Nothing was done; please try again in a minute."
DONE = "Done."

Work = Coroutine[Any, Any, BoltResponse]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person did, and where they can be told of it. `tenants`: those the app may be installed as, the likeliest first."""

    kind: Literal["command", "click", "view"]
    tenants: tuple[str, ...]
    reply_url: str = ""
    view: View | None = None

    @classmethod
    def of(cls, envelope: Envelope) -> Self:
        """Read it from Slack's payload, whatever its fields are."""
        view, kind = _mapping(envelope.get("view")), envelope.get("type")
        named = [_mapping(envelope.get(field)).get("id") for field in ("team", "enterprise")]
        url = envelope.get("response_url")
        return cls(
            kind="command" if "command" in envelope else "view" if kind == "view_submission" else "click",
            tenants=tuple(each for each in named if isinstance(each, str)),
            reply_url=url if isinstance(url, str) else "",
            view=view if kind == "view_submission" else None,
        )


class Acknowledgements:
    """Answers in time, and tells the rest."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._dialogs = Dialogs(clients)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def answer(self, envelope: Envelope, work: Work) -> BoltResponse:
        """The work's own answer if it comes in time, else one that says that it goes on."""
        asked = Asked.of(envelope)
        if self._closed or len(self._tasks) >= LIMIT:
            work.close()
            return self._now(asked, BUSY)
        task = self._spawn(_ended(work))
        try:
            await asyncio.wait({task}, timeout=ACK_S)
        finally:
            if not task.done():  # also where whoever asked has gone away meanwhile
                self._spawn(self._tell_later(asked, task))
        if not task.done():
            structlog.get_logger().warning("acknowledged_first", kind=asked.kind)
            return self._now(asked, LATER, going_on=True)
        response = task.result()
        return self._now(asked, FAILED) if response.status >= 500 else response

    async def close(self) -> None:
        """Take nothing more, wait a while for what goes on behind, and tell those whose work was cut off."""
        self._closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVE_S)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _now(self, asked: Asked, words: str, *, going_on: bool = False) -> BoltResponse:
        """An acknowledgement with these words. A click's carries none: they go by its reply address."""
        if asked.kind == "command":
            return _json({"response_type": "ephemeral", "text": words})
        if asked.view is not None:
            view = notice(_title(asked.view), words) if going_on else refilled(asked.view, words)
            return _json({"response_action": "update", "view": view})
        self._spawn(tell(asked.reply_url, words))
        return BoltResponse(status=200)

    async def _tell_later(self, asked: Asked, task: asyncio.Task[BoltResponse]) -> None:
        try:
            async with asyncio.timeout(BEHIND_S):
                response = await task
        except (TimeoutError, asyncio.CancelledError):
            response = BoltResponse(status=503)
        body = _body(response)
        if asked.view is not None:
            await self._show(asked, asked.view, response.status, body)
        elif response.status >= 500:
            await tell(asked.reply_url, FAILED)
        elif asked.kind == "command":
            await tell(asked.reply_url, str(body.get("text") or DONE))

    async def _show(self, asked: Asked, view: View, status: int, body: dict[str, Any]) -> None:
        """What a submission came to, in its own dialog. What was filled in is there again if it was not taken."""
        if status >= 500:
            shown = refilled(view, FAILED)
        elif body.get("response_action") == "errors":
            shown = refilled(view, "\n".join(map(str, _mapping(body.get("errors")).values())))
        else:
            shown = _mapping(body.get("view")) or notice(_title(view), DONE)
        for tenant in asked.tenants:
            if await self._clients.soon(tenant) is not None:
                await self._dialogs.replace(tenant, str(view.get("id")), shown)
                return

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            structlog.get_logger().warning("person_not_told", error=f"{type(error).__name__}: {error}")


async def _ended(work: Work) -> BoltResponse:
    """The work's answer; what it raises is one, too."""
    try:
        return await work
    except Exception as error:
        structlog.get_logger().error("interaction_failed", error=f"{type(error).__name__}: {error}", exc_info=error)
        return BoltResponse(status=500)


def _json(body: dict[str, Any]) -> BoltResponse:
    return BoltResponse(status=200, body=json.dumps(body), headers={"content-type": "application/json"})


def _body(response: BoltResponse) -> dict[str, Any]:
    """A message or a view; a bare text is a message."""
    if not response.body:
        return {}
    try:
        return _mapping(json.loads(response.body))
    except ValueError:
        return {"text": response.body}


def _title(view: View) -> str:
    return str(_mapping(view.get("title")).get("text") or "Threadline")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
