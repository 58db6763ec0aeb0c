"""Stories of the product's own workflows: turns of the agent, reports and summaries, with a scripted model and a channel that keeps quiet."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent.campaigns import SandboxPlatform
from agent.channel import ChannelGoneError, Delivered, Notes
from agent.guidance import Guidance
from agent.loop import Agent, make_agent
from agent.messages import arrived
from agent.models.base import (
    Finished,
    Message,
    ModelAccessError,
    ModelEvent,
    ModelRequest,
    Person,
    Text,
    TextDelta,
    ToolCall,
)
from agent.reports import Document, LostPlace, ReportDesk, ReportRequest, Reports, make_reports
from agent.thread import Thread
from agent.tools import Evidence, Tool, Toolbox, ToolContext, ToolError, tool
from bot.backends import TABLES
from tests.agent.standins import EveryoneIsThemselves, QuietChannel
from tests.recorded.kept import Story
from workflows import Effect, Engine, Workflow
from workflows.pubsub import MemoryPubSub
from workflows.storage import MemoryStore

THREAD = Thread(tenant="T1", channel="C1", root="100.1")
ANA = Person(id="U1", name="Ana", time_zone="Europe/Berlin")
Reply = str | list[ToolCall] | Exception


class Scripted:
    """Replies in order."""

    name = "scripted"

    def __init__(self, replies: list[Reply]) -> None:
        self._replies = replies

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            yield TextDelta(text=reply)
            yield Finished(message=Message(role="assistant", parts=(Text(text=reply),)), stop="end")
        else:
            yield Finished(message=Message(role="assistant", parts=tuple(reply)), stop="tool_calls")

    async def close(self) -> None:
        return None


class Publisher:
    """Posts nothing. In a channel named "gone" it can't."""

    async def publish(
        self, thread: Thread, document: Document, *, delivery_id: str, reply_url: str | None, notes: Notes
    ) -> Delivered:
        if thread.channel == "gone":
            raise ChannelGoneError("the channel was deleted", place="it is deleted")
        return Delivered(message_ids=(delivery_id,))

    async def find(self, thread: Thread, *, delivery_id: str, notes: Notes) -> Delivered | None:
        return None

    async def tell_lost(
        self, tenant: str, user_id: str, lost: LostPlace, *, delivery_id: str, notes: Notes
    ) -> Delivered:
        return Delivered(message_ids=(delivery_id,))


def _tools() -> list[Tool]:
    @tool(effect=Effect.READ)
    async def look(ctx: ToolContext, *, n: int) -> dict[str, int]:
        """Look at n."""
        if n < 0:
            raise ToolError("there is nothing below zero")
        return {"n": n}

    async def evidence(ctx: ToolContext, *, amount: int) -> Evidence:
        return Evidence(title=f"Spend {amount}", facts=(("Amount", str(amount)),))

    @tool(effect=Effect.IRREVERSIBLE, permission="ask", evidence=evidence, read_back="look")
    async def spend(ctx: ToolContext, *, amount: int) -> dict[str, int]:
        """Spend money."""
        return {"spent": amount}

    return [look, spend]


@dataclass(frozen=True, slots=True)
class Product:
    """An engine with the product's workflows on it."""

    engine: Engine
    agent: Agent
    reports: Reports
    channel: QuietChannel

    @property
    def workflows(self) -> tuple[Workflow[Any, Any], ...]:
        return (*self.agent.workflows, *self.reports.workflows)

    async def say(self, text: str, message_id: str = "100.1") -> None:
        await self.engine.signal_with_start(
            self.agent.turn, tenant="T1", key=THREAD.key, name="message", dedup_key=message_id, payload={"id": message_id},
            writes=[arrived(THREAD, message_id, Message(role="user", parts=(Text(text=text),), author=ANA))],
        )  # fmt: skip

    async def decide(self, decision: str) -> None:
        """Once it is asked for."""
        async with asyncio.timeout(10):
            while not self.channel.cards:
                await asyncio.sleep(0.005)
        approval = self.channel.cards[-1].approval_id
        assert await self.engine.decide(
            self.agent.turn, tenant="T1", approval_id=approval, decision=decision, by="UBOSS"
        )

    async def report(self, **changes: Any) -> None:
        request = ReportRequest(channel="C1", root="100.1", asker=ANA, period="October 2026").model_copy(update=changes)
        await self.engine.start(self.reports.report, request, tenant="T1")

    async def summarise(self) -> None:
        entry = await ReportDesk(self.engine, self.reports).schedule(
            "every monday 9:00", tenant="T1", channel="C1", asker=ANA
        )
        await self.engine.schedules.run_now(entry.name, tenant="T1")


def product(replies: list[Reply]) -> Product:
    """The product, not yet open."""
    store, channel = MemoryStore(tables=TABLES), QuietChannel()
    engine = Engine(store=store, pubsub=MemoryPubSub(), poll_s=0.02)
    agent = make_agent(
        store=store, model=Scripted(replies), toolbox=Toolbox(_tools()), guidance=Guidance(), channel=channel,
        people=EveryoneIsThemselves(), tracer=engine.tracer, max_iterations=3,
    )  # fmt: skip
    made = Product(engine, agent, make_reports(SandboxPlatform(store), Publisher(), store=store), channel)
    engine.add(*made.workflows)
    return made


def _look(*numbers: int) -> list[ToolCall]:
    return [ToolCall(id=f"c{n}", name="look", arguments={"n": n}) for n in numbers]


SPEND = [ToolCall(id="s1", name="spend", arguments={"amount": 5})]


async def _asked(here: Product) -> None:
    await here.say("How are things?")


async def _approved(here: Product) -> None:
    await here.say("Spend five.")
    await here.decide("approved")


async def _denied(here: Product) -> None:
    await here.say("Spend five.")
    await here.decide("denied")


STORIES: dict[str, tuple[list[Reply], Callable[[Product], Awaitable[None]]]] = {
    "turn, an answer": (["Well."], _asked),
    "turn, tools in parallel": ([_look(1, 2, -3), _look(4), "Well."], _asked),
    "turn, a tool nobody knows": ([[ToolCall(id="x", name="nothing", arguments={})], "Well."], _asked),
    "turn, approved": ([[*_look(1), *SPEND], "It needs an approval.", "It is spent."], _approved),
    "turn, denied": ([SPEND, "It needs an approval.", "It is not spent."], _denied),
    "turn, out of iterations": ([_look(1), _look(2), _look(3)], _asked),
    "turn, no access to the model": ([ModelAccessError("the key was revoked")], _asked),
    "report": ([], lambda here: here.report()),
    "report, nothing of that name": ([], lambda here: here.report(campaigns=("No such campaign",))),
    "report, the channel is gone": ([], lambda here: here.report(channel="gone")),
    "summary": ([], lambda here: here.summarise()),
}


async def play(name: str) -> Story:
    """What came of it."""
    replies, begin = STORIES[name]
    here = product(list(replies))
    async with here.engine:
        await begin(here)
        await _over(here.engine)
        return await Story.of(here.engine.store)


async def _over(engine: Engine) -> None:
    async with asyncio.timeout(20):
        while any(row.state.live for row in await engine.store.runs(limit=1000)):
            await asyncio.sleep(0.01)


def flows(name: str) -> tuple[Workflow[Any, Any], ...]:
    """The product's workflows, as they are today."""
    return product([]).workflows
