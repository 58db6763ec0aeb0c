"""The Chat Completions API's wire protocol, as far as a streaming client sees it."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from tests.wire.provider import ProviderServer, sse
from tests.wire.script import Answer, Failure

STOPS = {"end": "stop", "tool_calls": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


class OpenAIServer(ProviderServer):
    path = "/v1/chat/completions"

    def events(self, answer: Answer) -> Iterator[bytes]:
        yield _chunk(answer, {"role": "assistant", "content": ""})
        for text in answer.text:
            yield _chunk(answer, {"content": text})
        for index, call in enumerate(answer.calls):
            function = {"name": call.name, "arguments": ""}
            yield _chunk(
                answer, {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
            )
        # Pieces of parallel calls come interleaved, told apart by their index alone.
        for pieces in zip_longest(*(call.pieces for call in answer.calls)):
            for index, piece in enumerate(pieces):
                if piece is not None:
                    yield _chunk(answer, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield _chunk(answer, {}, finish_reason=STOPS[answer.stop])
        usage = {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        }
        yield sse({**_frame(answer), "choices": [], "usage": usage})
        yield sse("[DONE]")

    def error_event(self) -> bytes:
        return sse(
            {"error": {"type": "server_error", "code": None, "message": "The server is overloaded", "param": None}}
        )

    def error_body(self, failure: Failure) -> dict[str, Any]:
        return {"error": {"type": failure.kind, "code": failure.kind, "message": failure.message, "param": None}}


def _frame(answer: Answer) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": answer.model}


def _chunk(answer: Answer, delta: dict[str, Any], *, finish_reason: str | None = None) -> bytes:
    return sse({**_frame(answer), "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
