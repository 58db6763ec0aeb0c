"""What the names in a spec stand for."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

from workflows.definition.callbacks import SILENT
from workflows.definition.conditions import Condition
from workflows.definition.graph import Authored, Branch, Entry, Loop, Map, Sleep, WaitFor, Workflow, nodes_of
from workflows.definition.projection import Projection
from workflows.definition.step import Step

Kind = Literal["step", "workflow", "function", "type", "value"]


class Names(Protocol):
    """Finds by name what a spec refers to. A `Catalogue` has what it was given; a `Registry` also what its workflows are made of."""

    def find(self, kind: Kind, name: str) -> Any | None:
        """What is called `name`, or None. Of a workflow: "id", the newest, or "id@version"."""
        ...

    def known(self, kind: Kind) -> Sequence[str]:
        """Names to choose from."""
        ...


def places(workflow: Workflow[Any, Any], prefix: str) -> Iterator[tuple[Kind, str, Any]]:
    """Everything in a workflow that is Python, and the place it is called by: `prefix` and "/charge", "/inner/charge", "/branch-2#arms[0]"."""
    if workflow.state is not None:
        yield "type", f"{prefix}#state", workflow.state
    if workflow.callbacks is not SILENT:
        yield "value", f"{prefix}#callbacks", workflow.callbacks
    for entry in workflow.entries:
        for node in nodes_of(entry):
            if isinstance(node, Step):
                yield "step", f"{prefix}/{node.id}", node
            else:
                yield "workflow", f"{prefix}/{node.id}", node
                yield from places(node, f"{prefix}/{node.id}")
        for kind, field, found in _fields(entry):
            yield kind, f"{prefix}/{entry.id}#{field}", found


def _fields(entry: Entry) -> Iterator[tuple[Kind, str, Any]]:
    match entry:
        case Branch(arms=arms):
            found: list[tuple[Kind, str, Any]] = [("function", f"arms[{n}]", when) for n, (when, _) in enumerate(arms)]
        case Loop(condition=condition):
            found = [("function", "when", condition)]
        case Map(function=function):
            found = [("function", "to", function)]
        case Sleep(seconds=seconds, until=until):
            found = [("function", "seconds", seconds), ("function", "until", until)]
        case WaitFor(schema=schema, otherwise=otherwise):
            found = [("type", "type", schema), ("value", "otherwise", otherwise)]
        case Authored(catalogue=catalogue):
            found = [("value", "catalogue", catalogue)]
        case _:
            found = []
    return (
        each
        for each in found
        if each[0] != "function" or (callable(each[2]) and not isinstance(each[2], Condition | Projection))
    )
