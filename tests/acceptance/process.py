"""A process of the product that can be told to kill itself at an exact point: `THREADLINE_TEST_KILL=17` is the 17th point it passes.

Points stand before and after every storage operation of a run, every call to Slack, every tool and within every model call, so that
"killed between these two lines" can be enumerated. `THREADLINE_TEST_TRACE` names a file that gets a line per point and per execution.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from agent.models.base import ModelEvent, ModelRequest
from agent.tools import Tool, ToolContext
from bot import roles
from bot.cli import main
from bot.dev import tool_faults
from bot.render.posting import Posting
from bot.service import Service
from bot.settings import Settings

TRACE = os.environ.get("THREADLINE_TEST_TRACE", "")
KILL_AT = int(os.environ.get("THREADLINE_TEST_KILL", "0"))
RUN_OPERATIONS = ("load", "step", "end", "suspend", "inbox", "read")


class Points:
    """Counts the points a process passes."""

    passed = 0

    @classmethod
    def at(cls, name: str) -> None:
        cls.passed += 1
        cls.line(f"point {cls.passed} {name}")
        if cls.passed == KILL_AT:
            os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def line(text: str) -> None:
        if TRACE:
            with Path(TRACE).open("a") as file:
                file.write(f"{os.getpid()} {text}\n")


def around(name: str, operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def pointed(*arguments: Any, **options: Any) -> Any:
        Points.at(f"before {name}")
        result = await operation(*arguments, **options)
        Points.at(f"after {name}")
        return result

    return pointed


def _claimed(operation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def claim(*arguments: Any, **options: Any) -> Any:
        rows = await operation(*arguments, **options)
        if rows:
            Points.at("after claim")
        return rows

    return claim


class PointedModel:
    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = model.name

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        Points.line("executed model")
        first = True
        async for event in self._model.stream(request):
            if first:
                Points.at("within model")
                first = False
            yield event

    async def close(self) -> None:
        await self._model.close()


def _pointed_tool(tool: Tool) -> None:
    function = tool.function

    async def pointed(ctx: ToolContext, **arguments: Any) -> Any:
        Points.line(f"executed tool {tool.name} {tool.effect.value}")
        Points.at(f"within {tool.name}, before")
        result = await function(ctx, **arguments)
        Points.at(f"within {tool.name}, after")
        return result

    object.__setattr__(tool, "function", pointed)


class FaultyService(Service):
    """The service whose tools the local Slack may slow or fail."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **{**options, "before_tool": tool_faults(settings.slack_api_url)})


class PointedService(FaultyService):
    """The service with points. Only what a worker does has them."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(settings, **options)
        for name in RUN_OPERATIONS:
            setattr(self.store, name, around(name, getattr(self.store, name)))
        setattr(self.store, "claim", _claimed(self.store.claim))  # noqa: B010 — as above

    def _agent(self, model: Any, before_tool: Any) -> Any:
        return super()._agent(PointedModel(model), before_tool)

    def _tools(self) -> Any:
        tools = list(super()._tools())
        for tool in tools:
            _pointed_tool(tool)
        return tools


def run() -> None:
    setattr(roles, "Service", FaultyService)  # noqa: B010 — a typed assignment would say that tests replace it
    if sys.argv[1:] == ["worker"] and (KILL_AT or TRACE):
        setattr(roles, "Service", PointedService)  # noqa: B010 — as above
        original = Posting.call

        async def call(self: Posting, request: Any, **about: Any) -> Any:
            Points.at("before slack")
            result = await original(self, request, **about)
            Points.at("after slack")
            return result

        setattr(Posting, "call", call)  # noqa: B010 — as above
    main()


if __name__ == "__main__":
    run()
