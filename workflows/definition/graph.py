"""Committed workflows: frozen data, an array of entries."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal

from workflows.definition.callbacks import SILENT, Callbacks
from workflows.definition.step import In_contra, Out_co

if TYPE_CHECKING:
    from workflows.definition.spec import Names


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
    seconds: float | Callable[..., float] | None = None
    until: datetime | Callable[..., datetime] | None = None


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Suspend until a signal of `name` arrives; its payload is the output. After `timeout_s`, `otherwise` is."""

    id: str
    name: str
    schema: Any
    timeout_s: float | None = None
    otherwise: Any = None


@dataclass(frozen=True, slots=True)
class Authored:
    """Walk the workflow that the value, an `authored.Definition`, defines in the names of `catalogue`."""

    id: str
    catalogue: "Names"


Entry = Authored | Then | Parallel | Branch | ForEach | Loop | Map | Sleep | WaitFor


@dataclass(frozen=True)
class Workflow(Generic[In_contra, Out_co]):
    """A committed workflow. It satisfies the step interface, so it nests.

    `on_failure` names a workflow that is started, with a `FailedRun`, in the commit that ends a run failed, cancelled or dead.
    `state` is the type of the run's state (a pydantic model with defaults, or a TypedDict with total=False); a run's state is that of its
    outermost workflow. `references`, of one that was made from a spec, are the names its spec has for what is Python: by place, such as
    "/charge" or "/branch-2#arms[0]".
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
    references: Mapping[str, str] | None = field(default=None, compare=False, repr=False)

    def to_spec(self) -> dict[str, Any]:
        """The workflow as JSON-able data. What is Python in it (steps, functions, types) is named: by where it stands in the workflow, as
        in "process-order@1/charge", or as the spec this one was made from named it.
        """
        from workflows.definition.spec import write_spec

        return write_spec(self)

    @staticmethod
    def from_spec(spec: Mapping[str, Any], registry: "Names") -> "Workflow[Any, Any]":
        """The workflow that `spec` describes, with what `registry` has under the names in it. No code of the spec's is run.

        Raises SpecError with every problem found, each with its place, such as `entries[2].arms[0]`.
        """
        from workflows.definition.spec import read_spec

        return read_spec(spec, registry)


def undoable(node: Any) -> bool:
    """Whether a step in it has a compensation."""
    if isinstance(node, Workflow):
        return any(undoable(each) for entry in node.entries for each in nodes_of(entry))
    return node.compensate is not None


def nodes_of(entry: Entry) -> tuple[Any, ...]:
    """The steps and workflows an entry may run."""
    if isinstance(entry, Parallel):
        return entry.nodes
    if isinstance(entry, Branch):
        return tuple(node for _, node in entry.arms) + ((entry.otherwise,) if entry.otherwise else ())
    return (entry.node,) if isinstance(entry, Then | ForEach | Loop) else ()
