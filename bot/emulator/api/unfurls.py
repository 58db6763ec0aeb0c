"""chat.unfurl: what the app knows about a link that somebody posted."""

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.blocks import check_blocks
from bot.emulator.errors import SlackError
from bot.emulator.messages import Message
from bot.emulator.typed import unescape
from bot.emulator.workspace import Json

SOURCES = frozenset({"composer", "conversations_history"})


def unfurl(call: Call) -> Json:
    """Attach what is told of each link to its message: `channel` and `ts` name it, or `unfurl_id` and `source`."""
    unfurls = _unfurls(call)
    message = _message(call)
    unknown = [url for url in unfurls if url not in unescape(message.text)]
    if unknown:
        raise SlackError("cannot_unfurl_message")
    if not all(call.slack.unfurls(url) for url in unfurls):
        raise SlackError("cannot_unfurl_url")
    attached = [{**body, "from_url": url, "app_unfurl_url": url} for url, body in unfurls.items()]

    def attach(target: Message) -> None:
        others = [one for one in target.attachments if one.get("from_url") not in unfurls]
        target.attachments = [*others, *attached]

    posting.edit(call.slack, message, attach, mark=False)
    return {}


def _unfurls(call: Call) -> dict[str, Json]:
    given = call.structure("unfurls", "invalid_unfurls_format")
    if not given:
        raise SlackError("missing_unfurls")
    if not isinstance(given, dict):
        raise SlackError("invalid_unfurls_format")
    if not all(isinstance(body, dict) for body in given.values()):
        raise SlackError("cannot_parse_attachment")
    for body in given.values():
        if "blocks" in body:
            check_blocks(body["blocks"])
    return given


def _message(call: Call) -> Message:
    if call.text("unfurl_id") or call.text("source"):
        return _by_unfurl_id(call)
    if not call.text("channel"):
        raise SlackError("missing_channel")
    if not call.text("ts"):
        raise SlackError("missing_ts")
    channel = call.workspace.channels.get(call.text("channel"))
    if channel is None or not call.is_member(channel):
        raise SlackError("cannot_find_channel")
    return _found(call.slack.timeline.find(channel.id, call.text("ts")))


def _by_unfurl_id(call: Call) -> Message:
    if not call.text("unfurl_id"):
        raise SlackError("missing_unfurl_id")
    if not call.text("source"):
        raise SlackError("missing_source")
    if call.text("source") not in SOURCES:
        raise SlackError("invalid_source")
    place = call.slack.interactions.unfurl_ids.get(call.text("unfurl_id"))
    if place is None:
        raise SlackError("invalid_unfurl_id")
    return _found(call.slack.timeline.find(*place))


def _found(message: Message | None) -> Message:
    if message is None:
        raise SlackError("cannot_find_message")
    return message


METHODS = {"chat.unfurl": Method(unfurl, ("links:write",))}
