"""The Messages API's wire protocol, as far as a streaming client sees it."""

from collections.abc import Iterator
from typing import Any

from tests.wire.provider import ProviderServer, sse
from tests.wire.script import Answer, Failure

STOPS = {"end": "end_turn", "tool_calls": "tool_use", "max_tokens": "max_tokens", "refusal": "refusal"}


class AnthropicServer(ProviderServer):
    path = "/v1/messages"

    def events(self, answer: Answer) -> Iterator[bytes]:
        usage = {
            "input_tokens": answer.input_tokens - answer.cached_tokens,
            "cache_read_input_tokens": answer.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
        }
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": [],
            "usage": usage,
        }
        yield _event("message_start", message={**message, "stop_reason": None, "stop_sequence": None})
        yield _event("ping")
        index = 0
        if answer.text:
            yield from _block(
                index, {"type": "text", "text": ""}, [("text_delta", "text", text) for text in answer.text]
            )
            index += 1
        for number, call in enumerate(answer.calls, start=index):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            yield from _block(number, block, [("input_json_delta", "partial_json", piece) for piece in call.pieces])
        delta = {"stop_reason": STOPS[answer.stop], "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": answer.output_tokens})
        yield _event("message_stop")

    def error_event(self) -> bytes:
        return _event("error", error={"type": "overloaded_error", "message": "Overloaded"})

    def error_body(self, failure: Failure) -> dict[str, Any]:
        return {"type": "error", "error": {"type": failure.kind, "message": failure.message}, "request_id": "req_1"}


def _event(kind: str, **data: Any) -> bytes:
    return sse({"type": kind, **data}, event=kind)


def _block(index: int, block: dict[str, Any], deltas: list[tuple[str, str, str]]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=block)
    for kind, field, value in deltas:
        yield _event("content_block_delta", index=index, delta={"type": kind, field: value})
    yield _event("content_block_stop", index=index)
