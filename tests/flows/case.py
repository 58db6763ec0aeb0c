"""One workflow, what a run of it needs from outside, and how the run must end."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from tests.flows.ledger import Entry, done
from workflows import RunState, Workflow
from workflows.storage.base import RunRow

INTERRUPTED = {"interrupted": True, "outcome": "unknown"}


@dataclass(frozen=True, slots=True)
class Case:
    """`does` is what an undisturbed run does to the world outside, and so is what any run may do to it.

    `answers`: by path, the answers to its suspensions in order. `signals`: name and payload, given once each. `stop_at`: the path
    at which somebody asks the run to stop, once it has a record there. `started_by`: a signal of that name starts it, instead of a call. `risky`: things that
    may be done at most once and, when the process dies around them, may be left open. `spare`: things that a run need
    not do any more when a process died after it had failed. `failure`: the type of the error it must end with.
    """

    name: str
    flow: Workflow[Any, Any]
    input: Any = None
    output: Any = None
    does: Mapping[str, int] = field(default_factory=dict)
    others: tuple[Workflow[Any, Any], ...] = ()
    key: str | None = None
    started_by: str | None = None
    signals: tuple[tuple[str, Any], ...] = ()
    answers: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    stop_at: str | None = None
    state: RunState = RunState.DONE
    failure: str | None = None
    risky: frozenset[str] = frozenset()
    spare: frozenset[str] = frozenset()

    @property
    def flows(self) -> tuple[Workflow[Any, Any], ...]:
        """All workflows that a process must know."""
        return (self.flow, *self.others)

    def problems(self, row: RunRow, entries: list[Entry], *, disturbed: bool) -> list[str]:
        """What is wrong with how a run ended, as sentences."""
        return [
            f"{self.name}: {each}"
            for each in (*self._end(row, disturbed=disturbed), *self._world(entries, disturbed=disturbed))
        ]

    def _end(self, row: RunRow, *, disturbed: bool) -> list[str]:
        if row.state is not self.state:
            if self._left_open(row, disturbed=disturbed):
                return []
            return [f"the run is {row.state} and should be {self.state}: {row.error}"]
        if self.state is RunState.FAILED and (row.error or {}).get("type") != self.failure:
            return [f"the run failed with {row.error} and not with {self.failure}"]
        output = from_json(row.output or b"null")
        allowed = [self.output, *([INTERRUPTED] if disturbed and self.risky else [])]
        if self.state is RunState.DONE and not any(_like(output, each) for each in allowed):
            return [f"the run gave {output} and not {self.output}"]
        return []

    def _left_open(self, row: RunRow, *, disturbed: bool) -> bool:
        return disturbed and bool(self.risky) and (row.error or {}).get("type") == "Interrupted"

    def _world(self, entries: list[Entry], *, disturbed: bool) -> list[str]:
        raw, by_key = Counter(each.what for each in entries), done(entries)
        found = [
            f"{what} was done {times} times"
            for what, times in raw.items()
            if what in self.risky and times > self.does[what]
        ]
        for what in self.does.keys() | by_key.keys():
            times, wanted = by_key[what], self.does.get(what, 0)
            if times > wanted or (times < wanted and not (disturbed and (self.risky or what in self.spare))):
                found.append(f"{what} was done {times} times and should have been {wanted} times")
        return found


def _like(value: Any, wanted: Any) -> bool:
    """Equal; of mappings, in what is wanted."""
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return all(key in value and _like(value[key], each) for key, each in wanted.items())
    return bool(value == wanted)
