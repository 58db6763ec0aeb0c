"""What a person does in the workspace: write, edit, react, click, type a command, press Stop."""

import json
from typing import Any

from bot.emulator import events, posting
from bot.emulator.delivery import Reply
from bot.emulator.errors import BadRequestError, NotFoundError
from bot.emulator.files import File
from bot.emulator.ids import new_id
from bot.emulator.messages import Message
from bot.emulator.seen import SLACKBOT
from bot.emulator.slack import Slack
from bot.emulator.typed import Typed
from bot.emulator.workspace import Channel, Json, User


def say(
    slack: Slack,
    channel: Channel,
    user: User,
    text: str,
    *,
    root: Message | None = None,
    files: list[File] | None = None,
    broadcast: bool = False,
) -> Message:
    """Post what `user` typed, in the thread of `root` if given, and with `broadcast` in the channel as well."""
    workspace = slack.workspaces[channel.team_id]
    if channel.kind == "im" and workspace.installation is None:
        raise BadRequestError(f"{slack.config.app_name} is not installed in {workspace.name}.")
    typed = Typed(text, workspace)
    message = Message(slack.clock.timestamp(), channel.id, channel.team_id, user.id, typed.text, blocks=typed.blocks)
    message.client_msg_id = new_id("client-", 12)
    message.thread_ts = root.root_ts if root else None
    for file in files or []:
        file.share(channel.id, message.ts)
        message.files.append(file.wire(slack.url))
        message.subtype = "file_share"
    if root and broadcast:
        message.broadcast, message.subtype = True, "thread_broadcast"
    posting.post(slack, message)
    slack.sessions.clear_prompts(channel.id, message.root_ts)
    if f"<@{workspace.bot_user_id}>" in message.text and workspace.bot_user_id not in channel.members:
        note = f"{slack.config.app_name} is not in this channel. Type `/invite @{slack.config.app_name}` to add it."
        tell(slack, channel, user, note, thread_ts=message.thread_ts)
    return message


def tell(slack: Slack, channel: Channel, user: User, text: str, *, thread_ts: str | None = None) -> Message:
    """A word from Slackbot that only `user` sees."""
    message = Message(slack.clock.timestamp(), channel.id, channel.team_id, SLACKBOT, text, thread_ts=thread_ts)
    message.ephemeral_for = user.id
    posting.post(slack, message)
    return message


def rewrite(slack: Slack, message: Message, user: User, text: str) -> None:
    _own(message, user)
    typed = Typed(text, slack.workspaces[message.team_id])

    def change(target: Message) -> None:
        target.text, target.blocks = typed.text, typed.blocks

    posting.edit(slack, message, change)


def withdraw(slack: Slack, message: Message, user: User) -> None:
    if message.ephemeral_for != user.id:
        _own(message, user)
    posting.delete(slack, message)


def react(slack: Slack, message: Message, user: User, name: str) -> None:
    """Add the reaction, or take it back when it is there."""
    users = message.reactions.setdefault(name, [])
    if user.id in users:
        users.remove(user.id)
    else:
        users.append(user.id)
    if not users:
        del message.reactions[name]
    posting.publish(slack, message)


def stop_agent(slack: Slack, channel: Channel, user: User, thread_ts: str) -> list[str]:
    """The Stop button: Slack ends the open streams of the thread, then tells the app. Returns their timestamps."""
    now_s, stopped = slack.clock.now(), []
    for message in slack.timeline.thread(channel.id, thread_ts):
        if message.stream and message.stream.state_at(now_s) == "streaming":
            message.stream.state = "stopped_by_user"
            stopped.append(message.ts)
            posting.publish(slack, message)
    if slack.hears(channel):
        ts = slack.clock.timestamp()
        slack.emit(channel.team_id, events.agent_session_stopped(user.id, channel, thread_ts, stopped, ts=ts))
    return stopped


