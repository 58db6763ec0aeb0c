"""The offline model: a Model without a network, without a key and without chance."""

import re
from collections.abc import AsyncIterator
from hashlib import blake2b

from agent.models.base import Finished, Message, ModelEvent, ModelRequest, Part, Text, TextDelta, ToolCall, Usage
from agent.models.offline.plan import Plan, plan

_GROUP = re.compile(r"(?:\S+\s*){1,3}")
_LETTERS_PER_TOKEN = 4


class OfflineModel:
    """Understands usual requests about campaigns, calls the tools it is offered, and answers from their results only.

    It reads nothing but the messages of the request: the same request gives the same events. It raises nothing.
    """

    name = "offline"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The next calls, or the answer in groups of words."""
        step = plan(request)
        for piece in _GROUP.findall(step.answer):
            yield TextDelta(text=piece)
        message = Message(role="assistant", parts=_parts(step, request))
        usage = Usage(
            input_tokens=sum(len(each.model_dump_json()) for each in request.messages) // _LETTERS_PER_TOKEN,
            output_tokens=len(message.model_dump_json()) // _LETTERS_PER_TOKEN,
        )
        yield Finished(message=message, stop="tool_calls" if step.calls else "end", usage=usage, model=self.name)

    async def close(self) -> None:
        """Nothing to free."""


def _parts(step: Plan, request: ModelRequest) -> tuple[Part, ...]:
    if not step.calls:
        return (Text(text=step.answer),)
    digest = _digest(request.messages)
    return tuple(
        ToolCall(id=f"call_{digest}_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(step.calls)
    )


def _digest(messages: tuple[Message, ...]) -> str:
    """Of the whole window: the same words later in a thread get other ids, the same call made again gets the same."""
    made = blake2b(digest_size=8)
    for message in messages:
        made.update(message.model_dump_json().encode())
    return made.hexdigest()
