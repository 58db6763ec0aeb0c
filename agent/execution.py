"""Running one tool: what it is told, how long it may take, and what a failure of it means."""

from collections.abc import Awaitable, Callable

from pydantic_core import to_json

from agent.channel import Channel, ChannelUnavailableError
from agent.models.base import ToolCall
from agent.tools import Tool, ToolContext, ToolError
from agent.turn import PendingCall
from workflows import Effect, StepContext
from workflows.storage import StoreUnavailableError
from workflows.tracing import Tracer

TOOL_TRIES = 3
PERMANENT = (LookupError, TypeError, ValueError, AssertionError)
"""A tool that raises one of these would raise it again."""
UNKNOWN = {"status": "interrupted", "outcome": "unknown"}

BeforeTool = Callable[[str], Awaitable[None]]
"""Called with a tool's name before it runs; development uses it to slow or fail one."""


class Execution:
    """Runs tools."""

    def __init__(self, channel: Channel, tracer: Tracer, *, before_tool: BeforeTool | None = None) -> None:
        self._channel = channel
        self._tracer = tracer
        self._before_tool = before_tool

    async def run(
        self, tool: Tool, call: ToolCall, pending: PendingCall, ctx: StepContext, *, key: str
    ) -> tuple[str, bool]:
        """Its result and whether that is an error. A failure that leaves the outcome open is told as such; a read is tried again before it is given up."""
        context = await self.context(pending, ctx, key=key)
        with self._tracer.span(f"execute_tool {tool.name}", kind="tool") as span:
            span.attributes.update(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": tool.name,
                    "gen_ai.tool.call.id": call.id,
                    "effect": tool.effect.value,
                }
            )
            await ctx.emit("tool_started", tool=tool.name)
            try:
                if self._before_tool is not None:
                    await self._before_tool(tool.name)
                return await tool.run(call.arguments, context), False
            except ToolError as error:
                return to_json({"error": str(error)}).decode(), True
            except StoreUnavailableError:
                raise
            except Exception as error:
                span.attributes["error"] = f"{type(error).__name__}: {error}"
                if tool.effect is Effect.IRREVERSIBLE:
                    return to_json({**UNKNOWN, "reason": f"{type(error).__name__}: {error}"}).decode(), True
                if ctx.attempt < TOOL_TRIES and not isinstance(error, PERMANENT):
                    raise
                words = str(error) if isinstance(error, ChannelUnavailableError) else None  # made for people
                return to_json(
                    {"error": words or f"{tool.name} failed: {type(error).__name__}: {error}"}
                ).decode(), True

    async def context(self, pending: PendingCall, ctx: StepContext, *, key: str) -> ToolContext:
        """What a tool knows of a call."""
        return ToolContext(
            pending.thread.tenant, pending.asker, await ctx.now(), key, self._reporter(pending, ctx), pending.thread
        )

    def _reporter(self, pending: PendingCall, ctx: StepContext) -> Callable[[str], Awaitable[None]]:
        async def report(text: str) -> None:
            await self._channel.working(pending.thread, text)
            await ctx.emit("progress", text=text)

        return report
