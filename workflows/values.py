"""Values at boundaries: how they are checked, and how they travel as JSON bytes."""

from functools import lru_cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json
from typing_extensions import is_typeddict

from workflows.errors import BlobMissingError, InputError

DEEPEST = 200
"""Levels of a value that can be read from storage."""
LONGEST_ID = 1000
"""Bytes: three of them fit into one entry of a PostgreSQL index."""


class Interrupted(BaseModel):
    """The recorded result of an irreversible step that was cut off: nobody knows whether it happened."""

    model_config = ConfigDict(frozen=True)

    interrupted: Literal[True] = True
    outcome: Literal["unknown"] = "unknown"
    reason: str = "the process died while it ran"


@lru_cache(maxsize=1024)
def _adapter(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


def adapter(type_: Any) -> TypeAdapter[Any]:
    """The pydantic adapter of a type, cached where the type can be hashed."""
    try:
        return _adapter(type_)
    except TypeError:
        return TypeAdapter(type_)


@lru_cache(maxsize=1024)
def _loose(type_: Any) -> bool:
    if type_ is Any or type_ is object:
        return True
    if isinstance(type_, type) and issubclass(type_, BaseModel):
        return any(loose(field.annotation) for field in type_.model_fields.values() if field.annotation is not type_)
    if is_typeddict(type_):
        return any(loose(each) for each in get_type_hints(type_).values())
    return type_ in (dict, list, tuple, set, frozenset) or any(loose(each) for each in get_args(type_))


def loose(type_: Any) -> bool:
    """Whether a type leaves open what some part of a value is: that part comes back from JSON as JSON has it, lists for tuples."""
    try:
        return _loose(type_)
    except (TypeError, RecursionError):  # one that can't be hashed, or that holds itself
        return True


def check(value: Any, type_: Any, *, where: str) -> Any:
    """`value` as an instance of `type_`. Raises InputError naming `where` and each field that is wrong."""
    if type_ is Any:
        return value
    try:
        return adapter(type_).validate_python(value)
    except ValidationError as error:
        raise _mismatch(error, type_, where) from None


def check_ids(*texts: str | None) -> None:
    """Raise InputError unless every text can be an id or a key in any store: `LONGEST_ID` bytes of UTF-8, without NUL."""
    for text in filter(None, texts):
        try:
            fit = len(text.encode()) <= LONGEST_ID and "\0" not in text
        except UnicodeEncodeError:
            fit = False
        if not fit:
            raise InputError(f"{text[:50]!r} is no id or key: at most {LONGEST_ID} bytes of UTF-8, and no NUL")


def encode(value: Any, type_: Any, *, where: str) -> bytes:
    """`value` as JSON bytes. Raises InputError if it is not JSON-able."""
    try:
        data = _readable(adapter(type_).dump_json(value))
        if b"null" in data:  # what is no number becomes null, which its type may not take back
            adapter(type_).validate_json(data)
        return data
    except (PydanticSerializationError, TypeError, ValueError) as error:
        raise InputError(f"{where} returned a value that can't be stored as JSON: {error}") from None


def encode_plain(value: Any, *, where: str) -> bytes:
    """A value of no declared type as JSON bytes. Raises InputError if it is not JSON-able."""
    try:
        return _readable(to_json(value))
    except (PydanticSerializationError, TypeError, ValueError) as error:
        raise InputError(f"{where} can't be stored as JSON: {error}") from None


def _readable(data: bytes) -> bytes:
    """JSON that can be read again: the parser takes fewer levels than the writer. Raises ValueError."""
    if data.count(b"[") + data.count(b"{") > DEEPEST:
        from_json(data)
    return data


def decode(data: bytes | None, type_: Any, *, where: str) -> Any:
    """JSON bytes from storage as an instance of `type_`. Raises InputError naming `where`, BlobMissingError for a large value left behind."""
    try:
        return adapter(type_).validate_json(data or b"null")
    except ValidationError as error:
        if (
            data is not None and data[:1] == b"\x00"
        ):  # no JSON begins with it: a reference that storage could not resolve
            raise BlobMissingError(f"{where} is a large value that was not read with its row, or is gone") from None
        raise _mismatch(error, type_, where) from None


def _mismatch(error: ValidationError, type_: Any, where: str) -> InputError:
    wrong = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in error.errors()[:5])
    return InputError(f"{where}: the value is no {name_of(type_)}: {wrong}")


def name_of(type_: Any) -> str:
    """A type as people write it."""
    return type_.__name__ if isinstance(type_, type) and not get_args(type_) else str(type_).replace("typing.", "")


def fits(source: Any, target: Any) -> bool:
    """Whether every value of annotation `source` may be passed where `target` is asked for. Any fits with everything."""
    if Any in (source, target) or source == target or target is object:
        return True
    if get_origin(source) in (Union, UnionType):
        return all(fits(each, target) for each in get_args(source))
    if get_origin(target) in (Union, UnionType):
        return any(fits(source, each) for each in get_args(target))
    return _class_fits(source, target)


def _class_fits(source: Any, target: Any) -> bool:
    if is_typeddict(source) or is_typeddict(target):
        return _object_fits(source, target)
    wide, narrow = get_origin(target) or target, get_origin(source) or source
    if source is None or target is None or not isinstance(wide, type) or not isinstance(narrow, type):
        return source is target
    if not issubclass(narrow, wide) and not (narrow is int and wide is float):
        return False
    ours, theirs = get_args(source), get_args(target)
    if not ours or not theirs or len(ours) != len(theirs):
        return True  # an unparametrised side says nothing about its parts
    return all(fits(a, b) for a, b in zip(ours, theirs, strict=True))


def _object_fits(source: Any, target: Any) -> bool:
    """Where one of two is a TypedDict: a dict with the fields of the other, be that a TypedDict or a model."""
    if not is_typeddict(source):
        return (get_origin(source) or source) is dict
    given = get_type_hints(source)
    if (get_origin(target) or target) is dict:
        values = get_args(target)[1:]
        return all(fits(each, values[0]) for each in given.values()) if values else True
    wanted = _wanted(target)
    return wanted is not None and all(
        fits(given[name], type_) if name in given else not required for name, (type_, required) in wanted.items()
    )


def _wanted(target: Any) -> dict[str, tuple[Any, bool]] | None:
    """The fields a dict must or may have to be a `target`, by name; None if no dict can be one."""
    if is_typeddict(target):
        return {name: (type_, name in target.__required_keys__) for name, type_ in get_type_hints(target).items()}
    if isinstance(target, type) and issubclass(target, BaseModel):
        return {
            name: (field.annotation, field.is_required())
            for name, field in target.model_fields.items()
            if not field.alias
        }
    return None
