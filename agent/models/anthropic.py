"""Anthropic's Messages API, through its own SDK."""

import asyncio
import base64
import importlib
from collections.abc import AsyncIterator
from typing import Any

from agent.models.base import (
    Message,
    ModelError,
    ModelEvent,
    ModelRequest,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    Usage,
)
from agent.models.draft import Draft, Stop
from agent.models.failures import translated
from agent.models.wording import NOTICE, present, turns, worded

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}

_CACHED = {"cache_control": {"type": "ephemeral"}}


class AnthropicModel:
    """A model by its Anthropic id. `timeout_s` is the longest silence inside a stream.

    Retries are the caller's: the SDK's own would multiply with those of the step that makes the call.
    """

    def __init__(self, model: str, *, api_key: str, base_url: str | None = None, timeout_s: float = 120.0) -> None:
        self.name = f"anthropic:{model}"
        self._model = model
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._client: Any = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Make one call; see `Model.stream`."""
        draft = Draft()
        arguments = _arguments(self._model, request)
        try:
            client = await self._connected()
            async with await client.messages.create(**arguments, stream=True) as events:
                async for event in events:
                    delta = _take(draft, event)
                    if delta is not None:
                        yield delta
            yield draft.finished()
        except ModelError:
            raise
        except Exception as error:
            raise translated(error, provider="Anthropic") from error

    async def close(self) -> None:
        """Close the connections; a further call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> Any:
        if self._client is None:
            # 1.5 s, in which the event loop would beat no heart.
            sdk = await asyncio.to_thread(importlib.import_module, "anthropic")
            self._client = sdk.AsyncAnthropic(
                api_key=self._api_key,
                base_url=self._base_url,
                max_retries=0,
                timeout=sdk.Timeout(self._timeout_s, connect=10.0),
            )
        return self._client


def _take(draft: Draft, event: Any) -> TextDelta | None:
    if event.type == "message_start":
        draft.model = event.message.model
        usage = event.message.usage
        cached = usage.cache_read_input_tokens or 0
        # Its input_tokens leaves out what came from or went into the cache; ours is all of the input, as for any provider.
        total = usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0)
        draft.usage = Usage(input_tokens=total, output_tokens=usage.output_tokens, cached_tokens=cached)
    elif event.type == "content_block_start":
        return _begin(draft, str(event.index), event.content_block)
    elif event.type == "content_block_delta":
        if event.delta.type == "text_delta" and event.delta.text:
            return draft.say(str(event.index), event.delta.text)
        if event.delta.type == "input_json_delta":
            draft.call(str(event.index), arguments=event.delta.partial_json)
    elif event.type == "message_delta":
        if event.delta.stop_reason:
            draft.stop = _STOPS.get(event.delta.stop_reason, "end")
        draft.usage = draft.usage.model_copy(update={"output_tokens": event.usage.output_tokens})
    return None


def _begin(draft: Draft, key: str, block: Any) -> TextDelta | None:
    if block.type == "tool_use":
        draft.call(key, id_=block.id, name=block.name)
    elif block.type == "text" and block.text:
        return draft.say(key, block.text)
    return None


def _arguments(model: str, request: ModelRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = {"model": model, "max_tokens": request.max_tokens, "messages": _messages(request)}
    if request.system.strip():
        arguments["system"] = [{"type": "text", "text": request.system, **_CACHED}]
    if request.tools:
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        # The cached prefix is tools, then system, then messages: without a system prompt the tools still end it.
        arguments["tools"] = tools if request.system.strip() else [*tools[:-1], {**tools[-1], **_CACHED}]
    return arguments


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    """Alternating turns, from a user's on. The last block of the conversation is marked for the cache; the time comes after it."""
    result: list[dict[str, Any]] = []
    for turn in turns(request.messages):
        blocks = [block for message in turn for block in _blocks(message)]
        if not blocks:
            continue
        # Results have to come before anything else that was said.
        blocks.sort(key=lambda block: block["type"] != "tool_result")
        role = "assistant" if turn[0].role == "assistant" else "user"
        if result and result[-1]["role"] == role:
            result[-1]["content"] += blocks
        else:
            result.append({"role": role, "content": blocks})
    if result:
        result[-1]["content"][-1] |= _CACHED
    if result and result[0]["role"] == "assistant":
        earlier = {"type": "text", "text": f"{NOTICE} Earlier messages are not shown."}
        result.insert(0, {"role": "user", "content": [earlier]})
    now = {"type": "text", "text": present(request)}
    if result and result[-1]["role"] == "user":
        result[-1]["content"].append(now)
    else:
        result.append({"role": "user", "content": [now]})
    return result


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "user":
        return [{"type": "text", "text": text} for text in worded(message)]
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            blocks.append({"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments})
        elif isinstance(part, ToolResult):
            blocks.append(
                {
                    "type": "tool_result",
                    "tool_use_id": part.call_id,
                    "content": _content(part),
                    "is_error": part.is_error,
                }
            )
        elif isinstance(part, Text) and part.text.strip():
            blocks.append({"type": "text", "text": part.text})
    return blocks


def _content(result: ToolResult) -> str | list[dict[str, Any]]:
    text = result.content or "(nothing)"
    if result.image is None:
        return text
    data = base64.b64encode(result.image.data).decode()
    source = {"type": "base64", "media_type": result.image.media_type, "data": data}
    return [{"type": "text", "text": text}, {"type": "image", "source": source}]
