"""Whose a call is, when a turn works on the words of several people: the model names one of them, and nobody else.

A turn takes in what several people said at once. Would its calls all run as whoever wrote last, one could ask for another.
"""

from collections.abc import Mapping, Sequence

from agent.models.base import Person, ToolCall, ToolSchema
from agent.tools import ToolError

ASKED_BY = "asked_by"
"""The argument that names whose request a call is."""


def attributed(schemas: Sequence[ToolSchema], askers: Sequence[Person]) -> tuple[ToolSchema, ...]:
    """The tools as the model sees them: with one asker as they are, with several each call has to name one by id."""
    if len(askers) < 2:
        return tuple(schemas)
    named = {
        "type": "string",
        "enum": [each.id for each in askers],
        "description": "The id of the person whose message asks for this call.",
    }
    return tuple(_with(schema, named) for schema in schemas)


def claimed(call: ToolCall, asker: Person, askers: Sequence[Person]) -> tuple[ToolCall, Person]:
    """The call without the name, and whose it is. Raises ToolError if it names nobody, or somebody who has asked for nothing."""
    named = call.arguments.get(ASKED_BY)
    bare = call.model_copy(
        update={"arguments": {key: call.arguments[key] for key in call.arguments if key != ASKED_BY}}
    )
    if len(askers) < 2:
        return (bare, asker) if named in (None, asker.id) else (call, asker)
    found = next((each for each in askers if each.id == named), None)
    if found is None:
        ids = ", ".join(each.id for each in askers)
        raise ToolError(
            f"several people ask in this conversation: give {ASKED_BY}, the id of whoever asks for this ({ids})"
        )
    return bare, found


def _with(schema: ToolSchema, named: Mapping[str, object]) -> ToolSchema:
    parameters = dict(schema.parameters)
    parameters["properties"] = {**parameters.get("properties", {}), ASKED_BY: named}
    parameters["required"] = [*parameters.get("required", ()), ASKED_BY]
    return schema.model_copy(update={"parameters": parameters})
