"""The builder. A committed workflow is frozen data: an array of entries."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import GenericAlias
from typing import Any, Generic, Literal, TypeVar, cast, get_type_hints

from workflows.callbacks import SILENT, Callbacks
from workflows.errors import BoundaryError, DefinitionError
from workflows.step import RESERVED, In_contra, Out_co, Step
from workflows.values import fits, name_of

In = TypeVar("In")
Out = TypeVar("Out")
Next = TypeVar("Next")
Item = TypeVar("Item")

Condition = Callable[[Out], bool] | Callable[[Out, Any], bool]
LoopCondition = Callable[[Out], bool] | Callable[[Out, int], bool] | Callable[[Out, int, Any], bool]


@dataclass(frozen=True, slots=True)
class Then:
    """Run one node."""

    id: str
    node: Any


@dataclass(frozen=True, slots=True)
class Parallel:
    """Run all nodes on the same value; the output is a mapping by node id."""

    id: str
    nodes: tuple[Any, ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """Run the first node, or all nodes, whose condition holds."""

    id: str
    arms: tuple[tuple[Callable[..., bool], Any], ...]
    otherwise: Any = None
    mode: Literal["first", "all"] = "first"


@dataclass(frozen=True, slots=True)
class ForEach:
    """Run the node once per item, `concurrency` at a time; the output keeps the order."""

    id: str
    node: Any
    concurrency: int = 1


@dataclass(frozen=True, slots=True)
class Loop:
    """Run the node, then again while `condition(output, count)` is `wanted`."""

    id: str
    node: Any
    condition: Callable[..., bool]
    wanted: bool
    max_iterations: int


@dataclass(frozen=True, slots=True)
class Map:
    """Reshape the value; pure, no record."""

    id: str
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Sleep:
    """Suspend for seconds, or until a time; either may be a function of the value."""

    id: str
    seconds: float | Callable[[Any], float] | None = None
    until: datetime | Callable[[Any], datetime] | None = None


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Suspend until a signal of `name` arrives; its payload is the output. After `timeout_s`, `otherwise` is."""

    id: str
    name: str
    schema: Any
    timeout_s: float | None = None
    otherwise: Any = None


Entry = Then | Parallel | Branch | ForEach | Loop | Map | Sleep | WaitFor


@dataclass(frozen=True)
class Workflow(Generic[In_contra, Out_co]):
    """A committed workflow. It satisfies the step interface, so it nests.

    `on_failure` names a workflow that is started, with a `FailedRun`, in the commit that ends a run failed, cancelled or dead.
    `state` is the type of the run's state (a pydantic model with defaults, or a TypedDict with total=False); a run's state is that of its
    outermost workflow.
    """

    id: str
    version: str
    entries: tuple[Entry, ...]
    input: Any = field(compare=False)
    output: Any = field(compare=False)
    on_failure: str | None = None
    max_attempts: int = 5
    state: Any = field(default=None, compare=False)
    callbacks: Callbacks = field(default=SILENT, compare=False)


