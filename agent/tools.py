"""Tools: typed functions the model may call, with what they do to the world and whether they ask first."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import to_json

from agent.models.base import Message, Part, Person, Text, ToolResult, ToolSchema
from agent.thread import Thread
from workflows import Effect

TIMEOUT_S = 60.0
"""Whoever hangs holds a worker's slot and the thread; what takes longer is background work."""
Permission = Literal["run", "ask", "block"]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool knows of its call. `idempotency_key` is the same on every try; `now` is aware UTC; `thread` is where it was asked."""

    tenant: str
    asker: Person
    now: datetime
    idempotency_key: str
    report: Callable[[str], Awaitable[None]]
    thread: Thread | None = None


class Evidence(BaseModel):
    """What an approver is shown before a call runs: one line, and the facts as label and value, in order.

    `spend_micros`: what it may add to a day's spend, in the account's currency; what is not known to be little counts as much (None).
    """

    model_config = ConfigDict(frozen=True)

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    spend_micros: int | None = None


class ToolError(Exception):
    """The call can't be done as asked; the text goes to the model, which can mend it. Nothing has happened."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `evidence` describes a call to its approvers; `read_back` names the tool that shows what really happened.

    `untrusted`: its results are words from outside. Once such words are before the model, whatever acts on the world asks first.
    `timeout_s`: how long a call may take.
    """

    name: str
    description: str
    parameters: type[BaseModel]
    function: Callable[..., Awaitable[Any]] = field(repr=False)
    effect: Effect
    permission: Permission = "run"
    evidence: Callable[..., Awaitable[Evidence]] | None = None
    read_back: str | None = None
    untrusted: bool = False
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        if self.effect is Effect.IRREVERSIBLE and self.read_back is None:
            raise ValueError(f"tool {self.name} is irreversible and names no read-back tool")
        if self.permission == "ask" and self.evidence is None:
            raise ValueError(f"tool {self.name} asks first and has no evidence to show")

    def asks(self, *, untrusted: bool) -> bool:
        """Whether a call waits for an approval: always, or because there were words from outside before the model."""
        return self.permission == "ask" or (untrusted and self.effect not in (Effect.PURE, Effect.READ))

    async def shown(self, arguments: dict[str, Any], ctx: ToolContext) -> Evidence:
        """What an approver is shown of a call; of a tool that has no words of its own for it, its arguments. Raises ToolError."""
        checked = self.check(arguments)
        if self.evidence is not None:
            return await self.evidence(ctx, **checked)
        facts = tuple((name, to_json(value).decode()) for name, value in checked.items())
        return Evidence(title=self.name.replace("_", " ").capitalize(), facts=facts)

    @property
    def schema(self) -> ToolSchema:
        """The tool as the model sees it."""
        return ToolSchema(name=self.name, description=self.description, parameters=_json_schema(self.parameters))

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The validated arguments. Raises ToolError naming each field that is wrong."""
        try:
            model = self.parameters.model_validate(arguments)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors())
            raise ToolError(f"invalid arguments for {self.name}: {wrong}") from None
        return {name: getattr(model, name) for name in type(model).model_fields}

    async def run(self, arguments: dict[str, Any], ctx: ToolContext) -> str:
        """Validate, call, and return the result as JSON text. Raises ToolError, TimeoutError, and whatever the function raises."""
        checked = self.check(arguments)
        try:
            async with asyncio.timeout(self.timeout_s) as limit:
                result = await self.function(ctx, **checked)
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"it took longer than {self.timeout_s:g} s") from None
            raise
        return to_json(result).decode()


@cache
def _json_schema(parameters: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's parameters. Every request to a model carries all of them, and pydantic builds a schema anew each time."""
    schema = parameters.model_json_schema()
    schema.pop("title", None)
    return schema


def tool(
    *,
    effect: Effect,
    permission: Permission = "run",
    evidence: Callable[..., Awaitable[Evidence]] | None = None,
    read_back: str | None = None,
    untrusted: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    """Make a tool of `async def name(ctx: ToolContext, *, argument: type = default) -> JSON-able`.

    The name and the description are the function's; the JSON schema comes from the annotations (use
    `Annotated[type, Field(description=...)]`). `evidence` takes the same arguments and describes the call to an approver.
    """

    def make(function: Callable[..., Awaitable[Any]]) -> Tool:
        name = function.__name__
        description = inspect.cleandoc(function.__doc__ or "")
        if not description:
            raise ValueError(f"tool {name} has no docstring to describe it to the model")
        return Tool(
            name,
            description,
            _parameters(function),
            function,
            effect,
            permission,
            evidence,
            read_back,
            untrusted,
            timeout_s,
        )

    return make


def _parameters(function: Callable[..., Awaitable[Any]]) -> type[BaseModel]:
    signature = inspect.signature(function, eval_str=True)
    fields: dict[str, Any] = {
        name: (parameter.annotation, ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in list(signature.parameters.items())[1:]
    }
    return create_model(f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


class Toolbox:
    """The tools of one configuration, by name. Raises ValueError on two of one name or a read-back that is missing."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for each in tools:
            if each.name in self._tools:
                raise ValueError(f"two tools are called {each.name}")
            self._tools[each.name] = each
        for each in self._tools.values():
            if each.read_back is not None and each.read_back not in self._tools:
                raise ValueError(f"{each.name} names the read-back tool {each.read_back}, which is not there")

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool:
        """The tool called `name`. Raises ToolError naming those that exist."""
        try:
            return self._tools[name]
        except KeyError:
            raise ToolError(f"there is no tool {name!r}; there are: {', '.join(sorted(self._tools))}") from None

    def untrusted(self, messages: Iterable[Message]) -> bool:
        """Whether there are words from outside among them: of people of another company, said to others, quoted, or what a tool brings."""
        return any(
            message.heard
            or (message.author is not None and message.author.outside)
            or any(self._brings_words(part) for part in message.parts)
            for message in messages
        )

    def _brings_words(self, part: Part) -> bool:
        if isinstance(part, ToolResult):
            return part.name in self._tools and self._tools[part.name].untrusted
        return isinstance(part, Text) and part.quoted

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """All tools as the model sees them, except blocked ones."""
        return tuple(each.schema for each in self._tools.values() if each.permission != "block")
