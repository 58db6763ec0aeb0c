"""What a list of entries must be to become a workflow: unique ids, sound steps, types that meet, conditions that look at what is there.

The builder raises the first problem; reading a spec reports all of them.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias, NoneType
from typing import Any, get_type_hints

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
    nodes_of,
)
from workflows.definition.parts import part_type, union
from workflows.definition.paths import Path
from workflows.definition.projection import Projection
from workflows.definition.step import RESERVED, Step
from workflows.errors import BoundaryError, DefinitionError
from workflows.values import fits, name_of

MAX_SECONDS = 10 * 366 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where: a place such as "entries[2].arms[0]"."""

    place: str
    message: str
    kind: type[DefinitionError] = DefinitionError


@dataclass(frozen=True, slots=True)
class Checked:
    """What entries take and give together, and what is wrong with them."""

    input: Any
    output: Any
    problems: tuple[Problem, ...]


def check_entries(workflow_id: str, entries: Sequence[Entry], *, state: Any = None) -> Checked:
    """Check the entries of a workflow whose run's state is of type `state`."""
    if not entries:
        return Checked(Any, Any, (Problem("entries", "it has no entries"),))
    problems = [*(problem for n, entry in enumerate(entries) for problem in _options(n, entry)), *_ids(entries)]
    first: Any = Any
    current: Any = Any
    previous = f"the input of workflow {workflow_id!r}"
    for n, entry in enumerate(entries):
        wanted, given = entry_types(entry, current, state)
        first = wanted if n == 0 else first
        problems += _looks(n, entry, current if n else wanted, state)
        if n and not fits(current, wanted):
            message = f"{previous} gives {name_of(current)}, but {entry.id!r} takes {name_of(wanted)}"
            problems.append(Problem(f"entries[{n}]", message, BoundaryError))
        if isinstance(entry, Loop) and not fits(given, wanted):
            message = f"loop {entry.id!r} gives {name_of(given)}, but takes {name_of(wanted)} again"
            problems.append(Problem(f"entries[{n}]", message, BoundaryError))
        current, previous = given, repr(entry.id)
    return Checked(first, current, tuple(problems))


def _ids(entries: Sequence[Entry]) -> Iterator[Problem]:
    seen: set[str] = set()
    for n, entry in enumerate(entries):
        for name in [node.id for node in nodes_of(entry)] or [entry.id]:
            if name in seen:
                yield Problem(f"entries[{n}]", f"two entries called {name!r}; give one another id with .named(…)")
            if any(mark in name for mark in RESERVED):
                yield Problem(f"entries[{n}]", f"an id must be free of / # [ ] ! ~ @ $: {name!r}")
            seen.add(name)


def _options(n: int, entry: Entry) -> Iterator[Problem]:
    place = f"entries[{n}]"
    for node in nodes_of(entry):
        if isinstance(node, Step):
            yield from (Problem(place, found) for found in node.problems())
    match entry:
        case Loop(max_iterations=bound) if bound < 1:
            yield Problem(place, f"loop {entry.id!r} needs max_iterations of 1 or more")
        case ForEach(concurrency=bound) if bound < 1:
            yield Problem(place, f"foreach {entry.id!r} needs a concurrency of 1 or more")
        case Parallel(limit=int(bound)) if bound < 1:
            yield Problem(place, f"parallel {entry.id!r} needs a limit of 1 or more")
        case Sleep(seconds=int() | float() as seconds) if not 0 <= seconds <= MAX_SECONDS:
            yield Problem(place, f"sleep {entry.id!r} takes 0 to {MAX_SECONDS:.0f} seconds (ten years), not {seconds}")
        case Sleep(until=until) if until is not None and not callable(until) and until.tzinfo is None:
            yield Problem(place, f"sleep {entry.id!r} needs an aware datetime, with a time zone")
        case WaitFor(name=name, timeout_s=timeout_s):
            if not name or any(mark in name for mark in RESERVED):
                yield Problem(place, f"a signal's name must be non-empty and free of / # [ ] ! ~ @ $: {name!r}")
            if timeout_s is not None and not 0 <= timeout_s <= MAX_SECONDS:
                yield Problem(
                    place, f"wait {entry.id!r} takes a time-out of 0 to {MAX_SECONDS:.0f} seconds, not {timeout_s}"
                )


# What conditions and projections look at


def _looks(n: int, entry: Entry, current: Any, state: Any) -> Iterator[Problem]:
    """Paths that lead nowhere, in types that are known."""
    for place, data in _data_of(entry):
        value = entry.node.output if isinstance(entry, Loop) else current
        for at in data.paths:
            if at.root == "count" and not isinstance(entry, Loop):
                yield Problem(f"entries[{n}]{place}", "count is known to the condition of a loop only")
            try:
                type_at(at, value, state)
            except LookupError as problem:
                yield Problem(f"entries[{n}]{place}", f"the path {at} leads nowhere: {problem}")


def _data_of(entry: Entry) -> Iterator[tuple[str, Condition | Projection]]:
    match entry:
        case Branch(arms=arms):
            found: list[tuple[str, Any]] = [(f".arms[{n}]", condition) for n, (condition, _) in enumerate(arms)]
        case Loop(condition=condition):
            found = [("", condition)]
        case Map(function=function):
            found = [("", function)]
        case Sleep(seconds=seconds, until=until):
            found = [("", seconds), ("", until)]
        case _:
            found = []
    return ((place, data) for place, data in found if isinstance(data, Condition | Projection))


def type_at(at: Path, value: Any, state: Any = None) -> Any:
    """The type of what `at` reads from a value and a state of these types. Raises LookupError where nothing can be."""
    if at.root == "count":
        return int
    found = value if at.root == "value" else Any if state is None else state
    for part in at.parts:
        found = part_type(found, part)
    return found


# Types


def entry_types(entry: Entry, current: Any, state: Any = None) -> tuple[Any, Any]:
    """What an entry takes and gives, where `current` is what reaches it."""
    match entry:
        case Then(node=node) | Loop(node=node):
            return node.input, node.output
        case ForEach(node=node):
            item, output = node.input, node.output
            return GenericAlias(list, (item,)), GenericAlias(list, (output,))
        case Parallel(nodes=nodes):
            return _narrowest([node.input for node in nodes]), dict[str, Any]
        case Branch(mode=mode):
            nodes = nodes_of(entry)
            outputs = [node.output for node in nodes]
            return _narrowest([node.input for node in nodes]), dict[str, Any] if mode == "all" else union(outputs)
        case Map(function=Projection() as projection):
            return Any, projection.type_given(lambda at: _type_or_any(at, current, state))
        case Map(function=function):
            return _map_types(function)
        case WaitFor(schema=schema, timeout_s=timeout_s, otherwise=otherwise):
            return Any, schema if timeout_s is None else union(
                [schema, NoneType if otherwise is None else type(otherwise)]
            )
        case Sleep():
            return Any, current
        case Authored():
            from workflows.definition.authored import Definition

            return Definition, Any


def _type_or_any(at: Path, value: Any, state: Any) -> Any:
    try:
        return type_at(at, value, state)
    except LookupError:
        return Any


def _map_types(function: Callable[..., Any]) -> tuple[Any, Any]:
    try:
        hints: Mapping[str, Any] = get_type_hints(function)
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError, NameError):
        return Any, Any
    return hints.get(names[0], Any) if names else Any, hints.get("return", Any)


def _narrowest(types: list[Any]) -> Any:
    """The type all of several nodes accept, when one of them is it; else Any, and each is checked at run time."""
    for candidate in types:
        if all(fits(candidate, other) for other in types):
            return candidate
    return Any
