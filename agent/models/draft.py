"""The answer under construction: pieces of text and of tool calls, in the order they began."""

import json
from dataclasses import dataclass, field
from typing import Literal

from agent.models.base import Finished, Message, ModelUnavailableError, Part, Text, TextDelta, ToolCall, Usage

Stop = Literal["end", "tool_calls", "max_tokens", "refusal"]


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)


def whole(text: str) -> str:
    """`text` with half surrogates replaced: they are no characters and can be neither stored nor sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Draft:
    """Collects a stream. A tool call whose arguments are no JSON object is never handed on.

    It can't be passed to the tool either way: with the arguments dropped or replaced, a tool whose arguments are all optional
    would run as something nobody asked for. So the whole call to the model fails as unavailable, and is made again; if the
    answer was cut by `max_tokens`, the unfinished tool call is left out instead.
    """

    def __init__(self) -> None:
        self._parts: dict[str, list[str] | _Call] = {}
        self.stop: Stop | None = None
        self.usage = Usage()
        self.model = ""

    def say(self, key: str, text: str) -> TextDelta:
        """Add to the text block `key`."""
        block = self._parts.setdefault(key, [])
        assert isinstance(block, list)
        block.append(whole(text))
        return TextDelta(text=whole(text))

    def call(self, key: str, *, id_: str | None = None, name: str | None = None, arguments: str | None = None) -> None:
        """Add what is known of the tool call `key`; `arguments` is the next piece of its JSON."""
        call = self._parts.setdefault(key, _Call())
        assert isinstance(call, _Call)
        call.id = id_ or call.id
        call.name = name or call.name
        call.pieces.append(whole(arguments or ""))

    def finished(self) -> Finished:
        """The end of the stream. Raises ModelUnavailableError if the stream had no end or a tool call is malformed."""
        if self.stop is None:
            raise ModelUnavailableError("the model's answer was cut off before its end")
        parts = [part for block in self._parts.values() if (part := self._part(block)) is not None]
        calls = any(isinstance(part, ToolCall) for part in parts)
        # Some OpenAI-compatible servers say "stop" after tool calls.
        stop: Stop = "tool_calls" if calls and self.stop == "end" else self.stop
        if stop == "tool_calls" and not calls:
            stop = "end"
        return Finished(
            message=Message(role="assistant", parts=tuple(parts)), stop=stop, usage=self.usage, model=self.model
        )

    def _part(self, block: "list[str] | _Call") -> Part | None:
        if isinstance(block, list):
            text = "".join(block)
            return Text(text=text) if text else None
        try:
            arguments = json.loads(whole(json.dumps(json.loads("".join(block.pieces) or "{}"), ensure_ascii=False)))
        except ValueError:
            arguments = None
        if isinstance(arguments, dict) and block.id and block.name:
            return ToolCall(id=block.id, name=block.name, arguments=arguments)
        if self.stop == "max_tokens":
            return None
        raise ModelUnavailableError(
            f"the model asked for the tool {block.name!r} with arguments that are no JSON object; it has to be asked again"
        )
