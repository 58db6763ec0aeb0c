"""Agent sessions: that the agent is at work in a thread, where people see it and can stop it, and that it is not any more.

A session is `processing` from the first step of a turn on, which is where Slack's own Stop button comes from, and `active` when the answer stands
there. Slack keeps `processing` for an hour and would take it back by itself only with the end of a stream. The words beside it, "is thinking…", go by
`assistant.threads.setStatus`, which Slack retires in February 2027: from then on there is the session alone.
"""

import structlog
from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, ChannelUnavailableError, Notes
from agent.thread import Thread
from bot.broadcasts import neutral
from bot.clients import code_of
from bot.render.posting import Posting
from bot.render.text import shortened

STATUS_LIMIT = 100
TITLE_LIMIT = 80
"""Characters, of the 200 that Slack takes."""
RETIRED = {"deprecated_endpoint", "method_deprecated", "unknown_method"}
PATIENT_TRIES = 5
"""Tries of a delivery that wait until Slack takes the session's end. The answer is there already: it is not to be held up for ever."""


class Sessions:
    """Begins and ends sessions. All of it is best effort but the end."""

    def __init__(self, posting: Posting) -> None:
        self._posting = posting
        self._wordless = False

    async def working(self, thread: Thread, text: str, *, about: str) -> None:
        """Show that the agent works, and on what. `about`: a turn begins, and its conversation is called so where people look for it again."""
        if about:
            await self._begin(thread, about)
        await self._say(thread, text)

    async def rest(self, thread: Thread, notes: Notes) -> None:
        """The agent is done here. Raises ChannelUnavailableError while Slack does not take it, for a few tries of the delivery."""
        if not thread.root:  # a session is a thread's, and what stands at the head of a channel has none
            return
        await self._say(thread, "")
        try:
            await self._set(thread, "active")
        except ChannelUnavailableError as error:
            if notes.attempt <= PATIENT_TRIES:
                raise
            _missed(error)
        except (SlackApiError, ChannelGoneError) as error:
            _missed(error)

    async def _begin(self, thread: Thread, about: str) -> None:
        try:
            await self._set(thread, "processing", title=shortened(neutral(about), TITLE_LIMIT))
        except (SlackApiError, ChannelUnavailableError, ChannelGoneError) as error:
            _missed(error)

    async def _set(self, thread: Thread, status: str, *, title: str = "") -> None:
        client = await self._posting.client(thread.tenant)
        named = {"title": title} if title else {}
        request = client.agents_sessions_setStatus(
            channel_id=thread.channel, thread_ts=thread.root, status=status, **named
        )
        await self._posting.call(request, tenant=thread.tenant, method="agents.sessions.setStatus")

    async def _say(self, thread: Thread, text: str) -> None:
        """Slack itself takes the words back when the app posts, and after two minutes; not for an edit."""
        if self._wordless:
            return
        try:
            client = await self._posting.client(thread.tenant)
            status = shortened(neutral(text), STATUS_LIMIT)
            request = client.assistant_threads_setStatus(
                channel_id=thread.channel, thread_ts=thread.root, status=status
            )
            await self._posting.call(request, tenant=thread.tenant, method="assistant.threads.setStatus")
        except SlackApiError as error:
            self._wordless = code_of(error) in RETIRED
            _missed(error)
        except (ChannelUnavailableError, ChannelGoneError) as error:
            _missed(error)


def _missed(error: Exception) -> None:
    structlog.get_logger().debug("session_not_shown", error=f"{type(error).__name__}: {error}")
