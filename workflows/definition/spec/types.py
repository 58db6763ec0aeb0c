"""Types as data: names of JSON's types, and lists, maps, objects and unions of them; any other type by its name in the registry."""

from collections.abc import Callable
from types import GenericAlias, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from workflows.definition.parts import object_type, union
from workflows.definition.spec.names import Names

NAMED = {"any": Any, "string": str, "integer": int, "number": float, "boolean": bool, "null": NoneType}
MAX_DEPTH = 16
FORMS = f'a type is one of {" ".join(NAMED)}, {{"list": T}}, {{"map": T}}, {{"object": {{…}}}}, {{"any_of": [T, …]}} or {{"named": "…"}}'

Report = Callable[[str, str], None]


def read_type(data: Any, names: Names, *, report: Report, place: str, depth: int = 1) -> Any:
    """The type that `data` says; Any after a problem was given to `report(place, message)`."""
    if isinstance(data, str) and data in NAMED:
        return NAMED[data]
    if not isinstance(data, dict) or len(data) != 1 or depth > MAX_DEPTH:
        report(place, FORMS if depth <= MAX_DEPTH else f"a type may be {MAX_DEPTH} deep")
        return Any
    (form, inner), at = next(iter(data.items())), f"{place}.{next(iter(data))}"
    match form, inner:
        case "list", _:
            return GenericAlias(list, (read_type(inner, names, report=report, place=at, depth=depth + 1),))
        case "map", _:
            return GenericAlias(dict, (str, read_type(inner, names, report=report, place=at, depth=depth + 1)))
        case "object", dict():
            fields = {
                key.removesuffix("?"): read_type(part, names, report=report, place=f"{at}.{key}", depth=depth + 1)
                for key, part in inner.items()
            }
            return object_type(fields, optional=frozenset(key.removesuffix("?") for key in inner if key.endswith("?")))
        case "any_of", [_, *_]:
            parts = [
                read_type(part, names, report=report, place=f"{at}[{n}]", depth=depth + 1)
                for n, part in enumerate(inner)
            ]
            return union(parts)
        case "named", str():
            found = names.find("type", inner)
            if found is None:
                report(at, f"there is no type {inner!r}; there are {', '.join(names.known('type')) or 'none'}")
            return Any if found is None else found
    report(place, FORMS)
    return Any


def write_type(type_: Any, name: Callable[[], str]) -> Any:
    """A type as data; by `name()` where it is of no other form."""
    written = _written(NoneType if type_ is None else type_)
    return {"named": name()} if written is None else written


def _written(type_: Any) -> Any | None:
    for text, known in NAMED.items():
        if type_ is known:
            return text
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is list and len(arguments) == 1:
        return _around("list", _written(arguments[0]))
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        return _around("map", _written(arguments[1]))
    if origin in (Union, UnionType):
        parts = [_written(each) for each in arguments]
        return None if None in parts else {"any_of": parts}
    if is_typeddict(type_):
        return _written_object(type_)
    return None


def _written_object(type_: Any) -> Any | None:
    """Only what `object_type` makes anew; a TypedDict of somebody's own keeps its name."""
    hints, optional = get_type_hints(type_), frozenset(type_.__optional_keys__)
    if object_type(hints, optional=optional) is not type_:
        return None
    fields = {f"{key}?" if key in optional else key: _written(part) for key, part in hints.items()}
    return None if None in fields.values() else {"object": fields}


def _around(form: str, inner: Any | None) -> Any | None:
    return None if inner is None else {form: inner}
