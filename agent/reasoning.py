"""The model call: the thread window goes in, text streams out as it comes, one assistant message is recorded."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from agent.approvals import settle_all
from agent.attribution import attributed
from agent.channel import Channel, Task, TaskState
from agent.guidance import Guidance
from agent.messages import Transcript, added
from agent.models.base import (
    Finished,
    Message,
    Model,
    ModelAccessError,
    ModelRequest,
    ModelRequestError,
    TextDelta,
    ToolResult,
    Usage,
)
from agent.pictures import Pictures, suspects, without
from agent.preferences import PreferenceBook
from agent.tools import Toolbox
from agent.turn import CallRef, Turn
from agent.usage import used
from agent.window import LARGEST, WINDOW
from workflows import Retry, StepContext
from workflows.storage import Store
from workflows.tracing import Tracer

RETRY = Retry(times=4, base=0.5, cap=20, non_retryable=(ModelRequestError, ModelAccessError))
"""Overload, rate limits and lost connections are tried again, never sooner than the provider says."""

UNTITLED = "A conversation"
ENDS: dict[str, str] = {"max_tokens": "cut", "refusal": "refused"}
"""The states of turns whose last call ended so; after any other end there is an answer."""


class Reasoning:
    """Calls the model, one iteration of a turn."""

    def __init__(
        self,
        *,
        store: Store,
        model: Model,
        toolbox: Toolbox,
        guidance: Guidance,
        channel: Channel,
        tracer: Tracer,
        max_iterations: int,
        max_tokens: int,
        pictures: Pictures | None = None,
    ) -> None:
        self._store = store
        self._model = model
        self._toolbox = toolbox
        self._guidance = guidance
        self._channel = channel
        self._tracer = tracer
        self._transcript = Transcript(store)
        self._preferences = PreferenceBook(store)
        self._max_iterations = max_iterations
        self._max_tokens = max_tokens
        self._pictures = pictures

    async def call_model(self, turn: Turn, ctx: StepContext) -> Turn:
        """The turn after one model call: with calls to run, or with its answer. Cut off, it is made again from the start."""
        settling = await settle_all(self._store, self._channel, turn.thread.tenant, turn.settling)
        preferences = await self._preferences.of(turn.thread.tenant)
        limit = max(WINDOW, min(turn.fresh + WINDOW // 2, LARGEST))
        window = await self._transcript.window(turn.thread, limit=limit)
        if not turn.iteration and not any(map(_asks, window[-1:])):
            return turn.model_copy(update={"state": "idle"})  # deleted in the very moment it was taken in
        await self._channel.working(turn.thread, "is thinking…", about="" if turn.iteration else _about(window))
        seen = (
            window
            if self._pictures is None
            else await self._pictures.shown(turn.thread, window, patient=ctx.attempt <= RETRY.times)
        )
        request = ModelRequest(
            system=self._guidance.text(preferences.guidance),
            messages=seen,
            tools=attributed(self._toolbox.schemas, turn.askers),
            now=await ctx.now(),
        )
        delivery_id = turn.draft.delivery_id if turn.draft else f"{ctx.run_id}:answer"
        stream = self._channel.stream(
            turn.thread, turn.asker, delivery_id=delivery_id, draft=turn.draft, notes=ctx, so_far=self._said(turn, ctx)
        )
        if turn.iteration:
            await stream.tasks(_ended(window))
        if turn.said:
            await stream.append("\n\n")
        finished = await self._answered(turn, request, stream, ctx)
        await stream.tasks([_task(call.id, call.name, "in_progress") for call in finished.message.tool_calls])
        draft = await stream.pause()
        message_id = f"{ctx.run_id}:{turn.iteration}"
        ctx.write(added(turn.thread, message_id, finished.message, position=turn.position, run_id=ctx.run_id))
        ctx.write(used(turn.thread.tenant, message_id, finished.usage, model=self._model.name, at=request.now))
        guests = any(each.outside for each in (turn.asker, *turn.askers))
        after = self._after(turn, finished, message_id, untrusted=guests or self._toolbox.untrusted(window))
        return after.model_copy(update={"draft": draft or turn.draft, "settling": settling})

    async def is_task_complete(self, turn: Turn) -> Turn:
        """The turn with its budget applied: out of iterations or tokens, it ends. What is shown of one that ends early needs an edit, which says so."""
        spent = turn.usage.input_tokens + turn.usage.output_tokens
        if turn.state == "going" and (turn.iteration >= self._max_iterations or spent >= self._max_tokens):
            turn = turn.model_copy(update={"state": "exhausted"})
        if turn.ended_early and turn.draft is not None:
            return turn.model_copy(update={"draft": turn.draft.model_copy(update={"live": False})})
        return turn

    def _said(self, turn: Turn, ctx: StepContext) -> Callable[[], Awaitable[str]]:
        async def said() -> str:
            spoken = [message.text.strip() for message in await self._transcript.said(turn.thread, ctx.run_id)]
            return "\n\n".join(filter(None, spoken))

        return said

    async def _answered(self, turn: Turn, request: ModelRequest, stream: Any, ctx: StepContext) -> Finished:
        """The model's whole answer. A request that is refused for its pictures is made again without those that are new in it: one that is
        damaged would else end each turn that follows in its thread.
        """
        heard: list[str] = []
        try:
            return await self._listen(request, stream, ctx, heard=heard)
        except ModelRequestError:
            refused = suspects(request.messages)
            if self._pictures is None or heard or not refused:
                raise
        blind = request.model_copy(update={"messages": without(request.messages, refused)})
        finished = await self._listen(blind, stream, ctx, heard=heard)
        for write in await self._pictures.refused(turn.thread, refused):
            ctx.write(write)
        return finished

    async def _listen(self, request: ModelRequest, stream: Any, ctx: StepContext, *, heard: list[str]) -> Finished:
        """One call. `heard` is filled with what it says as it comes."""
        with self._tracer.span(f"chat {self._model.name}", kind="model") as span:
            span.attributes["gen_ai.operation.name"] = "chat"
            span.attributes["gen_ai.request.model"] = self._model.name
            async with aclosing(self._model.stream(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    if isinstance(event, TextDelta):
                        heard.append(event.text)
                        await stream.append(event.text)
                        await ctx.emit("token", text=event.text)
                    else:
                        span.attributes["gen_ai.usage.input_tokens"] = event.usage.input_tokens
                        span.attributes["gen_ai.usage.output_tokens"] = event.usage.output_tokens
                        span.attributes["gen_ai.response.finish_reasons"] = [event.stop]
                        return event
        raise ModelRequestError(f"{self._model.name} ended its stream without finishing")

    def _after(self, turn: Turn, finished: Finished, message_id: str, *, untrusted: bool) -> Turn:
        calls = tuple(
            CallRef(
                message_id=message_id,
                index=index,
                tool=call.name,
                position=turn.position + 1 + index,
                untrusted=untrusted,
            )
            for index, call in enumerate(finished.message.tool_calls)
        )
        return turn.model_copy(
            update={
                "position": turn.position + 1 + len(calls),
                "iteration": turn.iteration + 1,
                "calls": calls,
                "approved": (),
                "fresh": 0,
                "said": turn.said or bool(finished.message.text.strip()),
                "state": "going" if calls else ENDS.get(finished.stop, "answered"),
                "usage": _sum(turn.usage, finished.usage),
            }
        )


def _asks(message: Message) -> bool:
    return message.role != "assistant"


def _about(window: Sequence[Message]) -> str:
    """What the conversation is called: how it began, as far as is seen."""
    return next(
        (message.text.partition("\n")[0] for message in window if message.text and not message.notice), UNTITLED
    )


def _task(call_id: str, tool: str, state: TaskState) -> Task:
    return Task(id=call_id, title=tool.replace("_", " ").capitalize(), state=state)


def _ended(window: Sequence[Message]) -> list[Task]:
    """How the last calls ended, from their results."""
    last = next((number for number in range(len(window) - 1, -1, -1) if window[number].tool_calls), len(window))
    results = [part for message in window[last:] for part in message.parts if isinstance(part, ToolResult)]
    return [_task(result.call_id, result.name, "error" if result.is_error else "complete") for result in results]


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
    )
