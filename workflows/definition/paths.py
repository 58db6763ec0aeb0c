"""Paths: places in the value that reaches an entry, in the run's state, or the count of a loop, written as text.

`value.items[0].price` reads a field, a key or an item after the other; `[-1]` is the last item, and a key that holds a dot or a bracket is
quoted: `value["a.b"]`. `state.tries` reads the run's state, `count` the finished iterations of a loop. Reading never fails and calls
nothing of the value's own: what is not there is MISSING.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from workflows.errors import DefinitionError

if TYPE_CHECKING:
    from workflows.definition.conditions import Condition

Root = Literal["value", "state", "count"]
MAX_PARTS = 32
MAX_CHARS = 1_000

_PART = re.compile(r'\.([^.\[\]"]+)|\[(-?\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')


class Missing:
    """The type of MISSING."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()
"""What a path reads where there is nothing."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a path may read from: the value, the run's state as JSON, and the count where there is one."""

    value: Any
    state: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """One place. Compared with `eq ne lt lte gt gte in_ exists`, it makes a condition."""

    root: Root
    parts: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.parts) > MAX_PARTS:
            raise DefinitionError(f"the path {str(self)[:80]} has more than {MAX_PARTS} parts")
        if self.root == "count" and self.parts:
            raise DefinitionError(f"the path {self} looks into a number: count has no parts")

    def __getitem__(self, part: str | int) -> "Path":
        return dataclasses.replace(self, parts=(*self.parts, part))

    def __str__(self) -> str:
        return self.root + "".join(map(_written, self.parts))

    def read(self, scope: Scope) -> Any:
        """What is there in `scope`, or MISSING."""
        if self.root == "count":
            return MISSING if scope.count is None else scope.count
        current = scope.value if self.root == "value" else scope.state
        for part in self.parts:
            current = _part_of(current, part)
            if current is MISSING:
                return MISSING
        return current

    def eq(self, other: Any) -> "Condition":
        """Holds if both are the same JSON value."""
        return self._compared("eq", other)

    def ne(self, other: Any) -> "Condition":
        """Holds if they are not the same JSON value."""
        return self._compared("ne", other)

    def lt(self, other: Any) -> "Condition":
        """Holds if both are numbers, or both strings, and this one is less."""
        return self._compared("lt", other)

    def lte(self, other: Any) -> "Condition":
        """Holds if both are numbers, or both strings, and this one is not greater."""
        return self._compared("lte", other)

    def gt(self, other: Any) -> "Condition":
        """Holds if both are numbers, or both strings, and this one is greater."""
        return self._compared("gt", other)

    def gte(self, other: Any) -> "Condition":
        """Holds if both are numbers, or both strings, and this one is not less."""
        return self._compared("gte", other)

    def in_(self, other: Any) -> "Condition":
        """Holds if `other` is a list with this in it, or both are strings and this is a part of the other."""
        return self._compared("in", other)

    def exists(self) -> "Condition":
        """Holds if there is something, null included."""
        return self._compared("exists")

    def _compared(self, op: Any, *others: Any) -> "Condition":
        from workflows.definition.conditions import Condition, operand

        return Condition(op, (self, *map(operand, others)))


def path(text: str) -> Path:
    """The path written as `text`. Raises DefinitionError."""
    if len(text) > MAX_CHARS:
        raise DefinitionError(f"a path may have {MAX_CHARS} characters, not {len(text)}: {text[:80]}…")
    root = re.split(r"[.\[]", text, maxsplit=1)[0]
    if root not in get_args(Root):
        raise DefinitionError(f"the path {text!r} must begin with value, state or count")
    parts: list[str | int] = []
    at = len(root)
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            raise DefinitionError(
                f'the path {text!r} can\'t be read from character {at + 1} on; write .name, [0] or ["a name"]'
            )
        parts.append(_read_part(match))
        at = match.end()
    return Path(cast("Root", root), tuple(parts))


def _read_part(match: re.Match[str]) -> str | int:
    name, index, quoted = match.groups()
    if index is not None:
        return int(index)
    return name if quoted is None else str(from_json(quoted))


def _written(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if re.fullmatch(r'[^.\[\]"]+', part) else f"[{to_json(part).decode()}]"


def _part_of(whole: Any, part: str | int) -> Any:
    if isinstance(part, int):
        there = isinstance(whole, list | tuple) and -len(whole) <= part < len(whole)
        return whole[part] if there else MISSING
    if isinstance(whole, Mapping):
        return whole.get(part, MISSING)
    if isinstance(whole, BaseModel):
        known = part in type(whole).model_fields or part in (whole.model_extra or {})
        return getattr(whole, part, MISSING) if known else MISSING
    if dataclasses.is_dataclass(whole) and not isinstance(whole, type):
        return getattr(whole, part, MISSING) if part in {each.name for each in dataclasses.fields(whole)} else MISSING
    return MISSING
