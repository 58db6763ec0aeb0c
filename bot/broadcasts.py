"""Nothing that is sent calls a whole channel, or hides what it says.

Whoever renders words makes them neutral first, because it makes them longer; and whatever leaves for Slack passes here once more, so that no path can be forgotten.
"""

import json
import re
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

_HALF = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
_BROADCAST = re.compile(r"<!(?=channel|here|everyone|subteam\^)", re.IGNORECASE)
_AT_ALL = re.compile(r"(?<![^\W_])(?<!/)@(?=(?:channel|here|everyone)(?![^\W_]))", re.IGNORECASE)
"""An underscore beside it is emphasis and no part of a word."""
WORD_JOINER = "\u2060"
SENT_BACK = frozenset({"initial_value", "metadata", "private_metadata", "value"})
"""Fields that nobody is shown, or that come back from a form as they were filled in."""


def neutral(text: str) -> str:
    """`text` with broadcast mentions made harmless: a word joiner keeps them readable and stops them from pinging.

    What is nothing to read goes first, so that it hides no mention: control characters, halves of characters, and marks that turn the direction of
    writing, which show an approver another amount than the one that is set.
    """
    clean = _CONTROL.sub("", _HALF.sub("\ufffd", text))
    return _AT_ALL.sub(f"@{WORD_JOINER}", _BROADCAST.sub(f"<{WORD_JOINER}!", clean))


def quiet(value: Any) -> Any:
    """A payload with every text in it made neutral."""
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, dict):
        return {key: each if key in SENT_BACK else quiet(each) for key, each in value.items()}
    return [quiet(each) for each in value] if isinstance(value, list | tuple) else value


def quiet_answer(body: str) -> str:
    """What a request of Slack's is answered with: a message, a view, or a bare text."""
    try:
        return json.dumps(quiet(json.loads(body)))
    except ValueError:
        return neutral(body)


class QuietClient(AsyncWebClient):
    """Slack's client, which pings no channel whatever it is told to say."""

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        """As slack_sdk's."""
        said = {name: quiet(options[name]) for name in ("json", "params", "data") if options.get(name) is not None}
        return await super().api_call(api_method, **{**options, **said})
