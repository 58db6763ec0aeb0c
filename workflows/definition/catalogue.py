"""What workflows written at run time may be made of, by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workflows.definition.graph import Workflow
from workflows.definition.spec.names import Kind
from workflows.definition.step import RESERVED, Step
from workflows.errors import DefinitionError


class Catalogue:
    """Steps and workflows by their ids, pure functions and types by the names given. Nothing else can be reached from a spec.

    `version` pins the runs that were begun with it, as a workflow's does: raise it when something is taken out or changes its type. Raises
    DefinitionError for two of one name.
    """

    def __init__(
        self,
        *nodes: Step[Any, Any] | Workflow[Any, Any],
        functions: Mapping[str, Callable[..., Any]] | None = None,
        types: Mapping[str, Any] | None = None,
        version: str = "1",
    ) -> None:
        self.version = version
        self._known: dict[Kind, dict[str, Any]] = {
            "step": {}, "workflow": {}, "function": dict(functions or {}), "type": dict(types or {}), "value": {},
        }  # fmt: skip
        for node in nodes:
            if isinstance(node, Step):
                self._add("step", node.id, node)
            else:
                self._add("workflow", f"{node.id}@{node.version}", node)
        for name in (*self._known["function"], *self._known["type"]):
            if not name or any(mark in name for mark in RESERVED):
                raise DefinitionError(f"a name must be non-empty and free of / # [ ] ! ~ @ $: {name!r}")

    def _add(self, kind: Kind, name: str, node: Any) -> None:
        if name in self._known[kind]:
            raise DefinitionError(f"a catalogue can't have two of a name: {kind} {name!r}")
        self._known[kind][name] = node

    def find(self, kind: Kind, name: str) -> Any | None:
        """What is called `name`, or None. Of a workflow: "id", the one added last, or "id@version"."""
        found = self._known[kind].get(name)
        if found is None and kind == "workflow":
            return next((each for each in reversed(self._known[kind].values()) if each.id == name), None)
        return found

    def known(self, kind: Kind) -> Sequence[str]:
        """The names of that kind."""
        return list(self._known[kind])
