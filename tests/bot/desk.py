"""The Slack channel at work in one thread of the local Slack, without a turn around it."""

import itertools
from datetime import UTC, datetime
from typing import Any

from agent.channel import Draft
from agent.models.base import Person
from agent.thread import Thread
from bot.clients import Clients
from bot.credentials import OneWorkspace
from bot.emulator import Emulator
from bot.emulator.client import EmulatorClient
from bot.render import SlackChannel
from bot.render.pacing import MemoryPacer

TOKEN = "xoxb-delivery-tests"
ADA = Person(id="U0ADA", name="Ada", time_zone="Europe/Berlin")


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

    def __init__(self, emulator: Emulator, people: EmulatorClient, root: str, *, deadline_s: float = 1) -> None:
        self.people = people
        self.api_url = emulator.api_url
        self.slack = emulator.slack
        self.root = root
        self.thread = Thread(tenant="T0NORTHWIND", channel="C0CAMPAIGNS", root=root)
        clients = Clients(OneWorkspace(TOKEN, api_url=emulator.api_url), api_url=emulator.api_url, timeout_s=2)
        pacer = MemoryPacer(clock=itertools.count(step=10).__next__)  # nobody waits here: test_pacing is about that
        self.channel = SlackChannel(clients, deadline_s=deadline_s, pacer=pacer)

    async def ours(self) -> list[dict[str, Any]]:
        thread = await self.people.messages("#campaigns", thread_ts=self.root)
        return [message for message in thread if message["user"] == "U0THREADLINE"]

    async def text(self) -> str:
        return "".join(
            block["text"] for message in await self.ours() for block in message["blocks"] if block["type"] == "markdown"
        )

    async def streamed(
        self, *pieces: str, notes: Jotted, draft: Draft | None = None, said: str = "", expires: int | None = None
    ) -> Draft | None:
        """Stream pieces; the stream runs out before piece number `expires`. `said` is what was said before them."""

        async def so_far() -> str:
            return said

        stream = self.channel.stream(self.thread, ADA, delivery_id="d", draft=draft, notes=notes, so_far=so_far)
        for number, piece in enumerate(pieces):
            if number == expires:
                await self.people.advance_clock(301)
            stream._shown_at = 0.0  # as if the pause between two pieces were long
            await stream.append(piece)
        return await stream.pause()
