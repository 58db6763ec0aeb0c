"""Where a process finds the step that a run has at a path: by the names its spec has for it."""

from dataclasses import dataclass
from typing import Any

from workflows.definition.graph import Workflow
from workflows.definition.spec import Names
from workflows.definition.step import Step
from workflows.errors import NoExecutorError
from workflows.running.compensation import undo_path, undo_step
from workflows.running.fork import node_at


@dataclass(frozen=True, slots=True)
class Located:
    """A step by its name; or by its path in a workflow that has a name."""

    name: str
    workflow: str | None = None

    def find(self, names: Names, step_id: str, path: str) -> Step[Any, Any]:
        """The step, as it is called at `path`. Raises NoExecutorError if this process has no such."""
        if self.workflow is None:
            found = names.find("step", self.name)
        else:
            owner = names.find("workflow", self.workflow)
            found = node_at(owner, self.name) if isinstance(owner, Workflow) else None
        if not isinstance(found, Step):
            known = self.name if self.workflow is None else f"{self.name} of {self.workflow}"
            raise NoExecutorError(f"this process has no step {known!r}")
        step = found if path.endswith(undo_path("")) or found.id == step_id else found.named(step_id)
        return undo_step(step) if path.endswith(undo_path("")) else step


def locate(workflow: Workflow[Any, Any], path: str) -> Located:
    """Where the step at `path` of a run of `workflow`, which was read from a spec, is to be found."""
    parts = path.removesuffix(undo_path("")).split("/")
    current = workflow
    for n, part in enumerate(parts):
        node = node_at(current, part)
        named = (current.references or {}).get(f"/{node.id}")
        if isinstance(node, Step):
            assert named is not None
            return Located(named)
        if named is not None:
            return Located("/".join(parts[n + 1 :]), named)
        current = node
    raise AssertionError(f"{path} leads to no step")
