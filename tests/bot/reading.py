"""What is read in what is shown: for tests that nothing is lost on the way."""

import re
from typing import Any

from bot.broadcasts import SENT_BACK

_ACTIVE = re.compile(
    r"<!(?:channel|here|everyone|subteam\^)[^>]*>?|(?<![^\W_])(?<!/)@(?:channel|here|everyone)(?![^\W_])", re.IGNORECASE
)


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


def broadcasts(value: Any) -> list[str]:
    """Every mention of a whole channel or group in a payload that Slack would act on, wherever it is shown."""
    if isinstance(value, dict):
        return [found for key, each in value.items() if key not in SENT_BACK for found in broadcasts(each)]
    if isinstance(value, list | tuple):
        return [found for each in value for found in broadcasts(each)]
    return _ACTIVE.findall(value) if isinstance(value, str) else []
