"""Reads the entries of one workflow from data."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from workflows.definition.conditions import read_condition
from workflows.definition.graph import Authored, Branch, Entry, ForEach, Loop, Map, Parallel, Sleep, Then, WaitFor
from workflows.definition.projection import read_projection
from workflows.definition.spec import models
from workflows.definition.spec.form import inside, shown
from workflows.definition.spec.names import Kind
from workflows.definition.step import Step

if TYPE_CHECKING:
    from workflows.definition.spec.reader import Reader

ENTRY: TypeAdapter[Any] = TypeAdapter(models.EntrySpec)


class EntryReader:
    """Reads the entries of one workflow of the document; `references` are the names it uses, by place in the workflow."""

    def __init__(self, reader: "Reader", place: str) -> None:
        self._reader = reader
        self.place = place
        self.references: dict[str, str] = {}

    def entries(self, data: Any) -> list[Entry]:
        at = inside(self.place, "entries")
        if not isinstance(data, list):
            self._reader.report(at, "entries is a list, with at least one entry")
            return []
        if not 1 <= len(data) <= self._reader.bounds.entries:
            self._reader.report(at, f"a workflow has 1 to {self._reader.bounds.entries} entries, not {len(data)}")
            return []
        return [self._entry(each, n) for n, each in enumerate(data)]

    def _entry(self, data: Any, n: int) -> Entry:
        """The entry, or one that takes and gives anything, so that its neighbours can be checked."""
        place = inside(self.place, f"entries[{n}]")
        try:
            found = self._made(ENTRY.validate_python(data), data, n, place)
        except ValidationError as error:
            self._reader.invalid(error, place, data)
            found = None
        return found or Map(f"unread-{n}", lambda value: value)

    def _made(self, entry: Any, data: dict[str, Any], n: int, place: str) -> Entry | None:
        own = data.get("id")
        match entry:
            case models.Then():
                node = self._node(data, place)
                return node and Then(node.id, node)
            case models.ForEach():
                node = self._node(data, place)
                return node and ForEach(node.id, node, entry.concurrency)
            case models.Loop():
                node, when = self._node(data, place), self._condition(entry.when, f"{place}.when")
                if node is None or when is None:
                    return None
                self._named(f"/{node.id}#when", entry.when)
                return Loop(node.id, node, when, wanted=entry.op == "dowhile", max_iterations=entry.max_iterations)
            case models.Parallel():
                nodes = [self._node(each, f"{place}.nodes[{k}]") for k, each in enumerate(data["nodes"])]
                return None if None in nodes else Parallel(own or f"parallel-{n}", tuple(nodes), entry.limit)
            case models.Branch():
                return self._branch(entry, data, own or f"branch-{n}", place)
            case models.Map():
                return self._map(data, own or f"map-{n}", place)
            case models.Sleep():
                return self._sleep(entry.seconds, own or f"sleep-{n}", place)
            case models.SleepUntil():
                return self._sleep_until(entry.until, own or f"sleep-{n}", place)
            case models.WaitFor():
                return self._wait(entry, own or f"wait-{entry.name}-{n}", place)
            case models.Authored():
                found = self.found("value", entry.call, f"/{own or f'authored-{n}'}#catalogue", f"{place}.call")
                return found and Authored(own or f"authored-{n}", found)
        return None

    def _node(self, data: Mapping[str, Any], place: str) -> Any | None:
        if ("step" in data) is ("workflow" in data):
            self._reader.report(place, "it names either a step or a workflow")
            return None
        if "workflow" in data:
            if "id" in data:
                self._reader.report(f"{place}.id", "a workflow keeps its own id")
            return self._reader.nested(data, place, self.references)
        found = self._reader.find("step", data["step"], f"{place}.step")
        if found is None:
            return None
        node: Step[Any, Any] = found.named(data["id"]) if data.get("id") else found
        self.references[f"/{node.id}"] = data["step"]
        return node

    def _branch(self, entry: models.Branch, data: dict[str, Any], own: str, place: str) -> Branch | None:
        arms: list[Any] = []
        for n, each in enumerate(data["arms"]):
            at = f"{place}.arms[{n}]"
            arms.append((self._condition(each.get("when"), f"{at}.when"), self._node(each, at)))
            self._named(f"/{own}#arms[{n}]", each.get("when"))
        given = data.get("otherwise")
        otherwise = None if given is None else self._node(given, f"{place}.otherwise")
        if any(None in arm for arm in arms) or (given is not None and otherwise is None):
            return None
        return Branch(own, tuple(arms), otherwise, entry.mode)

    def _map(self, data: dict[str, Any], own: str, place: str) -> Map | None:
        if ("to" in data) is ("call" in data):
            self._reader.report(place, "a map has either `to`, a template, or `call`, a function")
            return None
        if "call" in data:
            function = self.found("function", data["call"], f"/{own}#to", f"{place}.call")
        else:
            function = read_projection(data["to"], report=self._reader.report, place=f"{place}.to")
        return function and Map(own, function)

    def _sleep(self, data: Any, own: str, place: str) -> Sleep | None:
        if isinstance(data, int | float) and not isinstance(data, bool):
            return Sleep(own, seconds=data)
        found = self._computed(
            data, f"/{own}#seconds", f"{place}.seconds", 'seconds is a number, {"path": …} or {"call": …}'
        )
        return found and Sleep(own, seconds=found)

    def _sleep_until(self, data: Any, own: str, place: str) -> Sleep | None:
        at, forms = (
            f"{place}.until",
            'until is a time with a zone like "2030-01-31T09:00:00+01:00", {"path": …} or {"call": …}',
        )
        if not isinstance(data, str):
            found = self._computed(data, f"/{own}#until", at, forms)
            return found and Sleep(own, until=found)
        try:
            return Sleep(own, until=datetime.fromisoformat(data))
        except ValueError:
            self._reader.report(at, f"{forms}, not {data[:60]!r}")
            return None

    def _computed(self, data: Any, key: str, place: str, forms: str) -> Any | None:
        """A function of the value: a call, or a path."""
        if not isinstance(data, dict) or not data.keys() & {"call", "path"}:
            self._reader.report(place, f"{forms}, not {shown(data)}")
            return None
        if _is_call(data):
            return self.found("function", data["call"], key, place)
        return read_projection(data, report=self._reader.report, place=place)

    def _wait(self, entry: models.WaitFor, own: str, place: str) -> WaitFor | None:
        type_ = self.type_of(entry.type, f"/{own}#type", f"{place}.type")
        otherwise: Any = entry.otherwise
        if entry.otherwise_call is not None:
            otherwise = self.found("value", entry.otherwise_call, f"/{own}#otherwise", f"{place}.otherwise_call")
        return WaitFor(own, entry.name, type_, entry.timeout_s, otherwise)

    def type_of(self, data: Any, key: str, place: str) -> Any:
        """The type that `data` says; its name is kept."""
        if isinstance(data, dict) and isinstance(data.get("named"), str):
            self.references[key] = data["named"]
        return self._reader.type_of(data, place)

    def _condition(self, data: Any, place: str) -> Callable[..., Any] | None:
        if _is_call(data):
            found: Callable[..., Any] | None = self._reader.find("function", data["call"], place)
            return found
        return read_condition(data, report=self._reader.report, place=place)

    def found(self, kind: Kind, name: str, key: str, place: str) -> Any | None:
        """What is called `name`, if it is found; the name is kept."""
        self.references[key] = name
        return self._reader.find(kind, name, place)

    def _named(self, key: str, data: Any) -> None:
        if _is_call(data):
            self.references[key] = data["call"]


def _is_call(data: Any) -> bool:
    return isinstance(data, dict) and data.keys() == {"call"} and isinstance(data["call"], str)
