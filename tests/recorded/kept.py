"""Recorded runs as files: one JSON document per story, a story being all runs that came of one beginning."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from workflows.storage import Store
from workflows.storage.base import Record, RunRow, RunState, Status

RUNS = Path(__file__).parent / "runs"
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


class KeptRecord(BaseModel):
    """A record of a run; its value as JSON."""

    path: str
    status: Status
    output: Any = None
    error: dict[str, Any] | None = None


class KeptRun(BaseModel):
    """A run that has ended, with all its records in order."""

    run_id: str
    workflow: str
    version: str
    state: RunState
    key: str | None
    parent: str | None
    input: Any
    output: Any
    error: dict[str, Any] | None
    records: list[KeptRecord]

    @classmethod
    async def of(cls, store: Store, run: RunRow) -> "KeptRun":
        """A run of `store`."""
        records = [
            KeptRecord(path=each.path, status=each.status, output=_value(each.output), error=each.error)
            for each in await store.load(run.run_id)
        ]
        return cls(
            run_id=run.run_id, workflow=run.workflow, version=run.version, state=run.state, key=run.key, parent=run.parent_id,
            input=_value(run.input), output=_value(run.output), error=run.error, records=records,
        )  # fmt: skip

    def row(self) -> RunRow:
        """As storage has it. Who worked it and when is not kept."""
        return RunRow(
            self.run_id, "T1", self.workflow, self.version, self.key, "default", self.state, 1, None, 0, 5, len(self.records), 0, False,
            None, self.parent, None, to_json(self.input), to_json(self.output), self.error, self.run_id, None, WHEN, WHEN,
        )  # fmt: skip

    def recorded(self) -> list[Record]:
        """Its records as storage has them."""
        return [
            Record(each.path, each.status, to_json(each.output), each.error, WHEN, seq, WHEN)
            for seq, each in enumerate(self.records, 1)
        ]


class Story(BaseModel):
    """Runs by age."""

    runs: list[KeptRun]

    @classmethod
    async def of(cls, store: Store) -> "Story":
        """All runs of `store`, which must have ended."""
        rows = await store.runs(limit=1000)
        assert rows
        assert not any(row.state.live for row in rows)
        return cls(runs=[await KeptRun.of(store, row) for row in reversed(rows)])

    @classmethod
    def read(cls, name: str) -> "Story":
        """The story kept under `name`."""
        return cls.model_validate_json(_file(name).read_text())

    def write(self, name: str) -> None:
        """Keep it."""
        RUNS.mkdir(exist_ok=True)
        _file(name).write_text(self.model_dump_json(indent=1, exclude_defaults=True) + "\n")


def kept() -> list[str]:
    """The names of what is kept."""
    return sorted(path.stem for path in RUNS.glob("*.json"))


def file_name(name: str) -> str:
    """A story's name as its file has it."""
    return name.replace(" ", "-").replace(",", "")


def _file(name: str) -> Path:
    return RUNS / f"{file_name(name)}.json"


def _value(data: bytes | None) -> Any:
    return None if data is None else from_json(data)
