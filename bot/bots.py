"""Other bots: heard only where an admin has allowed it, and never without an end.

Two bots that answer each other do so for ever, each with good reason. So an allowed one has to mention us every time, and is not heard once
it, or several of them, have had the last word in a thread too often in a row: then a person has to speak first.
"""

import structlog

from agent.messages import MESSAGES
from agent.preferences import PreferenceBook
from bot.events import Said
from workflows.storage import Select, Store

IN_A_ROW = 5
"""Requests of bots in a thread, with no person's words between them."""


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
        where = {"tenant": said.thread.tenant, "thread": said.thread.key, "role": "user", "notice": False}
        last = await self._store.read(Select(MESSAGES, where, order=("-id",), limit=IN_A_ROW))
        if len(last) < IN_A_ROW or any((row["author"] or {}).get("id") not in allowed for row in last):
            return True
        structlog.get_logger().warning("bot_not_answered", tenant=said.thread.tenant, bot=said.user, in_a_row=IN_A_ROW)
        return False
