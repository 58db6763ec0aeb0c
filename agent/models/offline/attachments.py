"""Shared files, as far as the offline model goes: it reads them where they are asked about, and shows how they begin."""

from agent.models.base import File, Message
from agent.models.offline.desk import Desk
from agent.models.offline.markdown import plain

READ = "read_file"
SHOWN = 5
"""Lines."""
_ABOUT = ("file", "attach", "csv", "sheet", "document", "pdf", "image", "picture", "look at", "read", "summar", "in it")


def asked(message: Message) -> bool:
    """Whether a message is about the files that came with it."""
    text = message.text.casefold()
    return bool(message.files) and (not text.strip() or any(word in text for word in _ABOUT))


def told(message: Message, desk: Desk) -> str:
    """What the files hold. Empty while they are still to be read."""
    return "\n\n".join(filter(None, (_told(each, desk) for each in message.files)))


def _told(shared: File, desk: Desk) -> str:
    name = f"**{plain(shared.name)}**"
    if not desk.has(READ):
        return f"I see {name}, but have no tool to read it."
    outcome = desk.ask(READ, {"file": shared.id})
    if outcome is None:
        return ""
    if outcome.kind != "done":
        return plain(outcome.text)
    lines = outcome.data.get("lines") if isinstance(outcome.data, dict) else None
    if lines is None:
        return f"{name}: {plain(str(outcome.data.get('note', '')))}"
    count = outcome.data.get("lines_in_all")
    size = f"{count} lines" if count else "more lines than fit on one page"
    shown = "\n".join(str(line).replace("```", "'''") for line in lines[:SHOWN])
    return f"{name} has {size}. It begins:\n\n```\n{shown}\n```"