class Builder(Generic[In, Out]):
    """A workflow under construction: takes `In`, has `Out` so far."""

    def __init__(self, workflow_id: str, version: str, **options: Any) -> None:
        self._id = workflow_id
        self._version = version
        self._options = options
        self._entries: list[Entry] = []

    def _add(self, entry: Entry) -> "Builder[In, Any]":
        self._entries.append(entry)
        return self

    def _auto(self, kind: str) -> str:
        return f"{kind}-{len(self._entries)}"

    def then(self, node: "Step[Out, Next] | Workflow[Out, Next]") -> "Builder[In, Next]":
        """Run `node` on the value so far."""
        return self._add(Then(node.id, node))

    def parallel(
        self, *nodes: "Step[Out, Any] | Workflow[Out, Any]", limit: int | None = None
    ) -> "Builder[In, dict[str, Any]]":
        """Run all nodes at once on the value so far, at most `limit` at a time.

        One failure fails the entry after the others have settled; a suspended one suspends it, and finished ones are not run again.
        """
        return self._add(Parallel(self._auto("parallel"), nodes, limit))

    def branch(
        self,
        *arms: "tuple[Condition[Out], Step[Out, Next] | Workflow[Out, Next]]",
        otherwise: "Step[Out, Next] | Workflow[Out, Next] | None" = None,
        mode: Literal["first", "all"] = "first",
    ) -> "Builder[In, Next]":
        """Run the first arm whose condition holds ("first"), or all of them in parallel ("all": a mapping by id).

        A condition is a pure function of the value, or of the value and the run's state.
        """
        return self._add(Branch(self._auto("branch"), arms, otherwise, mode))

    def foreach(
        self: "Builder[In, list[Item]]", node: "Step[Item, Next] | Workflow[Item, Next]", *, concurrency: int = 1
    ) -> "Builder[In, list[Next]]":
        """Run `node` once per item of a list; each item has its own record, so a crash repeats no finished item."""
        return self._add(ForEach(node.id, node, concurrency))

    def dowhile(
        self,
        node: "Step[Out, Out] | Workflow[Out, Out]",
        condition: LoopCondition[Out],
        *,
        max_iterations: int,
    ) -> "Builder[In, Out]":
        """Run `node`, and again while `condition(output[, iterations[, state]])` holds. Passing `max_iterations` is an IterationLimitError."""
        return self._add(Loop(node.id, node, condition, wanted=True, max_iterations=max_iterations))

    def dountil(
        self,
        node: "Step[Out, Out] | Workflow[Out, Out]",
        condition: LoopCondition[Out],
        *,
        max_iterations: int,
    ) -> "Builder[In, Out]":
        """Run `node`, and again until `condition(output[, iterations[, state]])` holds."""
        return self._add(Loop(node.id, node, condition, wanted=False, max_iterations=max_iterations))

    def map(self, function: Callable[[Out], Next] | Callable[[Out, Any], Next]) -> "Builder[In, Next]":
        """Reshape the value with a pure function of it, or of it and the run's state; costs no commit."""
        return self._add(Map(self._auto("map"), function))

    def sleep(self, seconds: float | Callable[[Out], float]) -> "Builder[In, Out]":
        """Sleep durably: the run is suspended and no process holds it."""
        return self._add(Sleep(self._auto("sleep"), seconds=seconds))

    def sleep_until(self, until: datetime | Callable[[Out], datetime]) -> "Builder[In, Out]":
        """Sleep durably until an aware datetime."""
        return self._add(Sleep(self._auto("sleep"), until=until))

    def wait_for(
        self, name: str, schema: type[Next], *, timeout: float | None = None, otherwise: Any = None
    ) -> "Builder[In, Next]":
        """Suspend until a signal called `name` arrives; its payload, checked against `schema`, is the output.

        After `timeout` seconds the output is `otherwise`; that it timed out is a record, never inferred.
        """
        return self._add(WaitFor(self._auto(f"wait-{name}"), name, schema, timeout, otherwise))

    def commit(self) -> Workflow[In, Out]:
        """Check every boundary, ids and options, and freeze. Raises DefinitionError, BoundaryError."""
        if not self._entries:
            raise DefinitionError(f"workflow {self._id!r} has no entries")
        _check_ids(self._id, self._entries)
        _check_nodes(self._entries)
        input_type, output_type = _check_boundaries(self._id, self._entries)
        return Workflow(self._id, self._version, tuple(self._entries), input_type, output_type, **self._options)


class Start(Builder[Any, Any]):
    """A workflow with no entry yet: its first node gives it its input type."""

    def then(self, node: Step[In, Out] | Workflow[In, Out]) -> Builder[In, Out]:
        """Begin with `node`."""
        return super().then(cast("Any", node))


def workflow(
    workflow_id: str,
    *,
    version: str = "1",
    on_failure: str | None = None,
    max_attempts: int = 5,
    state: Any = None,
    callbacks: Callbacks = SILENT,
) -> Start:
    """Begin a workflow. Runs are pinned to the `version` they began with; raise it when the shape changes. Raises DefinitionError.

    `max_attempts` bounds how often a run is claimed without making progress before it is dead. `state` is the type of the values that
    its steps share (`ctx.state`, `ctx.set_state`). `callbacks` are told of its runs.
    """
    if not workflow_id or any(mark in workflow_id for mark in RESERVED):
        raise DefinitionError(f"a workflow's id must be non-empty and free of / # [ ] ! ~ @ $: {workflow_id!r}")
    return Start(
        workflow_id, version, on_failure=on_failure, max_attempts=max_attempts, state=state, callbacks=callbacks
    )


