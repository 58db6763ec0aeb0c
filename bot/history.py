"""The past of a thread, by conversations.replies: read once, when the agent is brought into it."""

from collections.abc import AsyncIterator
from typing import Any

from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, ChannelUnavailableError
from agent.history import Past
from agent.models.base import Message, Person, Text
from agent.people import People
from agent.thread import Thread
from bot.clients import Clients, Credentials, code_of
from bot.contents import files, words
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
        self._clients = clients
        self._posting = Posting(clients, deadline_s=8.0, pacer=pacer)
        self._people = people

    async def before(self, thread: Thread, message_id: str) -> Past:
        me = await self._clients.credentials(thread.tenant)
        found = [
            message async for message in self._messages(thread, message_id) if str(message.get("ts", "")) < message_id
        ]
        told = found if len(found) <= KEPT else [found[0], *found[-(KEPT - 1) :]]
        said = [(str(message["ts"]), await self._message(thread, message, me)) for message in told]
        return Past([(ts, message) for ts, message in said if message.parts], left_out=len(found) - len(told))

    async def _messages(self, thread: Thread, before: str) -> AsyncIterator[dict[str, Any]]:
        """Page by page, the root first. A limit that is met after the first page ends it: what was read is worth more than the wait."""
        client = await self._clients.of(thread.tenant)
        cursor = ""
        for number in range(PAGES):
            more: dict[str, Any] = {"cursor": cursor} if cursor else {}
            try:
                page = await self._posting.call(
                    client.conversations_replies(
                        channel=thread.channel, ts=thread.root, latest=before, limit=PAGE, **more
                    ),
                    tenant=thread.tenant,
                    method="conversations.replies",
                )
            except SlackApiError as error:
                raise ChannelGoneError(f"Slack: {code_of(error)}") from error
            except ChannelUnavailableError:
                if number == 0:
                    raise
                return
            for message in page.get("messages") or ():
                if isinstance(message, dict):
                    yield message
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                return

    async def _message(self, thread: Thread, message: dict[str, Any], me: Credentials) -> Message:
        text = words(message, "")[:LIMIT]
        parts = (*([Text(text=text)] if text else []), *files(message))
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
