"""The agent's own turn: the loop of `agent.loop` on the engine, with a model that needs no time and a channel that takes everything."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from agent.guidance import Guidance
from agent.loop import make_agent
from agent.messages import arrived
from agent.models.base import Finished, Message, ModelEvent, ModelRequest, Person, Text, TextDelta, ToolCall
from agent.thread import Thread
from agent.tools import Toolbox, ToolContext, tool
from tests.agent.standins import EveryoneIsThemselves, QuietChannel
from tests.bench.engine_turn import ANSWER, TENANT, running
from tests.bench.subject import Session, Shape, Subject
from workflows import Effect
from workflows.pubsub import PubSub

QUESTION = "How did all campaigns do last week, and which of them should I look at first?"


class Scripted:
    """Asks for the tool calls of a shape, then answers. Which call is next is read from the conversation, as a model does."""

    name = "scripted"

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        asked, each = _asked(request), self._shape.calls
        if asked < self._shape.rounds * each:
            calls = [ToolCall(id=f"c{n}", name="look", arguments={"n": n}) for n in range(asked + 1, asked + 1 + each)]
            yield Finished(message=Message(role="assistant", parts=tuple(calls)), stop="tool_calls")
        else:
            yield TextDelta(text=ANSWER)
            yield Finished(message=Message(role="assistant", parts=(Text(text=ANSWER),)), stop="end")

    async def close(self) -> None:
        return None


def _asked(request: ModelRequest) -> int:
    """The number of the last call in the conversation."""
    for message in reversed(request.messages):
        if message.tool_calls:
            return max(int(call.arguments["n"]) for call in message.tool_calls)
    return 0


@tool(effect=Effect.READ)
async def look(ctx: ToolContext, *, n: int) -> dict[str, Any]:
    """Look at campaign n."""
    return {"campaign": "Brand Search", "n": n, "spend_micros": 123_456_789, "clicks": 4321}


class AgentTurn(Subject):
    """One message, the model's answers and the tool calls they ask for, and the delivered answer."""

    def __init__(self, bus: str, pubsub: Callable[[], PubSub], shape: Shape) -> None:
        self.kind = f"agent ({bus})"
        self.shape = shape
        self._pubsub = pubsub
        self._model = Scripted(shape)

    @asynccontextmanager
    async def open(self, dsn: str, *, clients: int) -> AsyncIterator[Session]:
        """Open the engine with the agent on it."""
        async with running(dsn, self._pubsub(), clients=clients) as (store, engine, sink):
            agent = make_agent(
                store=store, model=self._model, toolbox=Toolbox([look]), guidance=Guidance(), channel=QuietChannel(),
                people=EveryoneIsThemselves(), tracer=engine.tracer, max_iterations=self.shape.rounds + 5,
            )  # fmt: skip
            engine.add(*agent.workflows)
            await engine.open()
            sink.start()

            async def turn() -> None:
                thread = Thread(tenant=TENANT, channel=uuid4().hex, root="100.1")
                message = Message(role="user", parts=(Text(text=QUESTION),), author=Person(id="U1", name="U1"))
                outcome = await engine.signal_with_start(
                    agent.turn, tenant=TENANT, key=thread.key, name="message", dedup_key=thread.key, payload={"id": thread.root},
                    writes=[arrived(thread, thread.root, message)],
                )  # fmt: skip
                assert outcome.run_id is not None
                await store.ended(outcome.run_id)

            yield Session(turn, sink.flush)