def nodes_of(entry: Entry) -> tuple[Any, ...]:
    """The steps and workflows an entry may run."""
    if isinstance(entry, Parallel):
        return entry.nodes
    if isinstance(entry, Branch):
        return tuple(node for _, node in entry.arms) + ((entry.otherwise,) if entry.otherwise else ())
    return (entry.node,) if isinstance(entry, Then | ForEach | Loop) else ()


def _check_ids(workflow_id: str, entries: list[Entry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        for name in [node.id for node in nodes_of(entry)] or [entry.id]:
            if name in seen:
                raise DefinitionError(
                    f"workflow {workflow_id!r} has two entries called {name!r}; give one another id with .named(…)"
                )
            seen.add(name)


def _check_nodes(entries: list[Entry]) -> None:
    for entry in entries:
        for node in nodes_of(entry):
            if isinstance(node, Builder):
                raise DefinitionError(f"workflow {node._id!r} is used before .commit()")  # noqa: SLF001 — our own class
            if isinstance(node, Step) and (found := node.problems()):
                raise DefinitionError("; ".join(found))
        if isinstance(entry, Loop) and entry.max_iterations < 1:
            raise DefinitionError(f"loop {entry.id!r} needs max_iterations of 1 or more")


def _check_boundaries(workflow_id: str, entries: list[Entry]) -> tuple[Any, Any]:
    first: Any = Any
    current: Any = Any
    previous = f"the input of workflow {workflow_id!r}"
    for position, entry in enumerate(entries):
        wanted, given = _types(entry, current)
        if position == 0:
            first = wanted
        elif not fits(current, wanted):
            raise BoundaryError(
                f"workflow {workflow_id!r}: {previous} gives {name_of(current)}, but {entry.id!r} takes {name_of(wanted)}"
            )
        if isinstance(entry, Loop) and not fits(given, wanted):
            raise BoundaryError(
                f"workflow {workflow_id!r}: loop {entry.id!r} gives {name_of(given)}, but takes {name_of(wanted)} again"
            )
        current, previous = given, repr(entry.id)
    return first, current


def _types(entry: Entry, current: Any) -> tuple[Any, Any]:
    """What an entry takes and gives, where `current` is what reaches it."""
    match entry:
        case Then(node=node) | Loop(node=node):
            return node.input, node.output
        case ForEach(node=node):
            item, output = node.input, node.output
            return GenericAlias(list, (item,)), GenericAlias(list, (output,))
        case Parallel(nodes=nodes):
            return _narrowest([node.input for node in nodes]), dict[str, Any]
        case Branch(mode=mode):
            nodes = nodes_of(entry)
            outputs = [node.output for node in nodes]
            return _narrowest([node.input for node in nodes]), dict[str, Any] if mode == "all" else _union(outputs)
        case Map(function=function):
            return _map_types(function)
        case WaitFor(schema=schema, timeout_s=timeout_s, otherwise=otherwise):
            return Any, schema if timeout_s is None else schema | type(otherwise)
        case Sleep():
            return Any, current


def _map_types(function: Callable[..., Any]) -> tuple[Any, Any]:
    try:
        hints: Mapping[str, Any] = get_type_hints(function)
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError, NameError):
        return Any, Any
    return hints.get(names[0], Any) if names else Any, hints.get("return", Any)


def _narrowest(types: list[Any]) -> Any:
    """The type all of several nodes accept, when one of them is it; else Any, and each is checked at run time."""
    for candidate in types:
        if all(fits(candidate, other) for other in types):
            return candidate
    return Any


def _union(types: list[Any]) -> Any:
    union = types[0]
    for each in types[1:]:
        if union is Any or each is Any:
            return Any
        union = union if union == each else union | each
    return union
