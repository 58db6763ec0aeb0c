"""Checks of single Block Kit fields. Each yields pairs of a JSON pointer and what is wrong there."""

from collections.abc import Iterator
from typing import Any

from bot.emulator.workspace import Json

Faults = Iterator[tuple[str, str]]


def text_faults(where: str, value: Any, most: int, least: int = 1) -> Faults:
    if not isinstance(value, str):
        yield where, "must be a string"
    elif len(value) > most:
        yield where, f"must be less than {most + 1} characters"
    elif len(value) < least:
        yield where, f"must be more than {least - 1} characters"


def text_object_faults(where: str, value: Any, most: int, *, plain: bool = False) -> Faults:
    if not isinstance(value, dict):
        yield where, "missing required field: text" if value is None else "must provide an object"
        return
    allowed = {"plain_text"} if plain else {"plain_text", "mrkdwn"}
    if str(value.get("type")) not in allowed:
        yield f"{where}/type", f"must be one of: {', '.join(sorted(allowed))}"
    yield from text_faults(f"{where}/text", value.get("text"), most)


def item_faults(where: str, value: Any, most: int, least: int = 1) -> Faults:
    if not isinstance(value, list):
        yield where, "must provide an array"
    elif len(value) > most:
        yield where, f"no more than {most} items allowed"
    elif len(value) < least:
        yield where, f"no fewer than {least} items allowed"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def dicts(value: Any) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
