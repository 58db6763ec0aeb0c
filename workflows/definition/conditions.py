"""Conditions as data: a small language over paths, JSON in a spec and usable in the builder in place of a lambda.

    {"and": [{"gt": [{"path": "value.amount"}, 100]}, {"not": {"exists": {"path": "state.approved_by"}}}]}
    path("value.amount").gt(100) & ~path("state.approved_by").exists()

`eq ne lt lte gt gte in` take two operands, each a path or a JSON literal (`{"literal": …}` for one that looks like a path); `exists`
takes a path, `not` a condition, `and` and `or` a list of them.

A condition is true or false of every value and never fails. What is compared is the JSON form (a date is a string, an enum its value). What
is missing, or has no JSON form, reads as null; only `exists` tells them apart. `eq` compares deeply, 1 equals 1.0 and true equals neither; `ne` is
its opposite. `lt lte gt gte` hold only between two numbers or two strings: with null, or of a number and a string, all four are
false, so `not lt` is not `gte`. `in` holds if the right side is a list with an equal item, or both are strings and the left is part of the right.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, get_args

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from workflows.definition.paths import MISSING, Path, Scope, path
from workflows.errors import DefinitionError

Op = Literal["eq", "ne", "lt", "lte", "gt", "gte", "in", "exists", "and", "or", "not"]
OPS: tuple[str, ...] = get_args(Op)
ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge,
}  # fmt: skip
MAX_DEPTH = 16
MAX_TERMS = 200


@dataclass(frozen=True, slots=True)
class Constant:
    """A JSON value that stands for itself."""

    value: Any

    def read(self, scope: Scope) -> Any:
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition. Call it with a value, as a lambda would be; combine it with `&`, `|` and `~`. Raises DefinitionError if it is too large."""

    op: Op
    terms: tuple["Path | Constant | Condition", ...]

    def __post_init__(self) -> None:
        if self.depth > MAX_DEPTH:
            raise DefinitionError(f"a condition may be {MAX_DEPTH} deep, not {self.depth}")
        if self.size > MAX_TERMS:
            raise DefinitionError(f"a condition may have {MAX_TERMS} terms, not {self.size}")

    def __call__(self, value: Any, count: int | None = None, state: Mapping[str, Any] | None = None) -> bool:
        return self.holds(Scope(value, state or {}, count))

    def __and__(self, other: "Condition") -> "Condition":
        return self._joined("and", other)

    def __or__(self, other: "Condition") -> "Condition":
        return self._joined("or", other)

    def __invert__(self) -> "Condition":
        return Condition("not", (self,))

    def _joined(self, op: Literal["and", "or"], other: "Condition") -> "Condition":
        mine = self.terms if self.op == op else (self,)  # `a & b & c` is one `and` of three, however many
        return Condition(op, (*mine, other))

    @property
    def depth(self) -> int:
        """1 for a comparison, one more around it for each `and`, `or` and `not`."""
        return 1 + max((each.depth for each in self.terms if isinstance(each, Condition)), default=0)

    @property
    def size(self) -> int:
        """How many operators and operands it has."""
        return 1 + sum(each.size if isinstance(each, Condition) else 1 for each in self.terms)

    @property
    def paths(self) -> list[Path]:
        """Every path in it."""
        found: list[Path] = []
        for each in self.terms:
            found += each.paths if isinstance(each, Condition) else [each] if isinstance(each, Path) else []
        return found

    def holds(self, scope: Scope) -> bool:
        """Whether it is true in `scope`. Never raises."""
        match self.op:
            case "and" | "or":
                parts = (each.holds(scope) for each in self.terms if isinstance(each, Condition))
                return all(parts) if self.op == "and" else any(parts)
            case "not":
                (inner,) = self.terms
                return isinstance(inner, Condition) and not inner.holds(scope)
        read = [each.read(scope) for each in self.terms if not isinstance(each, Condition)]
        return read[0] is not MISSING if self.op == "exists" else _compared(self.op, *map(plain, read))

    def to_json(self) -> dict[str, Any]:
        """The condition as JSON."""
        terms = [each.to_json() if isinstance(each, Condition) else operand_to_json(each) for each in self.terms]
        return {self.op: terms[0] if self.op in ("not", "exists") else terms}


