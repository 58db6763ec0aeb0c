"""Reads a workflow from data: every problem is found, each with its place, and nothing in the data is run."""

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from workflows.definition.boundaries import Checked, Problem, check_entries
from workflows.definition.callbacks import SILENT
from workflows.definition.graph import Entry, Workflow, nodes_of
from workflows.definition.spec.entries import EntryReader
from workflows.definition.spec.form import inside, model_of, problems_of, shown
from workflows.definition.spec.models import BOUNDS, Bounds, WorkflowSpec
from workflows.definition.spec.names import Kind, Names
from workflows.definition.spec.types import read_type
from workflows.definition.step import Step
from workflows.errors import SpecError

NOTHING = Checked(Any, Any, ())


def read_spec(spec: Mapping[str, Any], names: Names, *, bounds: Bounds = BOUNDS) -> Workflow[Any, Any]:
    """The workflow that `spec` describes, made of what `names` finds. Raises SpecError.

    `bounds` keep small what anybody may write; a document of a registered workflow is as large as that.
    """
    data = _bounded(spec, bounds)
    reader = Reader(names, bounds)
    reader.define(data.get("definitions"))
    workflow = reader.workflow(data, "")
    reader.finish()
    if reader.problems or workflow is None:
        raise SpecError(str(data.get("id", "")), [(each.place, each.message) for each in reader.problems])
    return workflow


def _bounded(spec: Any, bounds: Bounds) -> dict[str, Any]:
    """The spec as plain JSON, unless it is too large. Raises SpecError."""
    try:
        raw = to_json(spec)
        data = from_json(raw, allow_inf_nan=False)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise SpecError("", [("", f"a spec must be JSON: {str(error)[:200]}")]) from None
    if not isinstance(data, dict):
        raise SpecError("", [("", f"a spec is an object, not {type(data).__name__}")])
    if len(raw) > bounds.bytes:
        raise SpecError(
            str(data.get("id", ""))[:100], [("", f"it has {len(raw)} bytes; a spec may have {bounds.bytes}")]
        )
    return data


