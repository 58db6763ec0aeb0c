"""What is wrong with the form of a document, in words, and where."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from workflows.definition.spec import models


def problems_of(error: ValidationError, place: str, model: type[models.Document]) -> Iterator[tuple[str, str]]:
    """Place and message of each problem of a document that is, or should be, a `model` and stands at `place`."""
    for each in error.errors():
        tagged = each["loc"][:1] and each["loc"][0] in models.OPS
        yield inside(place, _joined(each["loc"][1:] if tagged else each["loc"])), _worded(each, model)


def model_of(entry: Any) -> type[models.Document]:
    """The model an entry should be, as far as it says so."""
    op = entry.get("op") if isinstance(entry, dict) else None
    return next((each for each in models.ENTRIES if op in each.ops()), models.Document)


def _worded(error: ErrorDetails, model: type[models.Document]) -> str:
    match error["type"]:
        case "extra_forbidden":
            return f"there is no such key here; there are {' '.join(model.model_fields)}"
        case "union_tag_invalid" | "union_tag_not_found":
            return f"an entry has an op, one of {' '.join(models.OPS)}"
        case "missing":
            return "it is missing"
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}, not {shown(error['input'])}"


def inside(place: str, more: str) -> str:
    """The place `more` in `place`."""
    return more if not place else f"{place}.{more}" if more else place


def _joined(loc: tuple[int | str, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown(data: Any) -> str:
    """Data as a message quotes it."""
    return repr(data)[:60]
