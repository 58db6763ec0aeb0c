"""Types made of parts: what a path leads to in one, objects described field by field, unions."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import TypedDict, is_typeddict

from workflows.values import name_of

SCALARS = (str, int, float, bool, bytes, NoneType)


def union(types: Sequence[Any]) -> Any:
    """The type of a value of any of `types`; Any if one of them is."""
    found = types[0]
    for each in types[1:]:
        if found is Any or each is Any:
            return Any
        found = found if found == each else Union[found, each]  # noqa: UP007 — also of what `|` does not take
    return found


def object_type(fields: Mapping[str, Any], *, optional: frozenset[str] = frozenset()) -> Any:
    """The type of a dict with these fields: the same for the same fields, so that graphs read from equal specs are equal."""
    items = tuple(fields.items())
    try:
        return _object_type(items, optional)
    except TypeError:  # a type that can't be hashed
        return _new_object_type(items, optional)


def _new_object_type(items: tuple[tuple[str, Any], ...], optional: frozenset[str]) -> Any:
    name = "{" + ", ".join(f"{key}{'?' if key in optional else ''}: {name_of(type_)}" for key, type_ in items) + "}"
    make: Any = TypedDict
    return make(name, {key: NotRequired[type_] if key in optional else type_ for key, type_ in items})


_object_type = lru_cache(maxsize=1024)(_new_object_type)


def part_type(whole: Any, part: str | int) -> Any:
    """The type at `part` of a value of type `whole`; Any where it can't be known. Raises LookupError saying why nothing can be there."""
    if whole in (Any, object):  # which is a class, too, from 3.11 on
        return Any
    origin = get_origin(whole)
    if origin is Annotated:
        return part_type(get_args(whole)[0], part)
    if origin in (Union, UnionType):
        return _union_part(get_args(whole), part)
    if whole in SCALARS or whole is None:
        raise LookupError(f"{name_of(whole)} has no parts")
    kind = origin or whole
    if isinstance(part, int):
        return _item_type(whole, kind)
    if (fields := _fields(kind)) is not None:
        return _field_type(kind, fields, part)
    if isinstance(kind, type) and issubclass(kind, Mapping):
        return get_args(whole)[1] if len(get_args(whole)) == 2 else Any
    if isinstance(kind, type) and issubclass(kind, list | tuple):
        raise LookupError(f"{name_of(whole)} has items and no field {part!r}")  # noqa: TRY004 — of a type, not of a value
    return Any


def _union_part(types: Sequence[Any], part: str | int) -> Any:
    found, problems = [], []
    for each in types:
        try:
            found.append(part_type(each, part))
        except LookupError as problem:
            problems.append((each, problem))
    if not found:
        raise next((problem for each, problem in problems if each is not NoneType), problems[0][1])
    return union([*found, NoneType] if problems else found)


def _item_type(whole: Any, kind: Any) -> Any:
    if not isinstance(kind, type):
        return Any
    if not issubclass(kind, list | tuple):
        raise LookupError(f"{name_of(whole)} has no items by number")  # noqa: TRY004 — of a type, not of a value
    items = [each for each in get_args(whole) if each is not Ellipsis]
    return union(items) if items else Any


def _fields(kind: Any) -> Mapping[str, Any] | None:
    if is_typeddict(kind):
        return get_type_hints(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return None


def _field_type(kind: Any, fields: Mapping[str, Any], part: str) -> Any:
    if part in fields:
        return fields[part]
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.model_config.get("extra") == "allow":
        return Any
    raise LookupError(f"{name_of(kind)} has no field {part!r}; it has {', '.join(fields) or 'none'}")
