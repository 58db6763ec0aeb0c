"""assistant.search.context: what people wrote, for an app that was just spoken to. Nothing of it may be kept (Slack's API terms)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.emulator.api.call import Call, Method
from bot.emulator.errors import SlackError
from bot.emulator.messages import Message
from bot.emulator.workspace import Channel, Json, Workspace

SCOPE_OF_CHANNELS = {
    "public_channel": "search:read.public",
    "private_channel": "search:read.private",
    "im": "search:read.im",
    "mpim": "search:read.mpim",
}
SCOPE_OF_CONTENT = {
    "messages": "search:read.public",
    "channels": "search:read.public",
    "files": "search:read.files",
    "users": "search:read.users",
}
KIND_OF = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
MAX_QUERY_CHARS = 1000
MAX_ROWS = 20
NEIGHBOURS = 2
"""Messages before and after a hit, where the caller asks for context."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: `words` in lower case, on behalf of `reader_id`, in `channels` of `workspace`."""

    words: tuple[str, ...]
    reader_id: str
    workspace: Workspace
    channels: tuple[Channel, ...]

    def score(self, text: str) -> int:
        """How many of the words stand in `text`."""
        found = text.casefold()
        return sum(word in found for word in self.words)


def search(call: Call) -> Json:
    """The newest hits first where two match alike. A bot may only ask for the person whose message brought it the `action_token`."""
    query = call.text("query").strip()
    if not query:
        raise SlackError("missing_query")
    if len(query) > MAX_QUERY_CHARS:
        raise SlackError("query_too_long")
    kinds = _chosen(call, "channel_types", "public_channel", SCOPE_OF_CHANNELS)
    contents = _chosen(call, "content_types", "messages", SCOPE_OF_CONTENT)
    wanted = _wanted(call, query, kinds)
    start, limit = _start(call), call.number("limit", MAX_ROWS, most=MAX_ROWS)
    found = {content: list(_FIND[content](call, wanted)) for content in contents}
    more = any(len(rows) > start + limit for rows in found.values())
    return {
        "results": {content: rows[start : start + limit] for content, rows in found.items()},
        "response_metadata": {"next_cursor": f"at:{start + limit}" if more else ""},
    }


def _chosen(call: Call, name: str, usual: str, scopes: dict[str, str]) -> list[str]:
    """The kinds asked for, in a list or between commas; each needs its scope."""
    given = call.args.get(name) or usual
    chosen = list(given) if isinstance(given, list) else str(given).replace(" ", "").split(",")
    if set(chosen) - scopes.keys():
        raise SlackError("invalid_arguments")
    for each in chosen:
        call.need(scopes[each])
    return chosen


def _wanted(call: Call, query: str, kinds: list[str]) -> Wanted:
    spoken = call.slack.interactions.action_token(call.text("action_token"))
    if spoken is None or not call.slack.has_app(call.installation, spoken.team_id):
        raise SlackError("invalid_action_token")
    workspace = call.slack.workspaces[spoken.team_id]
    allowed = {KIND_OF[kind] for kind in kinds}
    channels = tuple(
        one
        for one in workspace.channels.values()
        if one.kind in allowed and (one.kind == "channel" or spoken.user_id in one.members)
    )
    if context := call.text("context_channel_id"):
        channels = tuple(one for one in channels if one.id == context)
        if not channels:
            raise SlackError("context_channel_not_found")
    words = tuple(dict.fromkeys(re.findall(r"\w+", query.casefold())))
    return Wanted(words, spoken.user_id, workspace, channels)


def _start(call: Call) -> int:
    cursor = call.text("cursor") or "at:0"
    if not re.fullmatch(r"at:\d+", cursor):
        raise SlackError("invalid_cursor")
    return int(cursor[3:])


