"""OpenAI's Chat Completions API, through its own SDK, at OpenAI or any compatible endpoint.

Chat Completions and not Responses, because the compatible servers (vLLM, llama.cpp, gateways) speak the former, and because it
keeps no state at the provider: the thread is ours.
"""

import asyncio
import base64
import importlib
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

from agent.models.base import Image, Message, ModelError, ModelEvent, ModelRequest, TextDelta, ToolResult, Usage
from agent.models.draft import Draft, Stop
from agent.models.failures import translated
from agent.models.wording import NOTICE, present, turns, worded

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "max_tokens",
    "content_filter": "refusal",
}


class OpenAIModel:
    """A model by the endpoint's id for it. `timeout_s` is the longest silence inside a stream.

    `limit_field` names the request's field for `max_tokens`: OpenAI's reasoning models refuse the old name, and old compatible
    servers ignore the new one. Retries are the caller's.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str | None = None,
        timeout_s: float = 120.0,
        limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens",
    ) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_s = timeout_s
        self._limit_field = limit_field
        self._client: Any = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Make one call; see `Model.stream`."""
        draft = Draft()
        arguments = {**_arguments(self._model, request), self._limit_field: request.max_tokens}
        try:
            client = await self._connected()
            async with await client.chat.completions.create(**arguments, stream=True) as chunks:
                async for chunk in chunks:
                    for delta in _take(draft, chunk):
                        yield delta
            yield draft.finished()
        except ModelError:
            raise
        except Exception as error:
            raise translated(error, provider="OpenAI") from error

    async def close(self) -> None:
        """Close the connections; a further call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> Any:
        if self._client is None:
            # 0.6 s, in which the event loop would beat no heart.
            sdk = await asyncio.to_thread(importlib.import_module, "openai")
            self._client = sdk.AsyncOpenAI(
                api_key=self._api_key,
                base_url=self._base_url,
                max_retries=0,
                timeout=sdk.Timeout(self._timeout_s, connect=10.0),
            )
        return self._client


def _take(draft: Draft, chunk: Any) -> list[TextDelta]:
    draft.model = chunk.model or draft.model
    if chunk.usage is not None:
        details = chunk.usage.prompt_tokens_details
        draft.usage = Usage(
            input_tokens=chunk.usage.prompt_tokens,
            output_tokens=chunk.usage.completion_tokens,
            cached_tokens=(details.cached_tokens or 0) if details else 0,
        )
    return [delta for choice in chunk.choices for delta in _choice(draft, choice)]


def _choice(draft: Draft, choice: Any) -> list[TextDelta]:
    refusal = getattr(choice.delta, "refusal", None)
    deltas = [draft.say("text", text) for text in (choice.delta.content, refusal) if text]
    for number, call in enumerate(choice.delta.tool_calls or ()):
        key = f"call {number if call.index is None else call.index}"
        function = call.function
        draft.call(key, id_=call.id, name=function and function.name, arguments=function and function.arguments)
    if refusal:
        draft.stop = "refusal"
    elif choice.finish_reason and draft.stop is None:
        draft.stop = _STOPS.get(choice.finish_reason, "end")
    return deltas


def _arguments(model: str, request: ModelRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "model": model,
        "messages": _messages(request),
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        arguments["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    return arguments


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    if request.system.strip():
        result.append({"role": "system", "content": request.system})
    for turn in turns(request.messages):
        result += _assistant(turn) if turn[0].role == "assistant" else _user(turn)
    # The prefix up to here repeats in the next call, which is what OpenAI's own caching goes by; so the time comes last.
    if result and result[-1]["role"] == "user" and isinstance(result[-1]["content"], str):
        result[-1]["content"] += f"\n\n{present(request)}"
    else:
        result.append({"role": "user", "content": present(request)})
    return result


def _user(turn: list[Message]) -> list[dict[str, Any]]:
    results = [part for message in turn for part in message.parts if isinstance(part, ToolResult)]
    messages: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": part.call_id,
            "content": f"Error: {part.content}" if part.is_error else part.content,
        }
        for part in results
    ]
    messages += [_picture(part, part.image) for part in results if part.image is not None]
    texts = [text for message in turn if message.role == "user" for text in worded(message)]
    return [*messages, {"role": "user", "content": "\n\n".join(texts)}] if texts else messages


def _picture(result: ToolResult, image: Image) -> dict[str, Any]:
    """A tool's message holds text alone, so that its picture follows in one of the user's."""
    url = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
    told = {"type": "text", "text": f"{NOTICE} This is the picture that {result.name} read by call {result.call_id}:"}
    return {"role": "user", "content": [told, {"type": "image_url", "image_url": {"url": url}}]}


def _assistant(turn: list[Message]) -> list[dict[str, Any]]:
    texts = [text for message in turn for text in worded(message)]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for message in turn
        for call in message.tool_calls
    ]
    if not texts and not calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) or None}
    return [{**message, "tool_calls": calls} if calls else message]
