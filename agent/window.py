"""What a model call sees of a thread: its last messages, none too long, in the shape that every provider takes."""

from collections.abc import Iterable, Iterator, Sequence

from pydantic_core import to_json

from agent.models.base import Message, Part, Text, ToolCall, ToolResult

WINDOW = 120
"""Messages of a thread that a model call sees; a longer thread costs a turn no more than this."""
LARGEST = 600
"""Messages of a call that has as many new ones: nothing that was said is before no call. Beyond, bytes count anyway."""
WINDOW_BYTES = 300_000
"""Of all of them, in UTF-8: at three to four bytes a token some 90,000 tokens, which every provider's window takes beside tools and guidance."""
LOST = '{"status": "not_run", "reason": "the turn ended before this call"}'
"""The result of a call whose turn ended before it had one."""
PART_BYTES = 100_000
"""Of one text or result; of a longer one a model call sees the beginning."""
LEAST_BYTES = 2_000
"""Of one result, however many there are."""


def from_reply(messages: Sequence[Message]) -> Sequence[Message]:
    """From the first message that is no tool result: the calls of those before it were cut off."""
    first = next((number for number, message in enumerate(messages) if message.role != "tool"), len(messages))
    return messages[first:]


def fitting(messages: Sequence[Message], limit_bytes: int) -> int:
    """Where the last messages begin that fit; the newest always does, and so does the newest reply with all its results."""
    room, newest = limit_bytes, min(_newest_reply(messages), len(messages) - 1)
    for number in range(len(messages) - 1, -1, -1):
        room -= sum(_bytes(part) for part in messages[number].parts)
        if room < 0 and number < newest:
            return number + 1
    return 0


def shared(messages: Sequence[Message], limit_bytes: int) -> list[Message]:
    """The messages, the results of the newest reply shortened so that all of them are seen: without one the model would ask for it again."""
    begin = _newest_reply(messages) + 1
    results = sum(isinstance(part, ToolResult) for message in messages[begin:] for part in message.parts)
    if not results:
        return list(messages)
    share = max(limit_bytes // 2 // results, LEAST_BYTES)
    return [*messages[:begin], *(shortened(message, share) for message in messages[begin:])]


def _newest_reply(messages: Sequence[Message]) -> int:
    """Where the newest reply with calls stands; past the end if there is none."""
    found = (number for number in range(len(messages) - 1, -1, -1) if messages[number].tool_calls)
    return next(found, len(messages))


def _bytes(part: Part) -> int:
    match part:
        case Text(text=text) | ToolResult(content=text):
            return len(text.encode(errors="replace"))
        case ToolCall(arguments=arguments):
            return len(to_json(arguments))
    return 200  # a line that names a file


def shortened(message: Message, result_bytes: int | None = None) -> Message:
    """A message none of whose parts is longer than a model call should see."""
    parts = tuple(_short(part, min(result_bytes or PART_BYTES, PART_BYTES)) for part in message.parts)
    return message if parts == message.parts else message.model_copy(update={"parts": parts})


def _short(part: Part, result_bytes: int) -> Part:
    if isinstance(part, Text) and (text := _beginning(part.text, PART_BYTES)) != part.text:
        return part.model_copy(update={"text": text})
    if isinstance(part, ToolResult) and (content := _beginning(part.content, result_bytes)) != part.content:
        return part.model_copy(update={"content": content})
    return part


def _beginning(text: str, limit_bytes: int) -> str:
    """As much of a text as is shown, and how much is not."""
    if len(text) <= limit_bytes // 4 or len(data := text.encode(errors="replace")) <= limit_bytes:
        return text
    kept = data[:limit_bytes].decode(errors="ignore")
    return f"{kept}\n(… {len(text) - len(kept):,} more characters are left out)"


def joined(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Providers want all results of one reply in one message, and a conversation that begins with a person."""
    joined: list[Message] = []
    for message in messages:
        if not joined and message.role != "user":
            continue
        if joined and message.role == "tool" and joined[-1].role == "tool":
            joined[-1] = joined[-1].model_copy(update={"parts": joined[-1].parts + message.parts})
        else:
            joined.append(message)
    return tuple(_answered(joined))


def _answered(messages: list[Message]) -> Iterator[Message]:
    """Every call has its result, right after it, and no result stands alone: a provider refuses any other window.

    A result belongs to its call wherever it stands: the notice of a turn that failed may have come between them. A call that was cut
    off before it had a result is said to be so.
    """
    results = [
        (number, part)
        for number, message in enumerate(messages)
        for part in message.parts
        if isinstance(part, ToolResult)
    ]
    for number, message in enumerate(messages):
        if message.role == "tool":
            continue  # told with its calls
        yield message
        if message.tool_calls:
            parts = [_result(call, number, results) for call in message.tool_calls]
            yield Message(role="tool", parts=tuple(parts))


def _result(call: ToolCall, after: int, results: list[tuple[int, ToolResult]]) -> ToolResult:
    given = next((part for number, part in results if number > after and part.call_id == call.id), None)
    return given or ToolResult(call_id=call.id, name=call.name, content=LOST, is_error=True)
