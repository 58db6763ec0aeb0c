"""Posting, editing and deleting messages, and telling the app about it."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from bot.emulator import events
from bot.emulator.delivery import Delivery
from bot.emulator.ids import new_id
from bot.emulator.messages import Message
from bot.emulator.slack import Slack
from bot.emulator.typed import unescape
from bot.emulator.workspace import Channel, Installation, Json

_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^>]*)?>")
_LINK = re.compile(r"<(https?://[^|>]+)(?:\|[^>]*)?>")


def publish(slack: Slack, message: Message, kind: str = "message") -> None:
    """Let the pages know that `message` is new or different."""
    slack.updates.publish(
        kind,
        team=message.team_id,
        channel=message.channel_id,
        ts=message.ts,
        thread_ts=message.thread_ts,
        user=message.user_id,
        mentions=_MENTION.findall(message.text),
        ephemeral_for=message.ephemeral_for,
    )


def post(slack: Slack, message: Message) -> list[Delivery]:
    """Add `message` to its channel. An ephemeral one is nobody's business but its reader's: no event.

    Returns:
        The deliveries that tell the app.

    """
    channel = slack.channel(message)
    slack.timeline.add(message)
    if message.bot_id and not message.ephemeral_for:
        slack.sessions.clear_line(channel.id, message.root_ts)
    sent = (
        []
        if message.ephemeral_for or not slack.hears(channel)
        else slack.emit(channel.team_id, *_events(slack, message))
    )
    message.deliveries = sent
    publish(slack, message)
    _share_links(slack, message, channel)
    return sent


def edit(slack: Slack, message: Message, change: Callable[[Message], None], *, mark: bool = True) -> None:
    """Apply `change` and emit `message_changed`.

    With `mark` it is an edit in the reader's eyes: the message says so, and a mention by a person is sent again. Slack marks neither
    the end of a stream nor a link that it has unfurled.
    """
    previous, channel = slack.wire(message), slack.channel(message)
    change(message)
    ts = slack.clock.timestamp()
    if mark:
        message.edited_ts = ts
    publish(slack, message)
    if message.ephemeral_for or not slack.hears(channel):
        return
    wire = slack.wire(message)
    bodies = [events.message_changed(wire, previous, channel, ts=ts)]
    if mark and _mentions_app(slack, message, channel):
        bodies.append({**events.app_mention(wire, channel), "event_ts": ts})
    slack.emit(channel.team_id, *bodies)


def delete(slack: Slack, message: Message) -> None:
    previous, channel = slack.wire(message), slack.channel(message)
    slack.timeline.remove(message)
    publish(slack, message, kind="deleted")
    if not message.ephemeral_for and slack.hears(channel):
        slack.emit(channel.team_id, events.message_deleted(previous, channel, ts=slack.clock.timestamp()))


def join(slack: Slack, channel: Channel, user_id: str) -> None:
    """Add a member; the app is told about everyone, itself included."""
    if user_id in channel.members:
        return
    channel.members.append(user_id)
    slack.updates.publish("channel", channel=channel.id)
    if slack.hears(channel):
        slack.emit(channel.team_id, events.member_joined_channel(user_id, channel, ts=slack.clock.timestamp()))


def app_message(slack: Slack, installation: Installation, channel_id: str, text: str) -> Message:
    """A message of the app, not yet posted."""
    return Message(
        slack.clock.timestamp(),
        channel_id,
        _team_of(slack, installation, channel_id),
        installation.bot_user_id,
        text,
        bot_id=installation.bot_id,
        app_id=slack.config.app_id,
    )


def _team_of(slack: Slack, installation: Installation, channel_id: str) -> str:
    """An org-wide installation speaks in the workspace of the channel."""
    workspace = slack.workspace_of(channel_id) if installation.org_id else None
    return workspace.id if workspace else installation.team_id


def with_block_ids(blocks: list[Json]) -> list[Json]:
    """Blocks with the ids Slack makes up for those that lack one."""
    return [{**block, "block_id": block.get("block_id") or new_id("b", 4)} for block in blocks]


def _share_links(slack: Slack, message: Message, channel: Channel) -> None:
    """Tell the app of links to its domains, also where it is no member; not of its own."""
    urls = dict.fromkeys(unescape(url) for url in _LINK.findall(message.text))
    links = [{"domain": urlsplit(url).hostname, "url": url} for url in urls if slack.unfurls(url)]
    if not links or message.bot_id or message.ephemeral_for:
        return
    unfurl_id = slack.interactions.new_unfurl_id(channel.id, message.ts)
    body = events.link_shared(slack.wire(message), channel, links, unfurl_id=unfurl_id, is_member=slack.hears(channel))
    slack.emit(channel.team_id, body)


def _events(slack: Slack, message: Message) -> list[Json]:
    wire, channel = slack.wire(message), slack.channel(message)
    if slack.config.agent and not message.bot_id:
        token = slack.interactions.new_action_token(channel.team_id, message.user_id)
        wire["assistant_thread"] = {"action_token": token}
    said = events.message_event(wire, channel)
    if not _mentions_app(slack, message, channel):
        return [said]
    pair = [events.app_mention(wire, channel), said]
    return pair if slack.config.mention_order == "app_mention" else pair[::-1]


def _mentions_app(slack: Slack, message: Message, channel: Channel) -> bool:
    """In a direct message Slack sends no `app_mention`; an app's own words mention nobody, nor does the note that it has joined."""
    bot = slack.workspaces[channel.team_id].bot_user_id
    if message.subtype.startswith("channel_"):
        return False
    return channel.kind != "im" and not message.bot_id and f"<@{bot}>" in message.text
