"""An answer appears once and whole, whatever was cut off before: the Slack channel against the local Slack."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from agent.channel import ChannelUnavailableError, Draft
from agent.models.base import Person
from agent.thread import Thread
from bot.clients import Clients, OneWorkspace
from bot.emulator import Emulator, EmulatorConfig
from bot.emulator.client import EmulatorClient
from bot.render import SlackChannel

TOKEN = "xoxb-delivery-tests"
ADA = Person(id="U0ADA", name="Ada", time_zone="Europe/Berlin")
WORDS = "All of this is said exactly once and in its order. "


class Jotted:
    """Notes of a step, kept in memory: what a StepContext commits."""

    def __init__(self, *, attempt: int = 1, recovered: bool = False, intent_at: datetime | None = None) -> None:
        self.intent_at: datetime | None = intent_at or datetime.now(UTC)
        self.recovered = recovered
        self.attempt = attempt
        self.fence = 1
        self.kept: dict[str, Any] = {}

    async def note(self, name: str, value: Any) -> None:
        self.kept.setdefault(name, value)

    def noted(self, name: str) -> Any:
        return self.kept.get(name)

    def notes(self, prefix: str) -> dict[str, Any]:
        return {name: value for name, value in self.kept.items() if name.startswith(prefix)}


class Desk:
    """A thread of the local Slack, and the channel that answers in it."""

    def __init__(self, emulator: Emulator, people: EmulatorClient, root: str) -> None:
        self.people = people
        self.api_url = emulator.api_url
        self.root = root
        self.thread = Thread(tenant="T0NORTHWIND", channel="C0CAMPAIGNS", root=root)
        clients = Clients(OneWorkspace(TOKEN, api_url=emulator.api_url), api_url=emulator.api_url, timeout_s=2)
        self.channel = SlackChannel(clients, deadline_s=1)

    async def ours(self) -> list[dict[str, Any]]:
        thread = await self.people.messages("#campaigns", thread_ts=self.root)
        return [message for message in thread if message["user"] == "U0THREADLINE"]

    async def text(self) -> str:
        return "".join(
            block["text"] for message in await self.ours() for block in message["blocks"] if block["type"] == "markdown"
        )

    async def streamed(self, *pieces: str, notes: Jotted, draft: Draft | None = None) -> Draft | None:
        stream = self.channel.stream(self.thread, ADA, delivery_id="d", draft=draft, notes=notes)
        for piece in pieces:
            await stream.append(piece)
        return await stream.pause()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    emulator = Emulator(EmulatorConfig(signing_secret="s", bot_token=TOKEN), environment="test")
    async with emulator, EmulatorClient(emulator.url) as people:
        root = await people.post_message("#campaigns", "@ada", "hello")
        yield Desk(emulator, people, root)


@pytest.mark.parametrize("said", [WORDS * 3, WORDS * 120 + "\n\n" + WORDS * 120, "@here is 12. " * 800])
async def test_what_was_streamed_is_not_said_again(desk: Desk, said: str) -> None:
    half = len(said) // 2
    draft = await desk.streamed(said[:half], notes=Jotted())
    draft = await desk.streamed(said[half:], notes=Jotted(), draft=draft)
    await desk.channel.deliver(desk.thread, said, delivery_id="d", draft=draft, notes=Jotted())
    shown = " ".join(message["plain"] for message in await desk.ours())
    assert shown.count("exactly once") == said.count("exactly once")
    assert shown.count("is 12.") == said.count("is 12.")
    assert not [message for message in await desk.ours() if message["streaming"] == "streaming"]


async def test_half_an_answer_never_passes_for_the_whole(desk: Desk) -> None:
    """Killed between the end of the stream and the edit that completes it."""
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    assert draft is not None
    cut_off = draft.model_copy(update={"live": False})
    await desk.people.fault("chat.update", "http_500", times=1)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, WORDS * 9, delivery_id="d", draft=cut_off, notes=Jotted())
    assert await desk.channel.find(desk.thread, delivery_id="d", notes=Jotted(recovered=True)) is None
    await desk.channel.deliver(
        desk.thread, WORDS * 9, delivery_id="d", draft=cut_off, notes=Jotted(attempt=2, recovered=True)
    )
    (answer,) = await desk.ours()
    assert answer["plain"].count("exactly once") == 9


async def test_a_post_whose_reply_was_lost_is_found_however_late_it_is_looked_for(desk: Desk) -> None:
    began = datetime.now(UTC)
    await desk.people.fault("chat.postMessage", "reset_after_commit", times=1)
    notes = Jotted(intent_at=began)
    with pytest.raises(ChannelUnavailableError):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    notes.attempt = 2
    notes.kept["sending-0-1.9"] = (began + timedelta(minutes=10)).isoformat()  # much later tries came to nothing
    await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=notes)
    assert len(await desk.ours()) == 1


async def test_absence_is_not_believed_before_the_deadline_is_over(desk: Desk) -> None:
    with pytest.raises(ChannelUnavailableError, match="not certain"):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=Jotted(recovered=True))
    late = Jotted(recovered=True, intent_at=datetime.now(UTC) - timedelta(seconds=5))
    await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=late)
    assert len(await desk.ours()) == 1


async def test_a_sender_that_was_paused_does_not_send(desk: Desk) -> None:
    paused = Jotted(intent_at=datetime.now(UTC) - timedelta(seconds=3))
    with pytest.raises(ChannelUnavailableError, match="too late"):
        await desk.channel.deliver(desk.thread, "Once.", delivery_id="d", draft=None, notes=paused)
    assert await desk.ours() == []


async def test_a_stream_whose_start_was_lost_is_adopted(desk: Desk) -> None:
    await desk.people.fault("chat.startStream", "reset_after_commit", times=1)
    notes = Jotted()
    draft = await desk.streamed(WORDS * 4, notes=notes)
    assert draft is not None
    assert draft.message_id is None
    await desk.channel.deliver(desk.thread, WORDS * 4, delivery_id="d", draft=draft, notes=Jotted())
    (answer,) = await desk.ours()
    assert answer["plain"].count("exactly once") == 4
    assert answer["metadata"]["event_payload"]["delivery_id"] == "d"


async def test_a_draft_somebody_deleted_is_posted_anew(desk: Desk) -> None:
    draft = await desk.streamed(WORDS * 4, notes=Jotted())
    assert draft is not None
    await AsyncWebClient(token=TOKEN, base_url=desk.api_url).chat_delete(
        channel="C0CAMPAIGNS", ts=draft.message_id or ""
    )
    await desk.channel.deliver(desk.thread, WORDS * 4, delivery_id="d", draft=draft, notes=Jotted())
    assert (await desk.ours())[-1]["plain"].count("exactly once") == 4