def operand(value: Any) -> Path | Constant:
    """What a condition is given: a path as it is, anything else as a literal. Raises DefinitionError if it is no JSON value."""
    if isinstance(value, Path):
        return value
    try:
        return Constant(from_json(to_json(value), allow_inf_nan=False))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise DefinitionError(f"a literal in a condition must be a JSON value: {error}") from None


def operand_to_json(term: Path | Constant) -> Any:
    """An operand as JSON; a literal that would be read as a path or a literal is wrapped."""
    if isinstance(term, Path):
        return {"path": str(term)}
    return {"literal": term.value} if _sole_key(term.value) in ("path", "literal") else term.value


def operand_from_json(data: Any) -> Path | Constant:
    """The operand that `data` says. Raises DefinitionError."""
    match _sole_key(data):
        case "path":
            if not isinstance(data["path"], str):
                raise DefinitionError(f"a path is text, not {data['path']!r}")
            return path(data["path"])
        case "literal":
            return Constant(data["literal"])
    return Constant(data)


def _sole_key(data: Any) -> str | None:
    return next(iter(data)) if isinstance(data, dict) and len(data) == 1 else None


def plain(value: Any) -> Any:
    """The JSON form of what a path read; None for what is missing or has none."""
    if value is MISSING or value is None:
        return None
    if isinstance(value, str | int | float) and not isinstance(value, Enum):
        return value
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return None


def _compared(op: str, left: Any, right: Any) -> bool:
    if op in ("eq", "ne"):
        return _equal(left, right) is (op == "eq")
    if op == "in":
        if isinstance(right, list):
            return any(_equal(left, each) for each in right)
        return isinstance(left, str) and isinstance(right, str) and left in right
    if (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
        return ORDER[op](left, right)
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(left: Any, right: Any) -> bool:
    """Deep equality of JSON values, without recursion: what a run carries may be nested deeper than the interpreter's stack."""
    pairs: list[tuple[Any, Any]] = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pairs += [(a[key], b[key]) for key in a]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif isinstance(a, bool) or isinstance(b, bool):
            if a is not b:
                return False
        elif a != b:
            return False
    return True


def read_condition(data: Any, *, report: Callable[[str, str], None], place: str = "") -> Condition | None:
    """The condition that JSON says; else None, and every problem has been given to `report(place, message)`."""
    return _Reader(report).read(data, place, 1)


class _Reader:
    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report

    def read(self, data: Any, place: str, depth: int) -> Condition | None:
        op = _sole_key(data)
        if op is None:
            self._report(place, f"a condition is an object with one key, one of {' '.join(OPS)}; not {_shown(data)}")
            return None
        if op not in OPS:
            self._report(place, f"there is no operator {op!r}; there are {' '.join(OPS)}")
            return None
        if depth > MAX_DEPTH:
            self._report(place, f"a condition may be {MAX_DEPTH} deep")
            return None
        terms = self._terms_of(op, data[op], f"{place}.{op}" if place else op, depth)
        if terms is None:
            return None
        try:
            return Condition(op, terms)  # type: ignore[arg-type]  # one of OPS
        except DefinitionError as error:
            self._report(place, str(error))
            return None

    def _terms_of(self, op: str, data: Any, place: str, depth: int) -> "tuple[Any, ...] | None":
        if op == "not":
            return self._all([self.read(data, place, depth + 1)])
        if op == "exists":
            found = self._operand(data, place)
            if found is not None and not isinstance(found, Path):
                self._report(place, 'exists takes a path: {"path": "value.…"}')
                return None
            return self._all([found])
        if not isinstance(data, list):
            self._report(place, f"{op} takes a list, not {_shown(data)}")
            return None
        if op in ("and", "or"):
            if not data:
                self._report(place, f"{op} needs at least one condition")
                return None
            return self._all(
                [self.read(each, f"{place}[{n}]", depth + 1) for n, each in enumerate(data[: MAX_TERMS + 1])]
            )
        if len(data) != 2:
            self._report(place, f"{op} takes two operands, not {len(data)}")
            return None
        return self._all([self._operand(each, f"{place}[{n}]") for n, each in enumerate(data)])

    def _operand(self, data: Any, place: str) -> Path | Constant | None:
        try:
            return operand_from_json(data)
        except DefinitionError as error:
            self._report(place, str(error))
            return None

    @staticmethod
    def _all(terms: Sequence[Any]) -> tuple[Any, ...] | None:
        return None if any(each is None for each in terms) else tuple(terms)


def _shown(data: Any) -> str:
    return repr(data)[:60]
