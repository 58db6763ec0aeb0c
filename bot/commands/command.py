"""A command as a person gave it, with a slash or, in a thread, with an exclamation mark."""

from dataclasses import dataclass
from typing import Any, Protocol, Self

from bot.render.text import quoted, unescaped


@dataclass(frozen=True, slots=True)
class Command:
    """`key` is the same on every delivery. `root`: the thread it was given in. Only a slash command has a `trigger_id`, for a dialog, and
    a `reply_url`, which answers where the app may not post.
    """

    name: str
    text: str
    tenant: str
    user: str
    channel: str
    key: str
    root: str = ""
    reply_url: str | None = None
    trigger_id: str = ""

    @classmethod
    def of_slash(cls, tenant: str, payload: dict[str, Any]) -> Self:
        """From the fields of Slack's request."""
        trigger_id = str(payload.get("trigger_id") or "")
        return cls(
            name=str(payload.get("command")).removeprefix("/"),
            text=unescaped(str(payload.get("text") or "")).strip(),
            tenant=tenant,
            user=str(payload.get("user_id")),
            channel=str(payload.get("channel_id")),
            key=trigger_id,
            reply_url=payload.get("response_url"),
            trigger_id=trigger_id,
        )


class Handler(Protocol):
    """Runs one command. `help` is a line of mrkdwn for each way to use it."""

    name: str
    help: str

    async def run(self, command: Command) -> str:
        """Do it; returns the answer as mrkdwn. Raises StoreUnavailableError."""
        ...


def sentence(error: Exception) -> str:
    """An error's words as a sentence of their own, for mrkdwn."""
    text = str(error)
    end = "" if text.endswith((".", "!", "?")) else "."
    return quoted(f"{text[:1].upper()}{text[1:]}{end}")
