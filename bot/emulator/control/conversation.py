"""Control API: messages and what people do with them."""

import base64
import binascii

from aiohttp import web

from bot.emulator import dialogs, people
from bot.emulator.commands import run_command
from bot.emulator.control import requests
from bot.emulator.control.requests import body
from bot.emulator.delivery import Reply
from bot.emulator.errors import BadRequestError
from bot.emulator.files import File
from bot.emulator.lookup import find_channel, find_message, find_place, find_user
from bot.emulator.rendering import plain_text, with_html
from bot.emulator.seen import seen_messages
from bot.emulator.slack import Slack
from bot.emulator.workspace import Channel, Json, User


async def post_message(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.NewMessage)
    channel, user = find_place(slack, asked.channel, asked.user)
    if not (asked.text.strip() or asked.files):
        raise BadRequestError("The message is empty.")
    root = find_message(slack, channel, asked.thread_ts) if asked.thread_ts else None
    files = [_file(slack, user, new) for new in asked.files]
    message = people.say(slack, channel, user, asked.text, root=root, files=files, broadcast=asked.broadcast)
    return {"ts": message.ts, "channel": channel.id, "thread_ts": message.thread_ts}


async def get_messages(slack: Slack, request: web.Request) -> Json:
    """A channel, or a thread: with `plain` words for transcripts, or with `html=1` as HTML for the page."""
    query = request.query
    channel = find_channel(slack, query.get("channel", ""), team_id=query.get("team", ""))
    reader = find_user(slack, query["as"]).id if query.get("as") else ""
    messages = seen_messages(slack, channel.id, thread_ts=query.get("thread_ts", ""), reader=reader)
    drawn = [with_html(slack, message) for message in messages]
    if query.get("html"):
        return {"channel": channel.id, "messages": drawn}
    plain = [{**message, "plain": plain_text(shown["html"])} for message, shown in zip(messages, drawn, strict=True)]
    return {"channel": channel.id, "messages": plain}


async def edit_message(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.MessageChange)
    channel, user = find_place(slack, asked.channel, asked.user)
    if not asked.text.strip():
        raise BadRequestError("The message would be empty; delete it instead.")
    people.rewrite(slack, find_message(slack, channel, asked.ts), user, asked.text)
    return {"ts": asked.ts}


async def delete_message(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.MessageChange)
    channel, user = find_place(slack, asked.channel, asked.user)
    people.withdraw(slack, find_message(slack, channel, asked.ts), user)
    return {"ts": asked.ts}


async def react(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Reaction)
    channel, user = find_place(slack, asked.channel, asked.user)
    message = find_message(slack, channel, asked.ts)
    people.react(slack, message, user, asked.name)
    return {"reactions": message.reaction_list()}


async def click(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Click)
    channel, user = find_place(slack, asked.channel, asked.user)
    message = find_message(slack, channel, asked.message_ts)
    return _answer(await people.click(slack, message, user, asked.action_id, asked.value))


async def command(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Command)
    channel, user = find_place(slack, asked.channel, asked.user)
    return await run_command(slack, channel, user, asked.command, asked.text)


async def stop(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Stop)
    channel, user = find_place(slack, asked.channel, asked.user)
    return {"streams": people.stop_agent(slack, channel, user, asked.thread_ts)}


async def open_home(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Home)
    user = find_user(slack, asked.user)
    people.open_home(slack, user, asked.tab, seen=_beside(slack, user, asked.beside))
    return {}


async def change_context(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Context)
    user = find_user(slack, asked.user)
    people.look_at(slack, user, _beside(slack, user, asked.beside))
    return {}


async def unfurl(slack: Slack, request: web.Request) -> Json:
    """What Slack itself found out about a link in a message."""
    asked = await body(request, requests.Unfurl)
    channel = find_channel(slack, asked.channel)
    people.unfurl(slack, find_message(slack, channel, asked.ts), asked.title)
    return {}


def _beside(slack: Slack, user: User, name: str) -> Channel | None:
    return find_channel(slack, name, team_id=user.team_id) if name else None


async def submit_view(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Submission)
    return _answer(await dialogs.submit_view(slack, find_user(slack, asked.user), asked.view_id, asked.values))


async def click_view(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.ViewClick)
    return _answer(await dialogs.click_view(slack, find_user(slack, asked.user), asked.view_id, asked.action_id))


async def close_view(slack: Slack, request: web.Request) -> Json:
    """Cancel in a modal. Slack tells the app only if the view asked for it, which this one does not support."""
    asked = await body(request, requests.Submission)
    dialogs.close_view(slack, find_user(slack, asked.user), asked.view_id)
    return {}


async def get_status(slack: Slack, request: web.Request) -> Json:
    channel = find_channel(slack, request.query.get("channel", ""))
    if "thread_ts" in request.query:
        return slack.sessions.seen(channel.id, request.query["thread_ts"])
    return {"threads": slack.sessions.all_seen(channel.id)}


def _file(slack: Slack, user: User, new: requests.NewFile) -> File:
    try:
        content = base64.b64decode(new.content_base64, validate=True)
    except binascii.Error:
        raise BadRequestError(f"The content of {new.name} is not base64.") from None
    return slack.files.create(user.team_id, user.id, new.name, now_s=slack.clock.now(), content=content)


def _answer(reply: Reply) -> Json:
    return {"ok": not reply.problem, "status": reply.status, "response": reply.body, "problem": reply.problem}