def _messages(call: Call, wanted: Wanted) -> Sequence[Json]:
    hits = [
        (wanted.score(message.text), message, channel)
        for channel in wanted.channels
        for message in call.slack.timeline.all(channel.id)
        if not message.ephemeral_for and _in_time(call, message) and (call.flag("include_bots") or not message.bot_id)
    ]
    by_time = call.text("sort", "score") == "timestamp"
    ordered = sorted(
        (hit for hit in hits if hit[0]),
        key=lambda hit: (0 if by_time else hit[0], hit[1].ts),
        reverse=call.text("sort_dir", "desc") == "desc",
    )
    return [_message_wire(call, message, channel) for _, message, channel in ordered]


def _in_time(call: Call, message: Message) -> bool:
    try:
        after, before = float(call.text("after") or 0), float(call.text("before") or "inf")
    except ValueError:
        raise SlackError("invalid_arguments") from None
    return after < float(message.ts) < before


def _message_wire(call: Call, message: Message, channel: Channel) -> Json:
    author = call.slack.user(message.user_id)
    around = {"context_messages": _context(call, message)} if call.flag("include_context_messages") else {}
    return {
        "author_name": author.real_name if author else "",
        "author_user_id": message.user_id,
        "team_id": message.team_id,
        "channel_id": channel.id,
        "channel_name": channel.name,
        "message_ts": message.ts,
        "content": message.text,
        "is_author_bot": bool(message.bot_id),
        "permalink": call.slack.permalink(message),
        **around,
        **({"blocks": message.blocks} if call.flag("include_message_blocks") else {}),
    }


def _context(call: Call, message: Message) -> Json:
    around = [one for one in call.slack.timeline.all(message.channel_id) if not one.ephemeral_for]
    at = around.index(message)
    shown = [{"user_id": one.user_id, "text": one.text, "ts": one.ts} for one in around]
    return {"before": shown[max(0, at - NEIGHBOURS) : at], "after": shown[at + 1 : at + 1 + NEIGHBOURS]}


def _files(call: Call, wanted: Wanted) -> Sequence[Json]:
    places = {one.id for one in wanted.channels}
    found = [one for one in call.slack.files.all() if places & set(one.channels) and wanted.score(one.title)]
    return [
        {
            "author_name": author.real_name if (author := call.slack.user(one.user_id)) else "",
            "author_user_id": one.user_id,
            "uploader_user_id": one.user_id,
            "team_id": one.team_id,
            "file_id": one.id,
            "date_created": one.created_s * 1_000_000,
            "date_updated": one.created_s * 1_000_000,
            "title": one.title,
            "file_type": one.mimetype,
            "permalink": f"{call.slack.url}/_emulator/files/{one.id}",
            "content": "",
            "size": len(one.content or b""),
        }
        for one in found
    ]


def _channels(call: Call, wanted: Wanted) -> Sequence[Json]:
    found = [one for one in wanted.channels if wanted.score(f"{one.name} {one.topic}") and not one.is_archived]
    return [
        {
            "team_id": one.team_id,
            "creator_user_id": one.members[0] if one.members else "",
            "date_created": 0,
            "date_updated": 0,
            "name": one.name,
            "topic": one.topic,
            "purpose": "",
            "permalink": f"{call.slack.url}/#channel={one.id}",
            "is_archived": False,
        }
        for one in found
    ]


def _users(call: Call, wanted: Wanted) -> Sequence[Json]:
    found = [one for one in wanted.workspace.people if wanted.score(f"{one.real_name} {one.handle} {one.title}")]
    return [
        {
            "user_id": one.id,
            "permalink": f"{call.slack.url}/#as={one.id}",
            "full_name": one.real_name,
            "title": one.title,
            "timezone": one.timezone,
            "email": f"{one.handle}@{wanted.workspace.domain}.example",
        }
        for one in found
    ]


_FIND: dict[str, Callable[[Call, Wanted], Sequence[Json]]] = {
    "messages": _messages,
    "files": _files,
    "channels": _channels,
    "users": _users,
}
METHODS = {
    "assistant.search.context": Method(search, ("search:read.public", "search:read.files", "search:read.users")),
}
