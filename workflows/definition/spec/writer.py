"""Writes a workflow as data."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from workflows.definition.callbacks import SILENT
from workflows.definition.conditions import Condition
from workflows.definition.graph import (
    Authored,
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
)
from workflows.definition.projection import Projection
from workflows.definition.spec.types import write_type
from workflows.definition.step import Step

Naming = Callable[[str], str]
"""The name for what is at a place of the workflow being written, such as "/charge"."""


def write_spec(workflow: Workflow[Any, Any]) -> dict[str, Any]:
    """`workflow` as a JSON-able document, without what is left at its default."""
    return _workflow(workflow, _naming(workflow, f"{workflow.id}@{workflow.version}"))


def _naming(workflow: Workflow[Any, Any], prefix: str) -> Naming:
    references = workflow.references
    return (lambda place: prefix + place) if references is None else references.__getitem__


def _workflow(workflow: Workflow[Any, Any], name: Naming) -> dict[str, Any]:
    header = {
        "id": workflow.id,
        "version": workflow.version,
        "on_failure": workflow.on_failure,
        "max_attempts": None if workflow.max_attempts == 5 else workflow.max_attempts,
        "state": None if workflow.state is None else write_type(workflow.state, lambda: name("#state")),
        "callbacks": None if workflow.callbacks is SILENT else name("#callbacks"),
    }
    entries = [_entry(entry, n, workflow, name) for n, entry in enumerate(workflow.entries)]
    return {**_given(header), "entries": entries}


def _entry(entry: Entry, n: int, workflow: Workflow[Any, Any], name: Naming) -> dict[str, Any]:
    match entry:
        case Then(node=node):
            return {"op": "then", **_node(node, workflow, name)}
        case ForEach(node=node, concurrency=concurrency):
            more = {} if concurrency == 1 else {"concurrency": concurrency}
            return {"op": "foreach", **_node(node, workflow, name), **more}
        case Loop(node=node, condition=condition, wanted=wanted, max_iterations=bound):
            when = _pure(condition, name, f"/{entry.id}#when")
            op = "dowhile" if wanted else "dountil"
            return {"op": op, **_node(node, workflow, name), "when": when, "max_iterations": bound}
        case Parallel(nodes=nodes, limit=limit):
            found: dict[str, Any] = {"nodes": [_node(node, workflow, name) for node in nodes], "limit": limit}
            return {"op": "parallel", **_id(entry, f"parallel-{n}"), **_given(found)}
        case Branch():
            return {"op": "branch", **_id(entry, f"branch-{n}"), **_branch(entry, workflow, name)}
        case Map(function=function):
            written = _pure(function, name, f"/{entry.id}#to")
            return {
                "op": "map",
                **_id(entry, f"map-{n}"),
                **({"to": written} if isinstance(function, Projection) else written),
            }
        case Sleep(seconds=seconds, until=until):
            key, at = ("seconds", seconds) if until is None else ("until", until)
            op = "sleep" if until is None else "sleep_until"
            return {"op": op, **_id(entry, f"sleep-{n}"), key: _pure(at, name, f"/{entry.id}#{key}")}
        case WaitFor():
            return {"op": "wait_for", **_id(entry, f"wait-{entry.name}-{n}"), **_wait(entry, name)}
        case Authored():
            return {"op": "authored", **_id(entry, f"authored-{n}"), "call": name(f"/{entry.id}#catalogue")}


def _node(node: Any, workflow: Workflow[Any, Any], name: Naming) -> dict[str, Any]:
    place = f"/{node.id}"
    if isinstance(node, Step):
        known_as = name(place)
        renamed = node.id != known_as.rpartition("/")[2]
        return {"step": known_as, **({"id": node.id} if renamed else {})}
    if workflow.references is not None and place in workflow.references:
        known_as, _, version = workflow.references[place].partition("@")
        return {"workflow": known_as, **({"version": version} if version else {})}
    return {"workflow": _workflow(node, _naming(node, name(place) if workflow.references is None else place))}


def _branch(entry: Branch, workflow: Workflow[Any, Any], name: Naming) -> dict[str, Any]:
    arms = [
        {"when": _pure(when, name, f"/{entry.id}#arms[{n}]"), **_node(node, workflow, name)}
        for n, (when, node) in enumerate(entry.arms)
    ]
    otherwise = None if entry.otherwise is None else _node(entry.otherwise, workflow, name)
    return _given({"arms": arms, "otherwise": otherwise, "mode": None if entry.mode == "first" else entry.mode})


def _wait(entry: WaitFor, name: Naming) -> dict[str, Any]:
    found = {
        "name": entry.name,
        "type": write_type(entry.schema, lambda: name(f"/{entry.id}#type")),
        "timeout_s": entry.timeout_s,
    }
    if _is_json(entry.otherwise):
        return _given({**found, "otherwise": entry.otherwise})
    return _given({**found, "otherwise_call": name(f"/{entry.id}#otherwise")})


def _pure(found: Any, name: Naming, place: str) -> Any:
    if isinstance(found, Condition | Projection):
        return found.to_json()
    if isinstance(found, datetime):
        return found.isoformat()
    return {"call": name(place)} if callable(found) else found


def _id(entry: Entry, default: str) -> dict[str, str]:
    return {} if entry.id == default else {"id": entry.id}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _is_json(value: Any) -> bool:
    """Whether it comes back from JSON as it was."""
    if isinstance(value, dict):
        return type(value) is dict and all(isinstance(key, str) and _is_json(part) for key, part in value.items())
    if isinstance(value, list):
        return type(value) is list and all(map(_is_json, value))
    return value is None or type(value) in (str, int, float, bool)
