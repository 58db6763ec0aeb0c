"""What a model call sees of a long thread."""

import pytest

from agent.messages import Transcript, added
from agent.models.base import Message, Person, Text, ToolCall, ToolResult
from agent.thread import Thread
from agent.window import PART_BYTES, WINDOW_BYTES
from bot.backends import TABLES
from workflows.storage import MemoryStore

THREAD = Thread(tenant="T1", channel="C1", root="1.1")
ADA = Person(id="U1", name="Ada")


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),), author=ADA)


def answered(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


async def window(*messages: Message, **limits: int) -> tuple[Message, ...]:
    store = MemoryStore(tables=TABLES)
    await store.open()
    rows = [
        added(THREAD, f"m{number:04}", each, position=number, run_id="r") for number, each in enumerate(messages, 1)
    ]
    await store.write(*rows)
    seen = await Transcript(store).window(THREAD, **limits)
    await store.close()
    return seen


async def test_a_thread_of_any_size_costs_a_call_no_more_than_its_window() -> None:
    messages = [each for number in range(40) for each in (said(f"{number} " + "x" * 20_000), answered("y" * 5_000))]
    seen = await window(*messages)
    size = sum(len(message.text.encode()) for message in seen)
    assert WINDOW_BYTES - 30_000 < size <= WINDOW_BYTES + PART_BYTES
    assert seen[0].role == "user"
    assert seen[-1] == messages[-1]


async def test_bytes_count_and_not_characters() -> None:
    seen = await window(*[said("\N{PILE OF POO}" * 10_000) for _ in range(20)])
    assert len(seen) == WINDOW_BYTES // 40_000


@pytest.mark.parametrize("letter", ["x", "\N{PILE OF POO}", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
async def test_of_a_part_that_is_too_long_its_beginning_is_seen_and_how_much_is_not(letter: str) -> None:
    text = letter * PART_BYTES * 2
    (seen,) = await window(said(text))
    shown, _, told = seen.text.partition("\n")
    assert text.startswith(shown)
    assert PART_BYTES - 4 <= len(shown.encode()) <= PART_BYTES
    assert f"{len(text) - len(shown):,} more characters" in told


async def test_the_newest_message_is_seen_whatever_its_size_and_a_long_turn_keeps_its_request() -> None:
    calls = Message(role="assistant", parts=(ToolCall(id="c", name="look", arguments={}),))
    result = Message(role="tool", parts=(ToolResult(call_id="c", name="look", content="z" * 90_000),))
    seen = await window(said("the request"), *[each for _ in range(5) for each in (calls, result)], limit_bytes=100_000)
    assert [message.role for message in seen] == ["user", "assistant", "tool"]
    assert seen[0].text == "the request"
    (only,) = await window(answered("earlier"), said("w" * 50_000), limit_bytes=10)
    assert only.role == "user"


async def test_a_short_thread_is_seen_as_it_is() -> None:
    messages = [said("one"), answered("two"), said("three")]
    assert list(await window(*messages)) == messages
    assert await window() == ()


@pytest.mark.parametrize("count", [4, 12])
async def test_all_results_of_the_newest_reply_are_seen_however_large_they_are(count: int) -> None:
    """Without one of them the model would ask for it again, and again."""
    calls = tuple(ToolCall(id=f"c{number}", name="read_file", arguments={}) for number in range(count))
    reply = Message(role="assistant", parts=(Text(text="I read them."), *calls))
    results = [
        Message(role="tool", parts=(ToolResult(call_id=call.id, name=call.name, content=f"{call.id} " + "x" * 99_000),))
        for call in calls
    ]
    seen = await window(said("earlier"), answered("yes"), said("compare these files"), reply, *results)
    assert seen[-2] == reply
    shown = [part for part in seen[-1].parts if isinstance(part, ToolResult)]
    assert [part.content[:3].strip() for part in shown] == [call.id for call in calls]
    assert all("more characters are left out" in part.content for part in shown)
    assert not any(part.is_error for part in shown)
    assert seen[0].role == "user"
    assert sum(len(part.content) for part in shown) <= WINDOW_BYTES // 2 + 100 * count
