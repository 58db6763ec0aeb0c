"""Suspensions: what a step asked for before it let go, and the names its answers travel under."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import ValidationError, validate
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic_core import from_json

from workflows.errors import InputError
from workflows.storage.base import Record
from workflows.values import adapter


@dataclass(frozen=True, slots=True)
class Suspension:
    """One open question of a run.

    `number` counts the suspensions of the step at `path` from 0. `schema` is the JSON schema an answer must fit, where the type has one.
    `refused` says why the last answer did not fit, if there was one.
    """

    path: str
    number: int
    payload: Any
    schema: dict[str, Any] | None = None
    refused: str | None = None
    refusals: int = 0

    @property
    def answer_key(self) -> str:
        """The dedup key the next answer travels under: two answers at once have the same, and one of them wins."""
        return answer_key(self.path, self.number, self.refusals)

    def check(self, payload: bytes) -> None:
        """Raise InputError unless an answer (as JSON) fits. The step checks it again, against the type itself."""
        if self.schema is None:
            return
        try:
            validate(from_json(payload), self.schema)
        except ValidationError as error:
            raise InputError(f"the answer to {self.path} does not fit: {error.json_path}: {error.message}") from None


def answer_name(path: str) -> str:
    """The name of the signals that answer the step at `path`."""
    return f"$resume:{path}"


def answer_key(path: str, number: int, refusals: int) -> str:
    """The dedup key of an answer to suspension `number`, after `refusals` that did not fit."""
    return f"$resume:{path}#{number}.{refusals}"


def question_name(number: int) -> str:
    """The name of the note that says what suspension `number` asks for."""
    return f"suspended#{number}"


def refusal_name(number: int, refusals: int) -> str:
    """The name of the note that says why an answer was refused."""
    return f"refused#{number}.{refusals}"


def question(payload: Any, resume: Any) -> dict[str, Any]:
    """What is noted when a step suspends."""
    try:
        schema = None if resume is Any else adapter(resume).json_schema()
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError):
        schema = None
    return {"payload": payload, "schema": schema}


def entered(records: Mapping[str, Record], path: str) -> int:
    """How often the step at `path` has let go to wait for an answer, refused answers included."""
    asked, refused = progress(records, path)
    return asked + sum(refused.values())


def progress(records: Mapping[str, Record], path: str) -> tuple[int, dict[int, int]]:
    """How many suspensions the step at `path` has had, and how many answers each of them refused."""
    asked = 0
    refused: dict[int, int] = {}
    while f"{path}!{question_name(asked)}" in records:
        count = 0
        while f"{path}!{refusal_name(asked, count)}" in records:
            count += 1
        if count:
            refused[asked] = count
        asked += 1
    return asked, refused


def open_suspensions(records: Mapping[str, Record]) -> list[Suspension]:
    """The last suspension of each step that has no record of its end, in the order they were asked."""
    marker = f"!{question_name(0)}"
    paths = [path.removesuffix(marker) for path in records if path.endswith(marker)]
    return [_last(records, path) for path in paths if path not in records]


def _last(records: Mapping[str, Record], path: str) -> Suspension:
    asked, refused = progress(records, path)
    number = asked - 1
    noted = from_json(records[f"{path}!{question_name(number)}"].output or b"{}")
    count = refused.get(number, 0)
    why = from_json(records[f"{path}!{refusal_name(number, count - 1)}"].output or b"null") if count else None
    return Suspension(path, number, noted.get("payload"), noted.get("schema"), why, count)
