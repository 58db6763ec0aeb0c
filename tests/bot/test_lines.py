"""Case 11: lines of one thought in a direct message are one turn, and what was said in an earlier conversation can be looked up."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from agent.models.base import Finished, Message, ModelEvent, ModelRequest, Text, ToolCall, ToolResult
from tests.bot.bench import NORTHWIND, Bench, envelope, message_event
from tests.waiting import until

DM = "dm:@ada"
BOTH = pytest.mark.parametrize("storage", ["sqlite", "servers"], indirect=True)


class Listener:
    """A model that says what it was told since it last spoke, once it may: `free` is set at first unless a test holds it."""

    name = "listener"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.free = asyncio.Event()
        self.calls: list[ToolCall] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        await self.free.wait()
        if self.meanwhile:
            await self.meanwhile()
        if self.calls:
            yield Finished(message=Message(role="assistant", parts=(self.calls.pop(),)), stop="tool_calls")
            return
        words = " + ".join(told(request)) or "nothing"
        yield Finished(message=Message(role="assistant", parts=(Text(text=f"I heard: {words}."),)), stop="end")

    @property
    def asked(self) -> bool:
        return bool(self.requests)


def told(request: ModelRequest) -> list[str]:
    since = [number for number, message in enumerate(request.messages) if message.role == "assistant"]
    return [each.text for each in request.messages[since[-1] + 1 if since else 0 :] if each.role == "user"]


@pytest.fixture
def model(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Listener:
    listener = Listener()
    monkeypatch.setattr(bench.service.model, "stream", listener.stream)
    return listener


async def say(bench: Bench, text: str) -> str:
    ts = await bench.asked(text, channel=DM)
    await bench.settled(ts=ts)
    return ts


@BOTH
async def test_lines_that_follow_while_the_first_is_worked_on_are_one_turn(bench: Bench, model: Listener) -> None:
    first = await say(bench, "about Brand Search")
    await until(lambda: model.asked, "the turn to begin at once: a lone line waits for nothing")
    others = [await say(bench, "its CTR"), await say(bench, "for last week")]
    model.free.set()
    answer = await bench.answer(first, DM)
    runs = await bench.idle()
    assert len(runs) == 1
    assert "I heard: its CTR + for last week." in answer["plain"]
    assert [len(await bench.replies(each, DM)) for each in (first, *others)] == [1, 0, 0]


async def test_a_line_after_the_answer_begins_a_conversation_of_its_own(bench: Bench, model: Listener) -> None:
    """Cases 9 and 10, too: it is answered in its own thread, and knows nothing of the one before."""
    model.free.set()
    first = await say(bench, "my code is 42")
    await bench.answer(first, DM)
    await bench.idle()
    second = await say(bench, "what is my code?")
    answer = await bench.answer(second, DM)
    assert answer["plain"].startswith("I heard: what is my code?.")
    assert not any("42" in str(message) for message in model.requests[-1].messages)


async def test_a_line_after_the_answer_is_seen_is_its_own_although_the_turn_has_not_ended(
    bench: Bench, model: Listener
) -> None:
    """The answer stands there a moment before its run is over: whoever writes then has read it."""
    first = await say(bench, "my code is 42")
    await until(lambda: model.asked, "the turn")
    await bench.people.fault("agents.sessions.setStatus", "delay", delay_s=2, times=1)  # the end of the turn
    model.free.set()
    await bench.answer(first, DM)
    second = await say(bench, "what is my code?")
    answer = await bench.answer(second, DM)
    assert answer["plain"].startswith("I heard: what is my code?.")
    await bench.idle()


async def test_a_line_long_after_the_first_is_a_thought_of_its_own(bench: Bench, model: Listener) -> None:
    first = await say(bench, "make it short")
    await until(lambda: model.asked, "the first turn")
    await bench.people.advance_clock(21)
    second = await say(bench, "which campaigns do we have?")
    model.free.set()
    await bench.answer(first, DM)
    await bench.answer(second, DM)


async def test_a_line_is_taken_in_once_and_by_whichever_replica_it_comes(bench: Bench, model: Listener) -> None:
    _, url = await bench.replica()
    first = await say(bench, "about Brand Search")
    await until(lambda: model.asked, "the turn")
    channel = next(iter(await bench.people.messages(DM)))["channel"]
    whole, _, fraction = first.partition(".")
    line = message_event("its CTR", ts=f"{int(whole) + 3}.{fraction}", channel=channel, user="U0ADA", channel_type="im")
    for target in (url, bench.url, url):
        assert (await bench.post_json(envelope(line), url=target)).status == 200
    model.free.set()
    answer = await bench.answer(first, DM)
    assert "I heard: its CTR." in answer["plain"]
    assert (await bench.post_json(envelope(line), url=url)).status == 200, "also after the turn has ended"
    assert len(await bench.idle()) == 1


async def test_edits_deletions_and_the_word_stop_reach_the_line_where_it_went(bench: Bench, model: Listener) -> None:
    first = await say(bench, "about Brand Search")
    await until(lambda: model.asked, "the turn")
    gone, changed = await say(bench, "and delete it"), await say(bench, "its CRT")
    await bench.people.delete_message(DM, "@ada", gone)
    await bench.people.edit_message(DM, "@ada", changed, "its CTR")
    await bench.settled()
    model.free.set()
    answer = await bench.answer(first, DM)
    assert "I heard: its CTR." in answer["plain"]
    await bench.idle()
    model.free.clear()
    model.requests.clear()
    second = await say(bench, "and now all campaigns")
    await until(lambda: model.asked, "the second turn")
    await say(bench, "stop")
    assert "stopped" in (await bench.answer(second, DM))["plain"].lower()


async def test_the_word_stop_is_about_what_is_being_worked_on_however_long_ago_it_was_begun(
    bench: Bench, model: Listener
) -> None:
    first = await say(bench, "about Brand Search")
    await until(lambda: model.asked, "the turn")
    await bench.people.advance_clock(300)
    last = await say(bench, "stop")
    assert (await bench.answer(first, DM))["plain"].startswith("Stopped, as you asked.")
    await bench.idle()
    assert await bench.replies(last, DM) == []


async def test_somebody_who_writes_on_and_on_is_answered(bench: Bench, model: Listener) -> None:
    """Every call of the model meets one more line, eight in all: the first five calls are one answer."""
    lines = [f"line {number}" for number in range(1, 9)]

    async def more() -> None:
        if lines:
            await say(bench, lines.pop(0))

    model.meanwhile = more
    model.free.set()
    first = await say(bench, "line 0")
    answers = [await bench.answer(first, DM, count=number) for number in (1, 2)]
    runs = await bench.idle()
    assert [f"line {number}" in answers[0]["plain"] for number in range(6)] == [True] * 5 + [False]
    assert all(f"line {number}" in answers[1]["plain"] for number in range(5, 9))
    assert len(runs) == 2


async def looked_up(bench: Bench, model: Listener, channel: str, text: str, *, user: str) -> str:
    """What the tool told when the model looked."""
    model.calls.append(ToolCall(id="call-1", name="recall_messages", arguments={}))
    root = await bench.asked(text, channel=channel, user=user)
    await bench.answer(root, channel)
    await bench.idle()
    results = [
        part.content
        for message in model.requests[-1].messages
        for part in message.parts
        if isinstance(part, ToolResult)
    ]
    return results[-1]


async def test_what_a_person_said_in_an_earlier_conversation_can_be_looked_up_and_nothing_else(
    bench: Bench, model: Listener
) -> None:
    model.free.set()
    for text, channel, user in (
        ("my code is 42", DM, "@ada"),
        ("my code is 7", "dm:@ben", "@ben"),
        ("@Threadline our mascot is a heron", "#campaigns", "@ada"),
        (f"a long story {'x' * 9_000}", DM, "@ada"),
    ):
        await bench.answer(await bench.asked(text, channel=channel, user=user), channel)
    said = json.loads(await looked_up(bench, model, DM, "what is my code?", user="@ada"))
    assert said["said_by"] == "Ada Keller"
    texts = [each["said"] for each in said["messages"]]
    assert texts[-1] == "my code is 42"
    assert len(texts) == 2
    assert all(len(text) <= 500 for text in texts)
    assert "heron" in await looked_up(bench, model, "#campaigns", "@Threadline what was our mascot?", user="@ada")
    assert (
        json.loads(await looked_up(bench, model, "#campaigns", "@Threadline and for me?", user="@ben"))["messages"]
        == []
    )
    assert await bench.service.engine.runs(tenant=NORTHWIND)
