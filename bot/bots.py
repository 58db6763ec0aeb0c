"""Other bots: heard only where an admin has allowed it, and never without an end.

Two bots that answer each other do so for ever, each with good reason. So an allowed one has to mention us every time, and is not heard once
it, or several of them, have had the last word too often in a row, in a thread or, within an hour, in a channel: then a person has to speak first.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import structlog

from agent.messages import MESSAGES
from agent.preferences import PreferenceBook
from bot.events import Said
from workflows.storage import Is, Select, Store

IN_A_ROW = 5
"""Requests of bots with no person's words to us between them."""
RECENT = timedelta(hours=1)
"""How far back a channel's are counted: one that answers at its head begins a thread each time, and one that reports now and then may go on."""


class Bots:
    """Decides whether another bot's words are taken in."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._book = PreferenceBook(store)

    async def admits(self, said: Said) -> bool:
        """Whether what a bot said is a request to answer. Raises StoreUnavailableError."""
        if not said.addressed:
            return False
        allowed = (await self._book.of(said.thread.tenant)).bots
        if said.user not in allowed:
            return False
        where: dict[str, Any] = {
            "tenant": said.thread.tenant,
            "thread": said.thread.key,
            "role": "user",
            "notice": False,
        }
        since = Is(">", await self._store.now() - RECENT)
        around = {**where, "thread": Is("starts with", f"{said.thread.channel}:"), "at": since}
        if not (await self._alone(where, ("-id",), allowed) or await self._alone(around, ("-at", "-id"), allowed)):
            return True
        structlog.get_logger().warning("bot_not_answered", tenant=said.thread.tenant, bot=said.user, in_a_row=IN_A_ROW)
        return False

    async def allowed(self, tenant: str, bot: str) -> bool:
        """Whether an admin has allowed a bot. Raises StoreUnavailableError."""
        return bot in (await self._book.of(tenant)).bots

    async def _alone(self, where: dict[str, Any], order: tuple[str, ...], allowed: Collection[str]) -> bool:
        """Whether the last requests there, enough of them, are all of bots."""
        last = await self._store.read(Select(MESSAGES, where, order=order, limit=IN_A_ROW))
        return len(last) == IN_A_ROW and all((row["author"] or {}).get("id") in allowed for row in last)