class Reader:
    """Reads one document; `problems` collects what is wrong with it."""

    def __init__(self, names: Names, bounds: Bounds = BOUNDS) -> None:
        self.problems: list[Problem] = []
        self.bounds = bounds
        self._names = names
        self._definitions: dict[str, tuple[str, Any]] = {}
        self._read: dict[str, Workflow[Any, Any] | None] = {}
        self._reading: list[str] = []
        self._sizes: dict[int, tuple[int, int]] = {}
        self._kept: list[Workflow[Any, Any]] = []  # so that no id() is used twice

    def report(self, place: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(place, message))

    # Workflows

    def define(self, definitions: Any) -> None:
        """Make the workflows of `definitions` known by their ids."""
        if not isinstance(definitions, list | None):
            return  # the model says so
        for n, each in enumerate(definitions or ()):
            name = each.get("id") if isinstance(each, dict) else None
            if not isinstance(name, str):
                self.report(f"definitions[{n}]", "a definition is a workflow with an id")
            elif name in self._definitions:
                self.report(f"definitions[{n}]", f"two definitions are called {name!r}")
            else:
                self._definitions[name] = (f"definitions[{n}]", each)

    def finish(self) -> None:
        """Read the definitions that no node has named."""
        for name in self._definitions:
            if name not in self._read:
                self._definition(name, "")

    def workflow(self, data: Any, place: str) -> Workflow[Any, Any] | None:
        """The workflow that `data` describes, or None after a problem."""
        before = len(self.problems)
        if not isinstance(data, dict):
            self.report(place, f"a workflow is an object, not {shown(data)}")
            return None
        if len(self._reading) >= self.bounds.nesting:
            self.report(place, f"workflows may be nested {self.bounds.nesting} deep")
            return None
        self._reading.append(str(data.get("id")))
        try:
            header, body = self._header(data, place), EntryReader(self, place)
            entries = body.entries(data.get("entries"))
            state = None if data.get("state") is None else body.type_of(data["state"], "#state", inside(place, "state"))
            checked = check_entries(self._reading[-1], entries, state=state) if entries else NOTHING
            self.problems += [Problem(inside(place, each.place), each.message) for each in checked.problems]
            found = self._put_together(header, body, entries, checked, state) if header and entries else None
        finally:
            self._reading.pop()
        if found is None or len(self.problems) > before:
            return None
        self._measure(found, place)
        return found

    def _put_together(
        self, header: WorkflowSpec, body: EntryReader, entries: list[Entry], checked: Checked, state: Any
    ) -> Workflow[Any, Any]:
        callbacks = None
        if header.callbacks is not None:
            callbacks = body.found("value", header.callbacks, "#callbacks", inside(body.place, "callbacks"))
        return Workflow(
            header.id, header.version, tuple(entries), checked.input, checked.output, header.on_failure,
            header.max_attempts, state, callbacks or SILENT, body.references,
        )  # fmt: skip

    def _header(self, data: dict[str, Any], place: str) -> WorkflowSpec | None:
        if place and "definitions" in data:
            self.report(inside(place, "definitions"), "only the outermost workflow has definitions")
        listed = isinstance(data.get("definitions", []), list)
        try:
            return WorkflowSpec.model_validate({**data, "entries": [], **({"definitions": []} if listed else {})})
        except ValidationError as error:
            for at, message in problems_of(error, place, WorkflowSpec):
                self.report(at, message)
            return None

    def _measure(self, workflow: Workflow[Any, Any], place: str) -> None:
        """Each workflow counts as often as it is used: a few definitions could stand for millions of nodes."""
        nodes, depth = 0, 1
        for node in (node for entry in workflow.entries for node in nodes_of(entry)):
            inner = (1, 0) if isinstance(node, Step) else self._sizes.get(id(node)) or _size(node)
            nodes, depth = nodes + inner[0], max(depth, 1 + inner[1])
        self._sizes[id(workflow)] = (nodes, depth)
        self._kept.append(workflow)
        if nodes > self.bounds.nodes:
            self.report(
                place, f"it comes to {nodes} nodes, counted as often as they are used; it may have {self.bounds.nodes}"
            )
        if depth > self.bounds.nesting:
            self.report(place, f"workflows may be nested {self.bounds.nesting} deep, not {depth}")

    def _definition(self, name: str, place: str) -> Workflow[Any, Any] | None:
        if name not in self._read:
            at, data = self._definitions[name]
            self._read[name] = None
            self._read[name] = self.workflow(data, at)
        return self._read[name]

    def nested(self, data: Mapping[str, Any], place: str, references: dict[str, str]) -> Workflow[Any, Any] | None:
        """The workflow that a node names or writes out."""
        named, version = data["workflow"], data.get("version")
        if not isinstance(named, str):
            return self.workflow(named, inside(place, "workflow"))
        outermost = self._reading[0]
        if version is None and named in self._reading and (named in self._definitions or named == outermost):
            circle = " → ".join([*self._reading[self._reading.index(named) :], named])
            self.report(place, f"a cycle: {circle}")
            return None
        if version is None and named in self._definitions:
            return self._definition(named, place)
        name = named if version is None else f"{named}@{version}"
        found = self.find("workflow", name, place)
        if found is not None:
            references[f"/{found.id}"] = name
        return found if isinstance(found, Workflow) else None

    # Names

    def find(self, kind: Kind, name: str, place: str) -> Any | None:
        """What is called `name`; None after a problem was noted."""
        found = self._names.find(kind, name)
        if found is None:
            known = sorted({*self._names.known(kind), *(self._definitions if kind == "workflow" else ())})
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known[:20]) or 'none'}"
            self.report(place, f"there is no {kind} {name!r}{meant}")
        return found

    def type_of(self, data: Any, place: str) -> Any:
        """The type that `data` says, or Any."""
        return read_type(data, self._names, report=self.report, place=place)

    def invalid(self, error: ValidationError, place: str, data: Any) -> None:
        """Note what is wrong with the form of an entry."""
        for at, message in problems_of(error, place, model_of(data)):
            self.report(at, message)


def _size(workflow: Workflow[Any, Any]) -> tuple[int, int]:
    """The nodes of a workflow of the registry, and how deep it nests."""
    nodes, depth = 0, 1
    for node in (node for entry in workflow.entries for node in nodes_of(entry)):
        inner = (1, 0) if isinstance(node, Step) else _size(node)
        nodes, depth = nodes + inner[0], max(depth, 1 + inner[1])
    return nodes, depth
