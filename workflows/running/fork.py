"""Forks: time travel never edits history. A fork begins from a copy of the records before a point and goes on from there."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from workflows.definition.graph import ForEach, Loop, Workflow, nodes_of
from workflows.running.replay import MARKS, Replayed, replay
from workflows.running.snapshot import begun_at
from workflows.storage.base import Record, RunRow, Status

BELOW = "/#[" + MARKS


class ForkDecision(BaseModel):
    """An operator's answer for a step of a fork that does something to the world: "run" it, or "use" `output` in its place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Literal["run", "use"]
    output: Any = None


def at_or_below(path: str, target: str) -> bool:
    """Whether `path` is `target`, tells of it, or lies in it. Everything lies in ""."""
    return not target or path == target or (path.startswith(target) and path[len(target)] in BELOW)


def cut_of(records: Iterable[Record], target: str) -> int | None:
    """The `seq` of the first record at or below `target`, or None if the run never came there."""
    found = (each.seq for each in records if at_or_below(each.path, target) and each.path != f"{target}!input")
    return min(found, default=None)


def undone(records: Mapping[str, Record]) -> set[str]:
    """The paths of steps whose compensation ran: their effects are gone, whatever their records say."""
    return {
        path.removesuffix("!undo")
        for path, record in records.items()
        if path.endswith("!undo") and record.status is Status.OK
    }


def left_out(records: Mapping[str, Record], *, cut: int, target: str, overridden: bool) -> tuple[str, ...]:
    """The paths below `cut` a fork must not copy: of steps that were undone, of how the source ended, what was begun and has no end there
    (the fork begins it anew, or asks), and the input that an earlier fork had put where this one puts its own.
    """
    gone = undone(records)
    ended = {path for path, record in records.items() if record.seq < cut and record.status is not Status.INTENT}
    return tuple(
        path
        for path, record in records.items()
        if path == "$failed"
        or path.endswith("!undo")
        or (record.status is Status.INTENT and begun_at(path) not in ended)
        or (overridden and path == f"{target}!input")
        or any(path == each or path.startswith(f"{each}!") for each in gone)
    )


def node_at(workflow: Workflow[Any, Any], path: str) -> Any:
    """The step or workflow that runs at `path`, or None. "" is the workflow itself."""
    node: Any = workflow
    for part in path.split("/") if path else ():
        if not isinstance(node, Workflow):
            return None
        node = _part(node, part)
    return node


def _part(workflow: Workflow[Any, Any], part: str) -> Any:
    name = part.partition("#")[0].partition("[")[0]
    for entry in workflow.entries:
        for node in nodes_of(entry):
            repeated = ("#" in part and isinstance(entry, Loop)) or ("[" in part and isinstance(entry, ForEach))
            if node.id == name and (repeated or part == name):
                return node
    return None


class Original:
    """What the run a fork came from did after the point of the fork: an effect that happened there must not happen again."""

    def __init__(self, records: Mapping[str, Record], replayed: Replayed) -> None:
        self._records = records
        self._inputs = replayed.inputs
        self._undone = undone(records)

    @classmethod
    async def of(cls, workflow: Workflow[Any, Any], run: RunRow, records: Iterable[Record]) -> "Original":
        """Replay the source to learn which input reached each of its steps. Raises DivergedError."""
        kept = {record.path: record for record in records}
        return cls(kept, await replay(workflow, run, kept.values()))

    def result(self, path: str, data: bytes) -> Record | None:
        """The record of the same step on the same input (as JSON), unless it failed or was undone."""
        record = self._records.get(path)
        if record is None or record.status not in (Status.OK, Status.INTERRUPTED, Status.BAILED):
            return None
        return record if path not in self._undone and self._inputs.get(path) == data else None

    def changes(self, path: str) -> Record | None:
        """What the step set of the run's state."""
        return self._records.get(f"{path}!state")

    def known(self, path: str) -> dict[str, Any]:
        """What the source did at `path`, for the operator who decides."""
        record = self._records.get(path)
        if record is None:
            begun = any(
                each.status is Status.INTENT and begun_at(other) == path for other, each in self._records.items()
            )
            return {"status": "begun, outcome unknown" if begun else "never reached"}
        return {
            "status": "undone" if path in self._undone else record.status.value,
            "input": (self._inputs.get(path) or b"").decode(),
        }
