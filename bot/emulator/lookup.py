"""Finding what the control API names: by id, or by the name a person would use."""

from bot.emulator.errors import BadRequestError, NotFoundError
from bot.emulator.messages import Message
from bot.emulator.slack import Slack
from bot.emulator.workspace import Channel, User, Workspace


def find_workspace(slack: Slack, name: str) -> Workspace:
    """A workspace by id, domain or name; the first one for an empty name."""
    for workspace in slack.workspaces.values():
        if name in {"", workspace.id, workspace.domain, workspace.name}:
            return workspace
    raise NotFoundError(f"There is no workspace {name!r}.")


def find_user(slack: Slack, name: str) -> User:
    """A person by id, "@ada" or real name, in any workspace."""
    for workspace in slack.workspaces.values():
        user = workspace.user_named(name)
        if user and not user.is_bot:
            return user
    raise NotFoundError(f"There is no person {name!r}.")


def find_channel(slack: Slack, name: str, *, team_id: str = "") -> Channel:
    """A channel by id, "#campaigns", "dm:@ada" for a person's direct message with the app, "dm:@ada,@ben" for one of several."""
    if name.startswith("dm:"):
        people = [find_user(slack, each) for each in name.removeprefix("dm:").split(",")]
        person = people[0]
        if len(people) > 1:
            return slack.workspaces[person.team_id].group_message([each.id for each in people])
        return slack.workspaces[person.team_id].direct_message(person.id)
    for workspace in slack.workspaces.values():
        channel = workspace.channel_named(name)
        if channel and team_id in {"", workspace.id, *channel.shared_with}:
            return channel
    raise NotFoundError(f"There is no channel {name!r}.")


def find_message(slack: Slack, channel: Channel, ts: str) -> Message:
    message = slack.timeline.find(channel.id, ts)
    if message is None:
        raise NotFoundError(f"There is no message {ts!r} in {title(slack, channel)}.")
    return message


def find_place(slack: Slack, channel_name: str, user_name: str) -> tuple[Channel, User]:
    """A channel and a person who may write in it."""
    user = find_user(slack, user_name)
    channel = find_channel(slack, channel_name, team_id=user.team_id)
    if user.id not in channel.members:
        raise BadRequestError(f"{user.real_name} is not in {title(slack, channel)}.")
    return channel, user


def title(slack: Slack, channel: Channel) -> str:
    """What a person calls the channel: "#general", or "the direct message with Ada Keller"."""
    if channel.kind != "im":
        return f"#{channel.name}"
    workspace = slack.workspaces[channel.team_id]
    return f"the direct message with {workspace.users[channel.other(workspace.bot_user_id)].real_name}"
