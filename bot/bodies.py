"""Request bodies: JSON or a form, read once into an envelope that any store can keep and any listener can read."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

Envelope = dict[str, Any]

DEPTH = 100
"""Levels of nesting. Slack's deepest payloads, views with rich text in them, stay below twenty."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL can't be stored as text, half a surrogate pair can't be encoded; JSON may carry both, and neither means anything."""


class MalformedBodyError(ValueError):
    """The body is not what its content type says."""


def read_body(content_type: str, body: bytes) -> Envelope:
    """An event's envelope, an interaction's payload or a command's fields. Raises MalformedBodyError."""
    try:
        text = body.decode()
        return _form(text) if content_type == "application/x-www-form-urlencoded" else _object(text)
    except (ValueError, RecursionError) as error:
        raise MalformedBodyError(str(error)) from None


def read_payload(payload: Mapping[str, Any]) -> Envelope:
    """An envelope's payload in Socket Mode, parsed already. Raises MalformedBodyError."""
    return _cleaned_object(payload)


def storable(text: str) -> str:
    """`text` without what no database takes."""
    return _UNSTORABLE.sub("", text)


def _form(text: str) -> Envelope:
    fields = {name: storable(value) for name, value in parse_qsl(text, keep_blank_values=True)}
    if "payload" in fields:
        return _object(fields["payload"])
    if not fields.get("command", "").startswith("/") and "ssl_check" not in fields:
        raise MalformedBodyError("neither a payload nor a command")
    return fields


def _object(text: str) -> Envelope:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise MalformedBodyError("not an object")
    return _cleaned_object(value)


def _cleaned_object(value: Mapping[str, Any]) -> Envelope:
    return {storable(name): _cleaned(each, DEPTH) for name, each in value.items()}


def _cleaned(value: Any, depth: int) -> Any:
    if depth == 0:
        raise MalformedBodyError("nested too deeply")
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise MalformedBodyError("a number that is none")  # Python's parser takes NaN and 1e999, and no other does
    if isinstance(value, list):
        return [_cleaned(each, depth - 1) for each in value]
    if isinstance(value, dict):
        return {storable(name): _cleaned(each, depth - 1) for name, each in value.items()}
    return value
