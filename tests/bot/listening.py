"""A model that only listens, and times of messages."""

import asyncio
from collections.abc import AsyncIterator

from agent.models.base import Finished, Message, ModelEvent, ModelRequest, Text, TextDelta


class Listener:
    """A model that answers with a dot and keeps what it was shown."""

    name = "listener"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        await self.gate.wait()
        text = f"Answer {len(self.requests)}."
        yield TextDelta(text=text)
        yield Finished(message=Message(role="assistant", parts=(Text(text=text),)), stop="end")

    async def close(self) -> None:
        return None

    @property
    def shown(self) -> list[tuple[str, bool, str]]:
        """The author, whether it was only heard, and the words, of each person's message of the last request."""
        return [
            (message.author.name if message.author else "", message.heard, message.text)
            for message in self.requests[-1].messages
            if message.role == "user" and not message.notice
        ]


def later(ts: str, seconds: float) -> str:
    """A timestamp so many seconds after another one."""
    whole, _, micros = ts.partition(".")
    return f"{int(whole) + int(seconds)}.{micros}"
