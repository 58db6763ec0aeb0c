"""Run-level state: values every step of a run may read and set, beside what flows from step to step."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from workflows.errors import InputError
from workflows.values import adapter, check, encode_plain


class State:
    """The fold of the changes that steps recorded, so that a run taken up again finds what its steps had left.

    Where arms that ran at once set the same key, the change that was committed last stays, on every replay alike.
    """

    def __init__(self, schema: Any = None) -> None:
        self._schema = schema
        self._values: dict[str, Any] = {}
        self._set_at: dict[str, int] = {}
        self._last = 0

    def declare(self, schema: Any) -> None:
        """Say of what type the state is, once it is known."""
        self._schema = schema

    @property
    def values(self) -> Mapping[str, Any]:
        """What is set now, as JSON-able values by key."""
        return MappingProxyType(self._values)

    def like(self, values: Mapping[str, Any]) -> "State":
        """A state of the same type with these values."""
        other = State(self._schema)
        other.apply(values)
        return other

    def model(self) -> Any:
        """The values as the workflow's `state` type, or as a mapping where it declares none. Raises InputError."""
        if self._schema is None:
            return dict(self._values)
        return check(dict(self._values), self._schema, where="the state of the run")

    def checked(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """`changes` as JSON-able values, if the state may take them. Raises InputError naming each field that is wrong."""
        if self._schema is None:
            return self._plain(dict(changes), dict[str, Any])
        whole = check({**self._values, **changes}, self._schema, where="the state of the run")
        dumped = self._plain(whole, self._schema)
        if unknown := sorted(changes.keys() - dumped.keys()):
            raise InputError(f"the state of the run has no {', '.join(unknown)}; it has {', '.join(sorted(dumped))}")
        return {key: dumped[key] for key in changes}

    @staticmethod
    def _plain(values: Any, type_: Any) -> dict[str, Any]:
        plain: dict[str, Any] = adapter(type_).dump_python(values, mode="json")
        encode_plain(plain, where="the state of the run")
        return plain

    def apply(self, changes: Mapping[str, Any], *, seq: int = 0) -> None:
        """Set what a step recorded under `seq` (0: it is being recorded now, after all that was loaded)."""
        at = seq or self._last + 1
        self._last = max(self._last, at)
        for key, value in changes.items():
            if at >= self._set_at.get(key, 0):
                self._values[key], self._set_at[key] = value, at
