"""chat.*: posting, editing and deleting messages."""

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.api.content import Content, content
from bot.emulator.errors import SlackError
from bot.emulator.messages import Message
from bot.emulator.workspace import Channel, Json

MAX_UPDATE_TEXT_CHARS = 4_000


def root_ts(call: Call, channel: Channel, *, missing: str = "thread_not_found") -> str | None:
    """The root of the thread that `thread_ts` names; a reply's timestamp nests under its root."""
    given = call.text("thread_ts")
    if not given:
        return None
    parent = call.slack.timeline.find(channel.id, given)
    if parent is None:
        raise SlackError(missing)
    return parent.root_ts


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
    channel = call.writable_channel()
    message = call.message(channel)
    if message.bot_id != call.installation.bot_id:
        raise SlackError("cant_update_message")
    said = content(call)
    if not said.markdown and len(said.text) > MAX_UPDATE_TEXT_CHARS:
        raise SlackError("msg_too_long")
    if message.stream and message.stream.state_at(call.slack.clock.now()) == "streaming":
        raise SlackError("streaming_state_conflict")
    posting.edit(call.slack, message, lambda target: _apply(said, target))
    wire = message.wire(include_metadata=True)
    return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": wire, **said.note}


def delete(call: Call) -> Json:
    channel = call.writable_channel()
    message = call.message(channel)
    if message.bot_id != call.installation.bot_id:
        raise SlackError("cant_delete_message")
    posting.delete(call.slack, message)
    return {"channel": channel.id, "ts": message.ts}


def get_permalink(call: Call) -> Json:
    channel = call.channel()
    message = call.message(channel, "message_ts")
    thread = f"&thread_ts={message.thread_ts}" if message.thread_ts else ""
    return {"channel": channel.id, "permalink": f"{call.slack.url}/#channel={channel.id}&ts={message.ts}{thread}"}


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
    "chat.postMessage": Method(post_message, WRITE),
    "chat.postEphemeral": Method(post_ephemeral, WRITE),
    "chat.update": Method(update, WRITE),
    "chat.delete": Method(delete, WRITE),
    "chat.getPermalink": Method(get_permalink),
}