def open_home(slack: Slack, user: User, tab: str, *, seen: Channel | None = None) -> None:
    """Open the app's conversation or Home tab; beside the channel `seen` when it is the pane at its right."""
    workspace = slack.workspaces[user.team_id]
    if workspace.installation:
        channel, ts = workspace.direct_message(user.id), slack.clock.timestamp()
        slack.emit(workspace.id, events.app_home_opened(user.id, channel, tab, seen, ts=ts))


def look_at(slack: Slack, user: User, seen: Channel | None) -> None:
    """Go to another channel while the app's pane is open; None: to something that is no channel."""
    slack.emit(user.team_id, events.app_context_changed(user.id, seen, ts=slack.clock.timestamp()))


def unfurl(slack: Slack, message: Message, title: str) -> None:
    """What Slack does by itself a moment after a link was posted: a preview, told as a change of a message nobody edited."""

    def attach(target: Message) -> None:
        target.attachments = [*target.attachments, {"title": title, "fallback": title, "id": 1}]

    posting.edit(slack, message, attach, mark=False)


async def click(slack: Slack, message: Message, user: User, action_id: str, value: str | None = None) -> Reply:
    """Press the button `action_id` of `message`, or choose `value` in the menu of that name."""
    block_id, element = _element(message, action_id)
    channel = slack.channel(message)
    interactions, ids = slack.interactions, (channel.team_id, channel.id, user.id)
    response_id = interactions.new_response_url(*ids, original_ts=message.ts, thread_ts=message.thread_ts)
    payload = {
        **interaction(slack, user, "block_actions", team_id=channel.team_id),
        "container": {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": bool(message.ephemeral_for),
            **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
        },
        "channel": {"id": channel.id, "name": channel.name or "directmessage"},
        "message": slack.wire(message, include_metadata=True),
        "state": {"values": {}},
        "actions": [{**_action(element, value), "block_id": block_id, "action_ts": slack.clock.timestamp()}],
        "response_url": f"{slack.url}/response/{response_id}",
    }
    return await slack.deliveries.ask({"payload": json.dumps(payload)})


def interaction(slack: Slack, user: User, kind: str, *, team_id: str = "") -> Json:
    """The fields every interaction payload begins with. `team_id`: where it happened, by default in the person's own workspace."""
    workspace = slack.workspaces[team_id or user.team_id]
    return {
        "type": kind,
        "user": {"id": user.id, "username": user.handle, "name": user.handle, "team_id": user.team_id},
        "api_app_id": slack.config.app_id,
        "token": "deprecated-verification-token",
        "trigger_id": slack.interactions.new_trigger(user.team_id, user.id),
        "team": {"id": workspace.id, "domain": workspace.domain},
        "enterprise": {"id": workspace.org.id, "name": workspace.org.name} if workspace.org else None,
        "is_enterprise_install": workspace.org_wide,
    }


def _own(message: Message, user: User) -> None:
    if message.user_id != user.id:
        raise BadRequestError(f"{user.real_name} can not change a message of somebody else.")


def _element(message: Message, action_id: str) -> tuple[str, Json]:
    """The interactive element with that id, wherever in the blocks it stands, and its block's id."""
    for block in message.blocks:
        for element in [*block.get("elements", []), block.get("accessory") or {}]:
            if element.get("action_id") == action_id:
                return str(block.get("block_id", "")), element
    raise NotFoundError(f"There is no button {action_id!r} in message {message.ts!r}.")


def _action(element: Json, value: str | None) -> Json:
    """What Slack reports of an element: a button's own value, or the chosen option of a menu."""
    told: dict[str, Any] = {key: element[key] for key in ("type", "action_id", "text", "value") if key in element}
    if element["type"] == "button":
        return {**told, "value": value if value is not None else element.get("value", "")}
    options = [option for option in element.get("options", []) if option.get("value") == value]
    return {**told, "selected_option": options[0]} if options else {**told, "value": value}
