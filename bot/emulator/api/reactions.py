"""reactions.*: emoji under messages."""

import re

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.errors import SlackError
from bot.emulator.messages import Message
from bot.emulator.workspace import Json

WRITE = ("reactions:write",)
MAX_EMOJI = 50
"""Different ones on one message (unconfirmed)."""


def add(call: Call) -> Json:
    message, name = _target(call)
    users = message.reactions.setdefault(name, [])
    if call.installation.bot_user_id in users:
        raise SlackError("already_reacted")
    users.append(call.installation.bot_user_id)
    posting.publish(call.slack, message)
    return {}


def remove(call: Call) -> Json:
    message, name = _target(call)
    users = message.reactions.get(name, [])
    if call.installation.bot_user_id not in users:
        raise SlackError("no_reaction")
    users.remove(call.installation.bot_user_id)
    if not users:
        del message.reactions[name]
    posting.publish(call.slack, message)
    return {}


def get(call: Call) -> Json:
    if not call.text("timestamp"):
        raise SlackError("no_item_specified")
    channel = call.channel()
    message = call.message(channel, "timestamp")
    return {"type": "message", "channel": channel.id, "message": call.slack.wire(message)}


def _target(call: Call) -> tuple[Message, str]:
    name = call.text("name").strip(":")
    if not re.fullmatch(r"[a-z0-9_+'-]+(::skin-tone-[2-6])?", name):
        raise SlackError("invalid_name")
    if not call.text("timestamp"):
        raise SlackError("no_item_specified")
    channel = call.channel()
    if channel.is_archived:
        raise SlackError("is_archived")
    message = call.message(channel, "timestamp")
    if message.root_ts in channel.locked_threads:
        raise SlackError("thread_locked")
    if name not in message.reactions and len(message.reactions) >= MAX_EMOJI:
        raise SlackError("too_many_emoji")
    return message, name


METHODS = {
    "reactions.add": Method(add, WRITE, required=("channel",)),
    "reactions.get": Method(get, ("reactions:read",)),
    "reactions.remove": Method(remove, WRITE),
}
