"""Control API: what admins and members make of a workspace: people, channels, conversations of several, and the end of the app."""

from dataclasses import asdict
from zoneinfo import available_timezones

from aiohttp import web

from bot.emulator import posting
from bot.emulator.control import requests
from bot.emulator.control.requests import body
from bot.emulator.errors import BadRequestError
from bot.emulator.ids import new_id
from bot.emulator.lookup import find_channel, find_message, find_user, find_workspace
from bot.emulator.slack import Slack
from bot.emulator.workspace import Channel, ChannelKind, Json, User, Workspace


async def add_person(slack: Slack, request: web.Request) -> Json:
    """Somebody new, in #general and, where the app is installed, with a direct message of their own."""
    asked = await body(request, requests.NewPerson)
    workspace = find_workspace(slack, asked.team)
    if workspace.user_named(asked.handle) or workspace.user_named(asked.real_name):
        raise BadRequestError(f"There is somebody called @{asked.handle} or {asked.real_name} in {workspace.name}.")
    if asked.timezone not in available_timezones():
        raise BadRequestError(f"{asked.timezone!r} is no time zone; one is Europe/Berlin.")
    person = User(
        new_id("U"), workspace.id, asked.handle, asked.real_name, asked.timezone, asked.is_admin, title=asked.title
    )
    workspace.users[person.id] = person
    if general := workspace.channel_named("general"):
        posting.join(slack, general, person.id)
    if workspace.installation:
        workspace.direct_message(person.id)
    slack.updates.publish("workspace", team=workspace.id)
    return {"user": person.id}


async def add_channel(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.NewChannel)
    user = find_user(slack, asked.user)
    workspace = slack.workspaces[user.team_id]
    if workspace.channel_named(asked.name):
        raise BadRequestError(f"There is a channel #{asked.name} in {workspace.name}.")
    members = list(dict.fromkeys([user.id, *_people(workspace, asked.members)]))
    kind: ChannelKind = "group" if asked.private else "channel"
    channel_id = new_id("G" if asked.private else "C")
    channel = Channel(channel_id, workspace.id, asked.name.lower(), kind, members, asked.topic)
    workspace.channels[channel.id] = channel
    slack.updates.publish("channel", channel=channel.id)
    return {"channel": channel.id}


async def change_channel(slack: Slack, request: web.Request) -> Json:
    """Archive a channel, say who may post in it, or lock a thread: what an admin does."""
    asked = await body(request, requests.ChannelChange)
    channel = find_channel(slack, asked.channel)
    channel.is_archived = channel.is_archived if asked.is_archived is None else asked.is_archived
    channel.posting = asked.posting or channel.posting
    if asked.lock_thread:
        channel.locked_threads.append(find_message(slack, channel, asked.lock_thread).root_ts)
    slack.updates.publish("channel", channel=channel.id)
    return {"channel": asdict(channel)}


async def add_member(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Member)
    channel = find_channel(slack, asked.channel)
    guest = slack.workspaces[channel.team_id].user_named(asked.user)
    if guest is None:
        raise BadRequestError(f"There is no {asked.user!r} in that workspace.")
    posting.join(slack, channel, guest.id)
    return {"members": channel.members}


async def open_group(slack: Slack, request: web.Request) -> Json:
    """The conversation of some people and the app, which is begun when there is none yet."""
    asked = await body(request, requests.Group)
    user = find_user(slack, asked.user)
    workspace = slack.workspaces[user.team_id]
    channel = workspace.group_message([user.id, *_people(workspace, asked.people)])
    slack.updates.publish("channel", channel=channel.id)
    return {"channel": channel.id}


async def uninstall(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Removal)
    workspace = find_workspace(slack, asked.team)
    if asked.user and not find_user(slack, asked.user).is_admin:
        raise BadRequestError(f"Only an admin of {workspace.name} can remove {slack.config.app_name}.")
    slack.remove_app(workspace, error="account_inactive", tell=asked.tell, order=asked.order)
    return {}


def _people(workspace: Workspace, names: list[str]) -> list[str]:
    """The ids of people of one workspace. Raises BadRequestError when one of them is not there."""
    found = [workspace.user_named(name) for name in names]
    if None in found:
        raise BadRequestError(f"Not all of {', '.join(names)} are in {workspace.name}.")
    return [one.id for one in found if one]
