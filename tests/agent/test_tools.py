"""Tools as a model sees them."""

from typing import Any

from pydantic import BaseModel

from agent.tools import Tool
from workflows.definition.effects import Effect


async def nothing(**arguments: Any) -> None:
    """Do nothing."""


def test_a_tools_schema_is_built_once_however_often_it_is_asked_for() -> None:
    """Every request to a model carries the schemas of all tools."""
    built: list[str] = []

    class Parameters(BaseModel):
        amount: int

        @classmethod
        def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
            built.append(cls.__name__)
            return super().model_json_schema(*args, **options)

    tools = [Tool(name, name, Parameters, nothing, Effect.READ) for name in ("one", "two")]
    schemas = [each.schema for each in tools * 3]
    assert built == ["Parameters"]
    assert [schema.name for schema in schemas[:2]] == ["one", "two"]
    assert all(schema.parameters["required"] == ["amount"] for schema in schemas)
    assert all("title" not in schema.parameters for schema in schemas)
