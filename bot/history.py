"""The past of a thread, by conversations.replies: read once, when the agent is brought into it."""

from typing import Any

from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, ChannelUnavailableError
from agent.history import Past
from agent.models.base import Message, Person, Text
from agent.people import People
from agent.thread import Thread
from bot.clients import Clients, Credentials, code_of
from bot.contents import files, quotation, words
from bot.render.pacing import Pacer
from bot.render.posting import Posting

PAGES = 10
"""Pages that are read. Slack lets some apps have one page of 15 messages a minute, others 50 pages of 200."""
PAGE = 200
KEPT = 60
"""Messages that are kept: the root and the latest. A model call sees 120."""
LIMIT = 4_000
"""Characters of each."""


class SlackHistory:
    """Implements `agent.history.History`."""

    def __init__(self, clients: Clients, people: People, *, pacer: Pacer | None = None) -> None:
        self._posting = Posting(clients, deadline_s=8.0, pacer=pacer)
        self._people = people

    async def before(self, thread: Thread, message_id: str) -> Past:
        me = await self._posting.credentials(thread.tenant)
        found, whole = await self._read(thread, message_id)
        told = found if len(found) <= KEPT else [found[0], *found[-(KEPT - 1) :]]
        said = [(str(message["ts"]), await self._message(thread, message, me)) for message in told]
        known = [(ts, message) for ts, message in said if message.parts]
        return Past(known, left_out=len(found) - len(told), unread=not whole)

    async def _read(self, thread: Thread, before: str) -> tuple[list[dict[str, Any]], bool]:
        """What stands before a message, the root first, and whether it is all of it: Slack gives the oldest first, and a limit that is met
        after the first page ends the reading, since what was read is worth more than the wait.
        """
        found: list[dict[str, Any]] = []
        cursor = ""
        for number in range(PAGES):
            try:
                page = await self._page(thread, before, cursor)
            except ChannelUnavailableError:
                if number == 0:
                    raise
                return found, False
            messages = [message for message in page.get("messages") or () if isinstance(message, dict)]
            found += [message for message in messages if str(message.get("ts", "")) < before]
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return found, True
        return found, False

    async def _page(self, thread: Thread, before: str, cursor: str) -> dict[str, Any]:
        client = await self._posting.client(thread.tenant)
        more: dict[str, Any] = {"cursor": cursor} if cursor else {}
        asked = client.conversations_replies(channel=thread.channel, ts=thread.root, latest=before, limit=PAGE, **more)
        try:
            page: dict[str, Any] = await self._posting.call(asked, tenant=thread.tenant, method="conversations.replies")
        except SlackApiError as error:
            raise ChannelGoneError(f"Slack: {code_of(error)}") from error
        return page

    async def _message(self, thread: Thread, message: dict[str, Any], me: Credentials) -> Message:
        own, quoted = Text(text=words(message, "")[:LIMIT]), Text(text=quotation(message, "")[:LIMIT], quoted=True)
        parts = (*(each for each in (own, quoted) if each.text), *files(message))
        return Message(role="user", parts=parts, author=await self._author(thread, message, me), heard=True)

    async def _author(self, thread: Thread, message: dict[str, Any], me: Credentials) -> Person:
        user, bot = str(message.get("user") or ""), str(message.get("bot_id") or "")
        if (me.bot_user_id and user == me.bot_user_id) or (me.bot_id and bot == me.bot_id):
            return Person(id=me.bot_user_id, name="you yourself")
        if bot or not user:
            profile = message.get("bot_profile") if isinstance(message.get("bot_profile"), dict) else {}
            name = message.get("username") or (profile or {}).get("name") or bot or "an app"
            return Person(id=bot or "app", name=f"the app {name}")
        return await self._people.person(thread.tenant, user)
