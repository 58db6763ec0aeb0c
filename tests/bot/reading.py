"""What is read in what is shown: for tests that nothing is lost on the way."""

import re
from typing import Any


def letters(text: str) -> str:
    """The letters and digits of a text, which no markup of any kind takes away."""
    return "".join(re.findall(r"[a-zA-Z0-9é]", text))


def is_within(wanted: str, text: str) -> bool:
    """Whether the characters of `wanted` are all in `text`, in their order."""
    rest = iter(text)
    return all(each in rest for each in wanted)


def read(value: Any) -> str:
    """All that blocks say, in their order."""
    if isinstance(value, dict):
        named = [value[name] for name in ("text", "user_id", "url", "rows", "elements") if name in value]
        return " ".join(map(read, named))
    return " ".join(map(read, value)) if isinstance(value, list) else str(value)
