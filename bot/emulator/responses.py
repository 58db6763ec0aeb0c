"""response_url: how the app answers a command or a click for half an hour."""

from bot.emulator import posting
from bot.emulator.blocks import check_blocks
from bot.emulator.errors import SlackError
from bot.emulator.interactions import ResponseUrl
from bot.emulator.messages import Message
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json


def respond(slack: Slack, response_id: str, body: Json) -> None:
    """Do what `body`, POSTed to a response URL, asks.

    Raises:
        SlackError: expired_url, used_url, no_text, invalid_blocks.

    """
    # Looked at before it is used up: a refused body costs no use.
    deletes = bool(body.get("delete_original"))
    if not deletes:
        _check(body)
    place = slack.interactions.use_response_url(response_id)
    original = slack.timeline.find(place.channel_id, place.original_ts)
    if deletes:
        if original:
            posting.delete(slack, original)
    elif original and body.get("replace_original"):
        _replace(slack, original, body)
    else:
        show(slack, place, body)


def show(slack: Slack, place: ResponseUrl, body: Json) -> Message:
    """Post an answer: to the person alone, unless `response_type` is in_channel. The first one is what can be replaced."""
    installation = slack.workspaces[place.team_id].installation
    if installation is None:
        raise SlackError("expired_url")
    message = posting.app_message(slack, installation, place.channel_id, str(body.get("text") or ""))
    message.blocks = posting.with_block_ids(body.get("blocks") or [])
    message.thread_ts = body.get("thread_ts") or place.thread_ts
    message.ephemeral_for = "" if body.get("response_type") == "in_channel" else place.user_id
    posting.post(slack, message)
    place.original_ts = place.original_ts or message.ts
    return message


def _check(body: Json) -> None:
    # `markdown_text` does not count: Slack refuses it here with no_text.
    if not (body.get("text") or body.get("blocks") or body.get("attachments")):
        raise SlackError("no_text")
    if body.get("blocks"):
        check_blocks(body["blocks"])


def _replace(slack: Slack, original: Message, body: Json) -> None:
    def change(target: Message) -> None:
        target.text = str(body.get("text") or "")
        target.blocks = posting.with_block_ids(body.get("blocks") or [])

    posting.edit(slack, original, change)
