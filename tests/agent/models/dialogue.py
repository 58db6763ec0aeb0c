"""Conversations with the offline model over the real sandbox tools: what the agent's loop does, in its plainest form."""

import json
from dataclasses import dataclass, field
from typing import Any

from agent.models.base import Finished, Message, ModelRequest, Person, Text, TextDelta, ToolCall, ToolResult, ToolSchema
from agent.models.offline import OfflineModel
from agent.tools import ToolContext, ToolError
from tests.agent.campaigns.world import World

ANA = Person(id="U1", name="Ana", time_zone="Europe/Berlin")
BO = Person(id="U2", name="Bo", time_zone="Europe/Berlin")

EXTRA_TOOLS = tuple(
    ToolSchema(
        name=name,
        description=name,
        parameters={
            "type": "object",
            "properties": {each: {"type": "string"} for each in names},
            "required": list(names),
        },
    )
    for name, names in {
        "make_report": ("campaigns", "period"),
        "schedule_summary": ("when",),
        "list_schedules": (),
        "cancel_schedule": ("name",),
    }.items()
)


@dataclass
class Dialogue:
    """A thread. `replies` answers tools that the sandbox does not have, and `script` overrides any tool by name."""

    world: World
    approve: bool = False
    extra: tuple[ToolSchema, ...] = ()
    script: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    rounds: int = 0

    async def say(self, *texts: str, author: Person = ANA) -> str:
        """Send messages in order, let the model work to its answer, and return that."""
        self.messages += [user(text, author) for text in texts]
        return await self.answer()

    async def notice(self, text: str) -> str:
        """Let the system say something."""
        self.messages.append(Message(role="user", parts=(Text(text=text),), notice=True))
        return await self.answer()

    async def answer(self) -> str:
        """Run the open turn; `calls` and `results` are then those of this turn."""
        self.calls, self.results, self.rounds = [], [], 0
        while True:
            self.rounds += 1
            assert self.rounds < 8, "the model does not come to an end"
            message = await self.step()
            if not message.tool_calls:
                return message.text
            await self.run(message.tool_calls)

    async def step(self) -> Message:
        """One call of the model; its text was streamed as it is in the message."""
        events = [event async for event in OfflineModel().stream(self.request())]
        finished = events[-1]
        assert isinstance(finished, Finished)
        assert all(isinstance(event, TextDelta) for event in events[:-1])
        assert "".join(event.text for event in events[:-1] if isinstance(event, TextDelta)) == finished.message.text
        self.messages.append(finished.message)
        return finished.message

    async def run(self, calls: tuple[ToolCall, ...]) -> None:
        results = tuple([await self.result(call) for call in calls])
        self.calls += calls
        self.results += results
        self.messages.append(Message(role="tool", parts=results))

    async def result(self, call: ToolCall) -> ToolResult:
        if call.name in self.script:
            scripted = self.script[call.name]
            content = scripted if isinstance(scripted, str) else json.dumps(scripted)
            return ToolResult(call_id=call.id, name=call.name, content=content, is_error=content.startswith("error"))
        tool, ctx = self.world.tools.get(call.name), self.context(call)
        try:
            if tool.permission == "ask" and not self.approve:
                assert tool.evidence is not None
                shown = await tool.evidence(ctx, **tool.check(call.arguments))
                waiting = {"status": "awaiting_approval", "approval_id": f"ap-{call.id}", "summary": shown.title}
                return ToolResult(call_id=call.id, name=call.name, content=json.dumps(waiting))
            return ToolResult(call_id=call.id, name=call.name, content=await tool.run(call.arguments, ctx))
        except ToolError as error:
            return ToolResult(call_id=call.id, name=call.name, content=str(error), is_error=True)

    def context(self, call: ToolCall) -> ToolContext:
        return self.world.context(key=call.id)

    def request(self) -> ModelRequest:
        tools = (*self.world.tools.schemas, *self.extra)
        return ModelRequest(system="", messages=tuple(self.messages), tools=tools, now=self.world.now)

    def called(self, *but: str) -> list[tuple[str, dict[str, Any]]]:
        """The calls of the last turn but those of list_campaigns."""
        return [(call.name, call.arguments) for call in self.calls if call.name not in {"list_campaigns", *but}]


def user(text: str, author: Person = ANA) -> Message:
    return Message(role="user", parts=(Text(text=text),), author=author)
