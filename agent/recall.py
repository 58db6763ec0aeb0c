"""What somebody said to the agent earlier, in other conversations of the same channel or direct message: looked up when it is asked for.

Conversations don't share their memory, so nothing of it is before the model unless it looks.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent.messages import Transcript
from agent.models.base import Message
from agent.tools import Tool, ToolContext, ToolError, tool
from workflows import Effect

LOOKED = 400
"""Messages that are looked through, the newest conversations first."""
SHOWN = 30
EACH = 500
TOTAL = 6_000
"""Characters of one message, and of all."""


def recall_tools(transcript: Transcript) -> tuple[Tool, ...]:
    """The model's tool."""

    @tool(effect=Effect.READ)
    async def recall_messages(ctx: ToolContext) -> dict[str, Any]:
        """What this person said to you earlier in this channel or direct message, in other threads: the newest first.

        Look when they speak of something that is not in this conversation, such as "as I said yesterday".
        """
        if ctx.thread is None:
            raise ToolError("this only works in a conversation")
        said = await transcript.elsewhere(ctx.thread, by=ctx.asker.id, limit=LOOKED)
        return {"said_by": ctx.asker.name, "messages": list(_bounded(said))}

    return (recall_messages,)


def _bounded(said: Sequence[tuple[str, Message]]) -> Iterator[dict[str, str]]:
    room = TOTAL
    for at, message in said[:SHOWN]:
        text = message.text.strip()
        cut = text if len(text) <= EACH else f"{text[: EACH - 2]} …"
        room -= len(cut)
        if room < 0:
            return
        yield {"at": at, "said": cut}
