"""The builder: puts a workflow together entry by entry, and checks it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, cast

from workflows.definition.boundaries import check_entries
from workflows.definition.callbacks import SILENT, Callbacks
from workflows.definition.graph import (
    Branch,
    Entry,
    ForEach,
    Loop,
    Map,
    Parallel,
    Sleep,
    Then,
    WaitFor,
    Workflow,
    nodes_of,
)
from workflows.definition.step import RESERVED, Step
from workflows.errors import DefinitionError

In = TypeVar("In")
Out = TypeVar("Out")
Next = TypeVar("Next")
Item = TypeVar("Item")

BranchCondition = Callable[[Out], bool] | Callable[[Out, Any], bool]
LoopCondition = Callable[[Out], bool] | Callable[[Out, int], bool] | Callable[[Out, int, Any], bool]


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
        *arms: "tuple[BranchCondition[Out], Step[Out, Next] | Workflow[Out, Next]]",
        otherwise: "Step[Out, Next] | Workflow[Out, Next] | None" = None,
        mode: Literal["first", "all"] = "first",
    ) -> "Builder[In, Next]":
        """Run the first arm whose condition holds ("first"; those after it are not asked), or all of them in parallel ("all": a mapping by id).

        A condition is a pure function of the value, or of the value and the run's state; or a `Condition`.
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
        """Reshape the value with a pure function of it, or of it and the run's state; or with a `Projection`. Costs no commit."""
        return self._add(Map(self._auto("map"), function))

    def sleep(self, seconds: float | Callable[[Out], float] | Callable[[Out, Any], float]) -> "Builder[In, Out]":
        """Sleep durably: the run is suspended and no process holds it. A function takes the value, or it and the run's state."""
        return self._add(Sleep(self._auto("sleep"), seconds=seconds))

    def sleep_until(
        self, until: datetime | Callable[[Out], datetime] | Callable[[Out, Any], datetime]
    ) -> "Builder[In, Out]":
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
        for node in (node for entry in self._entries for node in nodes_of(entry)):
            if isinstance(node, Builder):
                raise DefinitionError(f"workflow {node._id!r} is used before .commit()")  # noqa: SLF001 — our own class
        checked = check_entries(self._id, self._entries, state=self._options.get("state"))
        for problem in checked.problems:
            raise problem.kind(f"workflow {self._id!r}: {problem.message}")
        return Workflow(self._id, self._version, tuple(self._entries), checked.input, checked.output, **self._options)


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
    for name, what in ((workflow_id, "id"), (version, "version")):
        if not name or any(mark in name for mark in RESERVED):
            raise DefinitionError(f"a workflow's {what} must be non-empty and free of / # [ ] ! ~ @ $: {name!r}")
    return Start(
        workflow_id, version, on_failure=on_failure, max_attempts=max_attempts, state=state, callbacks=callbacks
    )
