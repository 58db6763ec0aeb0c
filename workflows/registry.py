"""The workflows a process knows, by id and version."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workflows.errors import DefinitionError, NoExecutorError
from workflows.graph import Workflow

AnyWorkflow = Workflow[Any, Any]


class Registry(Mapping[tuple[str, str], AnyWorkflow]):
    """Workflows by (id, version), in the order they were added. Raises DefinitionError for two of one id and version."""

    def __init__(self, workflows: Iterable[AnyWorkflow] = ()) -> None:
        self._known: dict[tuple[str, str], AnyWorkflow] = {}
        self.add(*workflows)

    def add(self, *workflows: AnyWorkflow) -> None:
        """Make workflows known. The same one twice is once. Raises DefinitionError."""
        for each in workflows:
            if self._known.get((each.id, each.version), each) is not each:
                raise DefinitionError(f"two workflows are called {each.id!r} version {each.version!r}")
            self._known[each.id, each.version] = each

    def __getitem__(self, key: tuple[str, str]) -> AnyWorkflow:
        return self._known[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def newest(self, workflow_id: str) -> AnyWorkflow | None:
        """The version of a workflow that was added last, or None."""
        return next((each for each in reversed(self._known.values()) if each.id == workflow_id), None)

    def required(self, workflow_id: str) -> AnyWorkflow:
        """The version of a workflow that was added last. Raises NoExecutorError."""
        found = self.newest(workflow_id)
        if found is None:
            known = sorted({each.id for each in self._known.values()})
            raise NoExecutorError(f"this process knows no workflow {workflow_id!r}; it knows {known}")
        return found
