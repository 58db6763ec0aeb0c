"""Workflows written at run time. All run as one registered workflow, `authored`, whose input is the definition with its value.

So such a run is stored, suspended, resumed, killed and replayed like any other, by every worker that has the catalogue, and its records
have the paths of the workflow that it defines.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json

from workflows.definition.callbacks import SILENT, Callbacks
from workflows.definition.graph import Authored, Workflow
from workflows.definition.spec.reader import read_spec
from workflows.errors import SpecError
from workflows.values import check, decode, encode

if TYPE_CHECKING:
    from workflows.definition.catalogue import Catalogue
    from workflows.definition.spec.names import Names

NAME = "authored"
OWN = ("on_failure", "max_attempts", "callbacks")
"""What a run has from the registered workflow, so that who writes a definition can't have it."""


class Definition(BaseModel):
    """The input of `authored`: a workflow as data, and the value it is run on."""

    model_config = ConfigDict(frozen=True)

    spec: dict[str, Any]
    value: Any = None


def authored(
    catalogue: "Catalogue",
    *,
    on_failure: str | None = None,
    max_attempts: int = 5,
    callbacks: Callbacks = SILENT,
) -> Workflow[Definition, Any]:
    """The workflow that runs whatever can be defined in the names of `catalogue`."""
    entry = Authored("definition", catalogue)
    return Workflow(
        NAME,
        catalogue.version,
        (entry,),
        Definition,
        Any,
        on_failure=on_failure,
        max_attempts=max_attempts,
        callbacks=callbacks,
    )


def define(spec: Mapping[str, Any], value: Any, runner: Workflow[Definition, Any]) -> Definition:
    """A definition that holds, for `runner`, a workflow that `authored` made. Raises SpecError, InputError for the value."""
    definition = check({"spec": spec, "value": value}, Definition, where="a workflow written at run time")
    workflow = walked_workflow(runner, definition)
    where = f"the input of {workflow.id}"
    plain = from_json(encode(check(value, workflow.input, where=where), workflow.input, where=where))
    return Definition(spec=definition.spec, value=plain)


def defined_workflow(definition: Definition, catalogue: "Names") -> Workflow[Any, Any]:
    """The workflow that a definition describes. Raises SpecError."""
    own = [key for key in OWN if key in definition.spec]
    if own:
        raise SpecError(
            str(definition.spec.get("id", "")),
            [(key, "a workflow written at run time has that of `authored`") for key in own],
        )
    return read_spec(definition.spec, catalogue)


def walked_workflow(workflow: Workflow[Any, Any], value: Any) -> Workflow[Any, Any]:
    """The workflow whose steps a run of `workflow` on `value` has: itself, or what `value` defines. `value` may be JSON bytes."""
    entry = workflow.entries[0]
    if not isinstance(entry, Authored):
        return workflow
    if isinstance(value, bytes):
        value = decode(value, Definition, where=f"the input of {workflow.id}")
    return defined_workflow(value, entry.catalogue)
