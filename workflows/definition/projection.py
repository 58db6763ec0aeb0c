"""Projections: values put together from paths and literals, JSON in a spec and usable in the builder's `map` in place of a lambda.

    {"title": {"path": "value.item"}, "tags": ["new", {"path": "value.tag", "default": "none"}], "kept": {"literal": {"path": "as it is"}}}
    project({"title": path("value.item"), "tags": ["new", path("value.tag")]})

An object whose only key is `path` (with or without `default`) picks what is there; where nothing is, `default`, or else null. One whose only
key is `literal` stands for what it holds. Every other object, list and scalar is made as it is written. Making a value never fails and runs
no code.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Any

from workflows.definition.conditions import Constant, operand
from workflows.definition.parts import object_type, union
from workflows.definition.paths import MISSING, Path, Scope, path
from workflows.errors import DefinitionError

MAX_DEPTH = 16
MAX_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class Pick:
    """What is at a path, or else `default`."""

    path: Path
    default: Any = None

    def make(self, scope: Scope) -> Any:
        """The value picked."""
        found = self.path.read(scope)
        return self.default if found is MISSING else found

    def to_json(self) -> Any:
        """The pick as JSON."""
        return {"path": str(self.path), **({} if self.default is None else {"default": self.default})}


@dataclass(frozen=True, slots=True)
class Shape:
    """An object or a list with a template for each of its parts."""

    parts: "tuple[tuple[str | int, Template], ...]"
    is_list: bool

    def make(self, scope: Scope) -> Any:
        """The object or list."""
        made = [(key, _make(part, scope)) for key, part in self.parts]
        return [value for _, value in made] if self.is_list else dict(made)

    def to_json(self) -> Any:
        """The object or list as JSON. An object that would be read as a pick is no shape: reading never makes one."""
        written = [(key, _written(part)) for key, part in self.parts]
        return [value for _, value in written] if self.is_list else dict(written)


Template = Pick | Shape | Constant


@dataclass(frozen=True, slots=True)
class Projection:
    """A pure function of a value and of the run's state, as data."""

    template: Template

    def __call__(self, value: Any, state: Mapping[str, Any] | None = None) -> Any:
        return self.make(Scope(value, state or {}))

    def make(self, scope: Scope) -> Any:
        """The value put together. Never raises."""
        return _make(self.template, scope)

    @property
    def paths(self) -> list[Path]:
        """Every path in it."""
        return _paths(self.template)

    def type_given(self, type_at: Callable[[Path], Any]) -> Any:
        """The type of what it makes, where `type_at` says what a path leads to."""
        return _type_of(self.template, type_at)

    def to_json(self) -> Any:
        """The template as JSON."""
        return _written(self.template)


def project(template: Any) -> Projection:
    """A projection written with Python's own lists, dicts and literals, and `path(…)` for what is picked. Raises DefinitionError."""
    return Projection(_from_python(template))


def read_projection(data: Any, *, report: Callable[[str, str], None], place: str = "") -> Projection | None:
    """The projection that JSON says; else None, and every problem has been given to `report(place, message)`."""
    reader = _Reader(report)
    template = reader.read(data, place, 1)
    if reader.parts > MAX_PARTS:
        report(place, f"a projection may have {MAX_PARTS} parts, not {reader.parts}")
    return None if template is None or reader.failed else Projection(template)


def _make(template: Template, scope: Scope) -> Any:
    return template.value if isinstance(template, Constant) else template.make(scope)


def _written(template: Template) -> Any:
    if not isinstance(template, Constant):
        return template.to_json()
    return {"literal": template.value} if isinstance(template.value, dict | list) else template.value


def _type_of(template: Template, type_at: Callable[[Path], Any]) -> Any:
    if isinstance(template, Constant):
        return type(template.value)
    if isinstance(template, Pick):
        return (
            type_at(template.path)
            if template.default is None
            else union([type_at(template.path), type(template.default)])
        )
    types = [_type_of(part, type_at) for _, part in template.parts]
    if template.is_list:
        return GenericAlias(list, (union(types) if types else Any,))
    return object_type({str(key): type_ for (key, _), type_ in zip(template.parts, types, strict=True)})


def _paths(template: Template) -> list[Path]:
    if isinstance(template, Pick):
        return [template.path]
    return [found for _, part in template.parts for found in _paths(part)] if isinstance(template, Shape) else []


def _from_python(template: Any, depth: int = 1) -> Template:
    if depth > MAX_DEPTH:
        raise DefinitionError(f"a projection may be {MAX_DEPTH} deep")
    if isinstance(template, Path):
        return Pick(_no_count(template))
    if isinstance(template, dict):
        keys = list(template)
        if any(not isinstance(key, str) for key in keys) or set(keys) in ({"path"}, {"literal"}, {"path", "default"}):
            raise DefinitionError(
                f"a projected object has keys of text, and others than 'path' or 'literal' alone: {keys}"
            )
        return Shape(tuple((key, _from_python(part, depth + 1)) for key, part in template.items()), is_list=False)
    if isinstance(template, list | tuple):
        return Shape(tuple((n, _from_python(part, depth + 1)) for n, part in enumerate(template)), is_list=True)
    constant = operand(template)
    assert isinstance(constant, Constant)
    return constant


def _no_count(at: Path) -> Path:
    if at.root == "count":
        raise DefinitionError("count is known to the condition of a loop only")
    return at


class _Reader:
    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self.parts = 0
        self.failed = False

    def read(self, data: Any, place: str, depth: int) -> Template | None:
        self.parts += 1
        if depth > MAX_DEPTH:
            self._no(place, f"a projection may be {MAX_DEPTH} deep")
            return None
        if isinstance(data, dict):
            if "path" in data and data.keys() <= {"path", "default"}:
                return self._pick(data, place)
            if data.keys() == {"literal"}:
                return Constant(data["literal"])
            return self._shape(
                [(key, f"{place}.{key}" if place else key, part) for key, part in data.items()], depth, is_list=False
            )
        if isinstance(data, list):
            return self._shape([(n, f"{place}[{n}]", part) for n, part in enumerate(data)], depth, is_list=True)
        return Constant(data)

    def _pick(self, data: dict[str, Any], place: str) -> Pick | None:
        if not isinstance(data["path"], str):
            self._no(place, f"a path is text, not {data['path']!r}")
            return None
        try:
            return Pick(_no_count(path(data["path"])), data.get("default"))
        except DefinitionError as error:
            self._no(place, str(error))
            return None

    def _shape(self, items: list[tuple[Any, str, Any]], depth: int, *, is_list: bool) -> Shape:
        read = [(key, self.read(part, at, depth + 1)) for key, at, part in items[: MAX_PARTS + 1]]
        return Shape(tuple((key, part) for key, part in read if part is not None), is_list)

    def _no(self, place: str, message: str) -> None:
        self.failed = True
        self._report(place, message)
