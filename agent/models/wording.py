"""How a conversation is worded for a provider: who said what, and what the system itself says."""

import re
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from agent.models.base import File, Message, ModelRequest, Person, Text

NOTICE = "[system notice]"
OVERHEARD = "overheard: "
"""Before the author of what was not said to the agent."""
QUOTED = "forwarded or quoted by "
"""Before whoever passes on words that are not their own."""
NAME_LIMIT = 80
"""Characters, as in Slack."""
WORDLESS = "(mentioned you without a word)"

# What people write must not look like our own notices or like someone else's words: a line that begins like one of our prefixes
# loses its meaning by a backslash.
_PREFIX_IN_TEXT = re.compile(r"(?im)^([^\S\n]*)(?=\[[^\]\n]*(?:\bsystem\s+notice\b[^\]\n]*|\([^()\n]*\)\s*)\])")


def name(author: Person) -> str:
    """A name as people have it, without characters that could end what the system says around it: people choose their own."""
    return re.sub(r"[;:]+", " ", _bare(author.name)).strip()[:NAME_LIMIT] or "somebody"


def person(author: Person) -> str:
    """Name and id, as in Ada (U1), without characters that could end the prefix early."""
    name = _bare(author.name) or "somebody"
    return f"{name}{' of another company' if author.outside else ''} ({author.id})"


def file(shared: File) -> str:
    """A file as a line: what it is called and how it is read. Its name is a stranger's words, so nothing in it can end the line."""
    kind = _bare(shared.media_type) or "unknown type"
    return f'[file "{_bare(shared.name)}", {kind}, {shared.size:,} bytes: read_file reads it by the id {shared.id}]'


def _bare(words: str) -> str:
    return re.sub(r"[\[\]()\s]+", " ", words).strip()


def worded(message: Message) -> list[str]:
    """The texts of a message, those of people and of the system marked as such; blank ones are left out."""
    texts = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
    if message.role != "user":
        return [part.text for part in texts]
    if message.notice:  # which may quote people, such as the reason of a denial
        return [f"{NOTICE} {_guarded(part)}" for part in texts]
    said = [
        *(_prefix(message, quoted=part.quoted) + _guarded(part) for part in texts),
        *(_prefix(message) + file(shared) for shared in message.files),
    ]
    return said or ([] if message.heard else [_prefix(message) + WORDLESS])


def _prefix(message: Message, *, quoted: bool = False) -> str:
    if message.author is None:
        return ""
    return f"[{OVERHEARD if message.heard else ''}{QUOTED if quoted else ''}{person(message.author)}] "


def _guarded(part: Text) -> str:
    return _PREFIX_IN_TEXT.sub(r"\1\\", part.text)


def present(request: ModelRequest) -> str:
    """A notice of the time, in UTC and where the last speaker is. Kept out of the system prompt, which then stays cacheable."""
    text = f"{NOTICE} It is now {request.now:%A, %Y-%m-%d %H:%M} UTC."
    author = next((message.author for message in reversed(request.messages) if message.author), None)
    if author is None:
        return text
    try:
        local = request.now.astimezone(ZoneInfo(author.time_zone))
    except (KeyError, ValueError, OSError):
        return text
    return f"{text} For {person(author)} it is {local:%A, %Y-%m-%d %H:%M} ({author.time_zone})."


def turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Runs of messages that one side said; tool results belong to the user's side. Messages without parts are left out."""
    result: list[list[Message]] = []
    for message in messages:
        if not message.parts:
            continue
        if result and (result[-1][0].role == "assistant") == (message.role == "assistant"):
            result[-1].append(message)
        else:
            result.append([message])
    return result
