"""Posting, editing and deleting messages, and telling the app about it."""

from collections.abc import Callable

from bot.emulator import events
from bot.emulator.delivery import Delivery
from bot.emulator.ids import new_id
from bot.emulator.messages import Message
from bot.emulator.slack import Slack
from bot.emulator.workspace import Channel, Installation, Json


def publish(slack: Slack, message: Message, kind: str = "message") -> None:
    """Let the pages know that `message` is new or different."""
    slack.updates.publish(
        kind,
        team=message.team_id,
        channel=message.channel_id,
        ts=message.ts,
        thread_ts=message.thread_ts,
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
    return sent


def edit(slack: Slack, message: Message, change: Callable[[Message], None]) -> None:
    """Apply `change`, mark the message as edited and emit `message_changed`; a mention by a person is sent again."""
    previous, channel = slack.wire(message), slack.channel(message)
    change(message)
    ts = message.edited_ts = slack.clock.timestamp()
    publish(slack, message)
    if message.ephemeral_for or not slack.hears(channel):
        return
    wire = slack.wire(message)
    bodies = [events.message_changed(wire, previous, channel, ts=ts)]
    if _mentions_app(slack, message, channel):
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


def _events(slack: Slack, message: Message) -> list[Json]:
    wire, channel = slack.wire(message), slack.channel(message)
    said = events.message_event(wire, channel)
    if not _mentions_app(slack, message, channel):
        return [said]
    pair = [events.app_mention(wire, channel), said]
    return pair if slack.config.mention_order == "app_mention" else pair[::-1]


def _mentions_app(slack: Slack, message: Message, channel: Channel) -> bool:
    """In a direct message Slack sends no `app_mention`; an app's own words mention nobody."""
    bot = slack.workspaces[channel.team_id].bot_user_id
    return channel.kind != "im" and not message.bot_id and f"<@{bot}>" in message.text
