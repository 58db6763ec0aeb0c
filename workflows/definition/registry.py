"""The workflows a process knows, by id and version, and what they are made of, by the place where it stands in them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workflows.definition.catalogue import Catalogue
from workflows.definition.graph import Workflow
from workflows.definition.spec.names import Kind, places
from workflows.errors import DefinitionError, NoExecutorError

AnyWorkflow = Workflow[Any, Any]


class Registry(Mapping[tuple[str, str], AnyWorkflow]):
    """Workflows by (id, version), in the order they were added. Raises DefinitionError for two of one id and version.

    A spec may name what it finds: "charge" or any other name of `catalogue`, "process-order" or "process-order@1" for a workflow, and
    "process-order@1/charge" for what stands there, also where only Python could say it: "process-order@1/branch-2#arms[0]".
    """

    def __init__(self, workflows: Iterable[AnyWorkflow] = (), *, catalogue: Catalogue | None = None) -> None:
        self.catalogue = catalogue or Catalogue()
        self._known: dict[tuple[str, str], AnyWorkflow] = {}
        self._places: dict[tuple[str, str], dict[tuple[Kind, str], Any]] = {}
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

    # Names

    def find(self, kind: Kind, name: str) -> Any | None:
        """What a spec calls `name`, or None."""
        workflow_id, _, rest = name.partition("@")
        version = rest.partition("/")[0].partition("#")[0]
        owner = self._known.get((workflow_id, version))
        if owner is None:
            newest = self.newest(name) if kind == "workflow" else None
            return newest or self.catalogue.find(kind, name)
        if rest == version:
            return owner if kind == "workflow" else None
        if owner.references is not None:  # it names what others own, and has nothing to be named by its places
            return None
        return self._places_of(owner).get((kind, name))

    def known(self, kind: Kind) -> Sequence[str]:
        """Names to choose from: those of the catalogue, then those of the workflows."""
        own = [f"{workflow_id}@{version}" for workflow_id, version in self._known] if kind == "workflow" else []
        stood = [
            name for each in self.values() if each.references is None for k, name in self._places_of(each) if k == kind
        ]
        return [*self.catalogue.known(kind), *own, *stood]

    def _places_of(self, owner: AnyWorkflow) -> dict[tuple[Kind, str], Any]:
        key = (owner.id, owner.version)
        if key not in self._places:
            self._places[key] = {(k, name): found for k, name, found in places(owner, f"{owner.id}@{owner.version}")}
        return self._places[key]
