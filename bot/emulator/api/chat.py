"""chat.*: posting, editing and deleting messages."""

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.api.content import Content, content
from bot.emulator.errors import SlackError
from bot.emulator.messages import Message
from bot.emulator.workspace import Channel, Json

MAX_UPDATE_TEXT_CHARS = 4_000


NO_REPLIES = frozenset({"channel_join", "channel_leave", "channel_topic", "channel_purpose", "channel_name"})
"""Subtypes of what Slack itself notes in a channel; nobody can answer them."""


def root_ts(call: Call, channel: Channel, *, missing: str = "thread_not_found") -> str | None:
    """The root of the thread that `thread_ts` names, if the app may post there; a reply's timestamp nests under its root.

    Raises:
        SlackError: `missing`, cannot_reply_to_message, or a restricted_action.

    """
    given = call.text("thread_ts")
    parent = call.slack.timeline.find(channel.id, given) if given else None
    if given and parent is None:
        raise SlackError(missing)
    if parent and parent.subtype in NO_REPLIES:
        raise SlackError("cannot_reply_to_message")
    root = parent.root_ts if parent else None
    if refusal := _refusal(channel, root):
        raise SlackError(refusal)
    return root


def _refusal(channel: Channel, root: str | None) -> str:
    """Slack's word for why the app may not post in `channel`, in the thread of `root` or outside of threads; empty when it may."""
    if root in channel.locked_threads:
        return "restricted_action_thread_locked"
    where = {"threads_only": root is None, "no_threads": root is not None}
    return _RESTRICTED[channel.posting] if where.get(channel.posting, True) else ""


_RESTRICTED = {
    "everyone": "",
    "nobody": "restricted_action",
    "admins": "restricted_action_read_only_channel",
    "threads_only": "restricted_action_thread_only_channel",
    "no_threads": "restricted_action_non_threadable_channel",
}


def post_message(call: Call) -> Json:
    channel = call.writable_channel()
    said = content(call)
    message = new_message(call, channel, said)
    message.metadata = said.metadata or None
    message.broadcast = call.flag("reply_broadcast") and message.thread_ts is not None
    if message.broadcast:
        message.subtype = "thread_broadcast"
    posting.post(call.slack, message)
    return {"channel": channel.id, "ts": message.ts, "message": message.wire(include_metadata=True), **said.note}


def post_ephemeral(call: Call) -> Json:
    channel, reader = call.writable_channel(), call.text("user")
    said = content(call)
    if len(said.text) > MAX_UPDATE_TEXT_CHARS:
        raise SlackError("msg_too_long")
    if reader not in channel.members:
        raise SlackError("user_not_in_channel")
    message = new_message(call, channel, said)
    message.ephemeral_for = reader
    posting.post(call.slack, message)
    return {"message_ts": message.ts}


def update(call: Call) -> Json:
    channel = call.channel()
    message = call.message(channel)
    if message.bot_id != call.installation.bot_id:
        raise SlackError("cant_update_message")
    if channel.is_archived:
        raise SlackError("is_inactive")
    if _edit_window_closed(call, message):
        raise SlackError("edit_window_closed")
    said = content(call)
    if not said.markdown and len(said.text) > MAX_UPDATE_TEXT_CHARS:
        raise SlackError("msg_too_long")
    if message.stream and message.stream.state_at(call.slack.clock.now()) == "streaming":
        raise SlackError("streaming_state_conflict")
    if said.blocks and _rich(message.blocks) and not _rich(said.blocks):
        raise SlackError("block_mismatch")
    posting.edit(call.slack, message, lambda target: _apply(said, target))
    wire = message.wire(include_metadata=True)
    return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": wire, **said.note}


def _edit_window_closed(call: Call, message: Message) -> bool:
    window_s = call.slack.config.edit_window_s
    return window_s is not None and call.slack.clock.now() > float(message.ts) + window_s


def _rich(blocks: list[Json]) -> bool:
    return any(block["type"] == "rich_text" for block in blocks)


def delete(call: Call) -> Json:
    channel = call.channel()
    message = call.message(channel)
    if message.bot_id != call.installation.bot_id:
        raise SlackError("cant_delete_message")
    posting.delete(call.slack, message)
    return {"channel": channel.id, "ts": message.ts}


def get_permalink(call: Call) -> Json:
    channel = call.channel()
    message = call.message(channel, "message_ts")
    return {"channel": channel.id, "permalink": call.slack.permalink(message)}


def new_message(call: Call, channel: Channel, said: Content) -> Message:
    message = posting.app_message(call.slack, call.installation, channel.id, said.text)
    message.thread_ts = root_ts(call, channel)
    message.blocks, message.attachments, message.markdown = said.blocks or [], said.attachments or [], said.markdown
    return message


def _apply(said: Content, message: Message) -> None:
    """What an update leaves out stays, save for blocks under new text: Slack would show the old blocks otherwise."""
    message.text, message.markdown = said.text, said.markdown
    if said.blocks is not None or said.text:
        message.blocks = said.blocks or []
    if said.attachments is not None:
        message.attachments = said.attachments
    if said.metadata is not None:
        message.metadata = said.metadata or None


WRITE = ("chat:write",)
METHODS = {
    "chat.postMessage": Method(post_message, WRITE, required=("channel",)),
    "chat.postEphemeral": Method(post_ephemeral, WRITE, required=("user", "channel")),
    "chat.update": Method(update, WRITE, required=("ts", "channel")),
    "chat.delete": Method(delete, WRITE, required=("ts", "channel")),
    "chat.getPermalink": Method(get_permalink, required=("channel", "message_ts")),
}
