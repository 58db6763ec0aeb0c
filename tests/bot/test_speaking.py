"""What is said stands there once and whole, whatever becomes of a call to Slack: two replicas, their database and Redis, over HTTP."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from agent.models.base import Finished, Message, ModelEvent, ModelRequest, Text, TextDelta
from bot.broadcasts import neutral
from bot.service import Service
from tests.bot.bench import HARBOR, NORTHWIND, Bench, Json, Storage
from tests.bot.reading import broadcasts, is_within, letters, read
from tests.bot.slack_scopes import METHOD_SCOPES
from tests.bot.test_slow_storage import standstill
from tests.waiting import until

WRITING = {"assistant:write", "chat:write", "files:write", "im:write", "reactions:write"}
POSTING = {name for name, scopes in METHOD_SCOPES.items() if scopes & WRITING or name.startswith("views.")}
"""Every method that shows somebody something, of those that the product calls: `test_manifest` keeps the list true."""
PIECES = [f"Piece {number}: {'so it goes on, word by word. ' * 8}" for number in range(6)]
TABLE = "\n\n| Campaign | Spend |\n|---|--:|\n" + "".join(f"| Row {number}: | {number}.50 |\n" for number in range(12))


class Speaker:
    """A model that says what it is asked for by name. `before` is awaited before each piece."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}
        self.before: Callable[[int], Awaitable[None]] | None = None
        self.spoke: set[str] = set()

    def of(self, replica: str) -> Callable[[ModelRequest], AsyncIterator[ModelEvent]]:
        """The model of one replica."""

        def stream(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.spoke.add(replica)
            return self.stream(request)

        return stream

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        asked = next(message.text for message in reversed(request.messages) if message.role == "user")
        pieces = next(pieces for name, pieces in self.said.items() if name in asked)
        for number, piece in enumerate(pieces):
            if self.before is not None:
                await self.before(number)
            yield TextDelta(text=piece)
        yield Finished(message=Message(role="assistant", parts=(Text(text="".join(pieces)),)), stop="end")


class Pair:
    """Two replicas that share the work; what Slack sends goes to either."""

    def __init__(self, bench: Bench, other: Service, speaker: Speaker) -> None:
        self.bench = bench
        self.people = bench.people
        self.other = other
        self.speaker = speaker
        self._asked = 0

    async def ask(self, *pieces: str) -> str:
        """Ask for something to be said in these pieces; returns the thread."""
        self._asked += 1
        name = f"number-{self._asked}."
        self.speaker.said[name] = list(pieces)
        return await self.bench.asked(f"@Threadline say {name}")

    async def answered(self, *pieces: str) -> list[Json]:
        """What stands in the thread once all is over."""
        root = await self.ask(*pieces)
        await self.bench.answer(root)
        await self.bench.idle()
        return await self.ours(root)

    async def ours(self, root: str) -> list[Json]:
        return [each for each in await self.people.messages("#campaigns", thread_ts=root) if each["is_bot"]]

    async def at_rest(self, root: str) -> None:
        """Nobody works in the thread any more, as Slack shows it."""
        assert (await self.people.status("#campaigns", root))["status"] == ""
        session = self.bench.emulator.slack.sessions.find("C0CAMPAIGNS", root)
        assert session is None or session.status != "processing"


@pytest.fixture
async def pair(
    tmp_path: Path, engine_database: str, redis_url: str, redis_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Pair]:
    """With no pause between two pieces of a stream, nor between two posts."""
    monkeypatch.setattr("bot.render.stream.SECONDS", 0.0)
    monkeypatch.setattr("bot.render.pacing.INTERVAL_S", 0.01)
    storage: Storage = {
        "DATABASE_URL": engine_database, "REDIS_URL": redis_url, "THREADLINE_REDIS_PREFIX": redis_prefix, "THREADLINE_DELIVERY_DEADLINE_S": "3",
    }  # fmt: skip
    speaker = Speaker()
    async with Bench(tmp_path, storage) as bench:
        other, url = await bench.replica(worker=True)
        for name, service in (("one", bench.service), ("other", other)):
            monkeypatch.setattr(service.model, "stream", speaker.of(name))
        await bench.people.set_request_url([f"{each}/slack/events" for each in (bench.url, url)])
        yield Pair(bench, other, speaker)


@pytest.mark.parametrize("table", ["", TABLE], ids=["words", "a table"])
async def test_a_stream_that_expires_at_any_boundary_of_its_pieces_loses_and_doubles_nothing(
    pair: Pair, table: str
) -> None:
    """Case 15: before each piece in turn, and before the end."""
    pieces = [*PIECES, *([table] if table else [])]
    for boundary in range(len(pieces) + 1):

        async def expire(number: int, boundary: int = boundary) -> None:
            if number == boundary:
                await pair.people.advance_clock(301)

        pair.speaker.before = expire
        (answer,) = await pair.answered(*pieces, "")  # the last is nothing but a boundary
        shown = read(answer["blocks"])
        assert [shown.count(f"Piece {number}:") for number in range(len(PIECES))] == [1] * len(PIECES), boundary
        assert [shown.count(f"Row {number}:") for number in range(12)] == [bool(table)] * 12, boundary
        assert answer["streaming"] != "streaming"
        await pair.at_rest(answer["thread_ts"])
    calls = await pair.people.calls()
    assert {call["result"].get("error") for call in calls} <= {None, "message_not_in_streaming_state"}


# A reply that is lost after the commit

Arm = Callable[[str], Awaitable[None]]


async def _once(pair: Pair, *pieces: str) -> None:
    root = await pair.ask(*pieces)
    await pair.bench.answer(root)
    await pair.bench.idle()
    (answer,) = await pair.ours(root)
    shown = read(answer["blocks"]) or answer["text"]
    assert is_within(letters("".join(pieces)), letters(shown))
    assert len(letters(shown)) < 2 * len(letters("".join(pieces)))
    await pair.at_rest(root)


async def _short(pair: Pair, lose: Arm, method: str) -> None:
    await lose(method)
    await _once(pair, "Short.")


async def _streamed(pair: Pair, lose: Arm, method: str) -> None:
    await lose(method)
    await _once(pair, *PIECES)


async def _edited(pair: Pair, lose: Arm, method: str) -> None:
    await lose(method)
    await _once(pair, *PIECES, TABLE)


async def _posted_anew(pair: Pair, lose: Arm, method: str) -> None:
    """A half that can't be edited is deleted, and the whole posted."""
    await pair.people.fault("chat.update", "error", error="edit_window_closed", times=1)
    await lose(method)
    await _once(pair, *PIECES, TABLE)


async def _as_a_file(pair: Pair, lose: Arm, method: str) -> None:
    await pair.people.fault("chat.postMessage", "error", error="invalid_blocks", times=4)
    await lose(method)
    root = await pair.ask("Short.")

    async def shared() -> bool:
        return any(each["files"] for each in await pair.ours(root))

    await until(shared, "the file")
    await pair.bench.idle()
    (answer,) = await pair.ours(root)
    assert len(answer["files"]) == 1
    await pair.people.clear_faults()


async def _greeted(pair: Pair, lose: Arm, method: str) -> None:
    await lose(method)
    await pair.bench.install()

    async def greetings() -> list[Json]:
        return [each for each in await pair.people.messages("dm:@dana") if each["is_bot"]]

    async def greeted() -> bool:
        return bool(await greetings())

    await until(greeted, "the greeting")
    await pair.bench.idle(HARBOR)
    assert len(await greetings()) == 1


async def _at_home(pair: Pair, lose: Arm, method: str) -> None:
    await lose(method)
    for _ in range(2):  # a tab is published each time it is opened
        await pair.people.open_home("@ada", "home")

    async def there() -> bool:
        return (await pair.people.views("@ada"))["home"] is not None

    await until(there, "the Home tab")


async def _in_a_dialog(pair: Pair, lose: Arm, method: str) -> None:
    """Slack keeps no key for a dialog: it stands there once, and whoever asked is told, or opens it again."""
    await lose(method)
    answer = await pair.people.command("#campaigns", "@ada", "/threadline", "settings")
    assert answer["status"] == 200
    await pair.people.command("#campaigns", "@ada", "/threadline", "settings")

    async def filled() -> bool:
        return any(
            "What should the agent know?" in str(view["blocks"]) for view in (await pair.people.views("@ada"))["views"]
        )

    await until(filled, "the settings")


async def _filled_later(pair: Pair, lose: Arm, method: str) -> None:
    """The database takes its time, so that the dialog opens first. Whoever sees it stay empty opens it again."""
    for _ in range(2):  # either replica knows then whose the workspace is
        await pair.people.command("#campaigns", "@ada", "/campaigns")
    await lose(method)

    async def opened() -> bool:
        return bool((await pair.people.views("@ada"))["views"])

    async with standstill(pair.bench):
        asking = asyncio.create_task(pair.people.command("#campaigns", "@ada", "/threadline", "settings"))
        await until(opened, "the dialog")
    assert (await asking)["status"] == 200
    await _in_a_dialog(pair, lose=_nothing, method=method)


async def _nothing(method: str) -> None:
    return None


Scenario = Callable[[Pair, Arm, str], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {
    "agents.sessions.setStatus": _streamed,
    "assistant.threads.setStatus": _streamed,
    "chat.appendStream": _streamed,
    "chat.delete": _posted_anew,
    "chat.postMessage": _short,
    "chat.startStream": _streamed,
    "chat.stopStream": _streamed,
    "chat.update": _edited,
    "conversations.open": _greeted,
    "files.completeUploadExternal": _as_a_file,
    "files.getUploadURLExternal": _as_a_file,
    "views.open": _in_a_dialog,
    "views.publish": _at_home,
    "views.update": _filled_later,
}


def test_every_method_that_shows_something_is_tried() -> None:
    assert set(SCENARIOS) == POSTING


@pytest.mark.parametrize("scenario", dict.fromkeys(SCENARIOS.values()))
async def test_a_reply_that_is_lost_after_the_commit_doubles_nothing(pair: Pair, scenario: Scenario) -> None:
    """Of each method that the scenario is about."""

    async def lose(lost: str) -> None:
        await pair.people.fault(lost, "reset_after_commit", times=1)

    for method in (name for name, each in SCENARIOS.items() if each is scenario):
        await scenario(pair, lose, method)
        assert await pair.people.faults(method) == [], f"{method}: it happened"


async def test_in_a_storm_of_429_everything_is_said_once_and_slack_is_not_asked_again_and_again(pair: Pair) -> None:
    """Case 29: four threads at once, and every method that speaks is refused."""
    storm = sorted(name for name in POSTING if name.startswith("chat.") and name != "chat.delete")
    for method in storm:
        await pair.people.fault(method, "ratelimited", times=2, retry_after=1)
    asked = [("Short.",), tuple(PIECES), (*PIECES, TABLE), ("Brief.",)]
    roots = [await pair.ask(*pieces) for pieces in asked]
    for root, pieces in zip(roots, asked, strict=True):
        await pair.bench.answer(root)
        await pair.bench.idle()
        (answer,) = await pair.ours(root)
        assert is_within(letters("".join(pieces)), letters(read(answer["blocks"])))
        assert answer["streaming"] != "streaming"
        await pair.at_rest(root)
    calls = [call for call in await pair.people.calls() if call["method"] in storm]
    assert sum(call["result"].get("error") == "ratelimited" for call in calls) <= 2 * len(storm)
    assert len(calls) < 60


# Long, wide and hostile

PARAGRAPHS = "\n\n".join(f"Paragraph {number}: {'word ' * 100}" for number in range(190))
ROWS = "\n".join(
    ["| Campaign | Spend |", "|---|--:|", *(f"| Campaign {number} | {number}.00 |" for number in range(150))]
)
ANSWERS = {
    "100,000 characters": PARAGRAPHS,
    "a table of 150 rows": f"All of them:\n\n{ROWS}\n\nThat is all.",
    "calls to everybody": "<!channel> <!here|here> <!everyone> <!subteam^S1|@team> @channel @here @Everyone <@U0BEN> " * 100,
    "control characters": "".join(f"a{chr(code)}b " for code in (*range(1, 32), 127, *range(0x80, 0xA0))) * 20,
    "NUL": "before\0after <!\0channel> " * 10,
    "directions and nothings": "pay \u202e005\u202c and \u200b\u200c\u200d\u2060\ufeff\u00ad\u061c\u2066x\u2069 @\u202ehere " * 50,
    "one word": "w" * 30_000,
    "one word of signs": "&<>\"'\\" * 3_000,
    "quotes in quotes": f"{'> ' * 10_000}deep",
    "lists in lists": "\n".join(f"{'  ' * depth}* item {depth}" for depth in range(300)),
    "open fences": "```python\n" + "x = 1\n" * 4_000 + "~~~\n```` \n" + "y = 2\n" * 2_000,
    "links": "[a|b](https://x.io/a|b) [<c>](<https://y.io/c d>) <https://z.io|<e>> [f](javascript:alert(1)) [g](data:text/html,h) ![i](vbscript:j) " * 60,
    "nothing but signs of Markdown": "*_~`[]()#>-+!|\n" * 900,
    "tables in everything": "> | a | b |\n> |---|---|\n> | c | d |\n\n* | e | f |\n  |---|---|\n  | g | h |\n\n```\n| i |\n|---|\n| j |\n```\n\n| k |\n|---|\n| l |\n",
    "white space": "a" + " \t\u00a0\u2003\u3000\n" * 4_000 + "b",
}  # fmt: skip


@pytest.mark.parametrize("kinds", [list(ANSWERS)[start::3] for start in range(3)], ids=["one", "two", "three"])
async def test_whatever_is_said_arrives_whole_within_the_limits_and_calls_nobody(pair: Pair, kinds: list[str]) -> None:
    for kind in kinds:
        said = ANSWERS[kind]
        answer = await pair.answered(*(said[start : start + 900] for start in range(0, len(said), 900)))
        for message in answer:
            assert broadcasts([message["text"], message["blocks"]]) == [], kind
            assert message["metadata"], f"{kind}: nothing is left over"
            assert message["streaming"] != "streaming", kind
        shown = read([message["blocks"] for message in answer])
        assert is_within(letters(neutral(said)), letters(shown)), kind
        numbers = r"(?:Paragraph|Campaign) (\d+)\b"
        assert re.findall(numbers, shown) == re.findall(numbers, said), kind
    calls = await pair.people.calls()
    assert [
        call["result"] for call in calls if not call["result"]["ok"] or "message_truncated" in str(call["result"])
    ] == []
    assert broadcasts([{name: each for name, each in call["args"].items() if name != "token"} for call in calls]) == []


async def test_both_replicas_speak(pair: Pair) -> None:
    """Or else nothing here would be about two of them."""
    roots = await asyncio.gather(*(pair.ask(*PIECES) for _ in range(8)))
    for root in roots:
        await pair.bench.answer(root)
    assert len(await pair.bench.idle(NORTHWIND)) == 8
    assert pair.speaker.spoke == {"one", "other"}
