"""Steps: typed async functions with what recovery needs to know about them."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, cast, get_type_hints, overload

from workflows.definition.context import StepContext
from workflows.definition.effects import Effect, Retry
from workflows.errors import DefinitionError

In = TypeVar("In")
Out = TypeVar("Out")
In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)

RESERVED = "/#[]!~@$"
"""What paths are made with; ids may not hold it."""

EffectOf = Effect | Callable[[Any], Effect]
"""An effect, or a pure function of the step's input that gives one (a tool call is as risky as its tool)."""


@dataclass(frozen=True, slots=True)
class Step(Generic[In_contra, Out_co]):
    """A step: `function(value)` or `function(value, ctx)`.

    `timeout_s` bounds each try. `reconcile(key, value, ctx)` looks for an earlier try's effect in the outside world and returns its
    result, or None. `compensate(output[, ctx])` undoes a completed step when its run fails later; it may run again under the same
    idempotency key. Without a declared effect a step is IRREVERSIBLE: safe first.
    """

    id: str
    function: Callable[..., Awaitable[Out_co]] = field(repr=False)
    input: Any
    output: Any
    takes_context: bool = False
    effect: EffectOf = Effect.IRREVERSIBLE
    retry: Retry | None = None
    timeout_s: float | None = None
    reconcile: Callable[..., Awaitable[Any]] | None = None
    compensate: Callable[..., Awaitable[Any]] | None = None

    def __call__(self, value: In_contra, ctx: StepContext | None = None) -> Awaitable[Out_co]:
        """Call the function, as a test of the step alone does."""
        return self.function(value, ctx) if self.takes_context else self.function(value)

    def effect_of(self, value: Any) -> Effect:
        """The effect of running it on `value`."""
        return self.effect if isinstance(self.effect, Effect) else self.effect(value)

    def not_started(self, error: Exception) -> bool:
        """Whether `error` proves that a try of it did nothing."""
        return self.retry is not None and isinstance(error, self.retry.not_started)

    def named(self, step_id: str) -> "Step[In_contra, Out_co]":
        """The same step under another id."""
        return replace(self, id=step_id)

    def problems(self) -> list[str]:
        """What is wrong with how it is declared."""
        found = []
        if self.effect is Effect.RECONCILE and self.reconcile is None:
            found.append(f"step {self.id!r} is RECONCILE and has no reconcile function")
        if self.effect is Effect.IRREVERSIBLE and self.retry is not None and not self.retry.not_started:
            found.append(
                f"step {self.id!r} is IRREVERSIBLE and has a retry: name in not_started=(…) the exceptions that prove nothing happened"
            )
        return found


class StepDecorator(Protocol):
    """What `step(...)` with options returns."""

    @overload
    def __call__(self, function: Callable[[In], Awaitable[Out]]) -> Step[In, Out]: ...
    @overload
    def __call__(self, function: Callable[[In, StepContext], Awaitable[Out]]) -> Step[In, Out]: ...


@overload
def step(function: Callable[[In], Awaitable[Out]], /) -> Step[In, Out]: ...
@overload
def step(function: Callable[[In, StepContext], Awaitable[Out]], /) -> Step[In, Out]: ...
@overload
def step(
    *,
    id: str | None = None,
    effect: EffectOf = ...,
    retry: Retry | None = None,
    timeout: float | None = None,
    reconcile: Callable[..., Awaitable[Any]] | None = None,
    compensate: Callable[..., Awaitable[Any]] | None = None,
) -> StepDecorator: ...
def step(
    function: Callable[..., Awaitable[Any]] | None = None,
    /,
    *,
    id: str | None = None,
    effect: EffectOf = Effect.IRREVERSIBLE,
    retry: Retry | None = None,
    timeout: float | None = None,
    reconcile: Callable[..., Awaitable[Any]] | None = None,
    compensate: Callable[..., Awaitable[Any]] | None = None,
) -> Any:
    """Make a step of an async function of one value, or of a value and a StepContext. Raises DefinitionError.

    Bound methods are fine: `step(id="call-model", effect=Effect.READ)(self.call_model)`.
    """

    def make(function: Callable[..., Awaitable[Any]]) -> Step[Any, Any]:
        name = id or getattr(function, "__name__", "").replace("_", "-")
        takes_context, input_type, output_type = _signature(function, name)
        return Step(
            name, function, input_type, output_type, takes_context, effect, retry, timeout, reconcile, compensate
        )

    return make if function is None else make(function)


def _signature(function: Callable[..., Any], name: str) -> tuple[bool, Any, Any]:
    if not inspect.iscoroutinefunction(function):
        raise DefinitionError(f"step {name!r} is not an async function")
    if not name or any(mark in name for mark in RESERVED):
        raise DefinitionError(f"a step's id must be non-empty and free of / # [ ] ! ~ @ $: {name!r}")
    parameters = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if not 1 <= len(parameters) <= 2:
        raise DefinitionError(f"step {name!r} must take a value, or a value and a StepContext")
    hints = get_type_hints(function)
    return len(parameters) > 1, hints.get(parameters[0].name, Any), cast("Any", hints.get("return", Any))
