"""Control API: the clock, faults, raw events, logs and configuration."""

from dataclasses import asdict

from aiohttp import web

from bot.emulator import events
from bot.emulator.config import request_urls
from bot.emulator.consent import MEANING
from bot.emulator.control import requests
from bot.emulator.control.requests import body
from bot.emulator.errors import BadRequestError
from bot.emulator.faults import Fault
from bot.emulator.lookup import find_workspace
from bot.emulator.rendering import EMOJI
from bot.emulator.slack import Slack
from bot.emulator.workspace import Channel, Json, Workspace


async def send_event(slack: Slack, request: web.Request) -> Json:
    """Deliver raw events: wrapped here, or a whole envelope just as it came."""
    asked = await body(request, requests.RawEvent)
    given = asked.event if isinstance(asked.event, list) else [asked.event]
    workspace = find_workspace(slack, asked.team)
    bodies = [_envelope(slack, workspace, event, asked.event_id) for event in given]
    if asked.order == "reversed":
        bodies.reverse()
    deliveries = slack.deliveries.send(*bodies, copies=asked.copies)
    return {"event_ids": [delivery.event_id for delivery in deliveries]}


async def get_deliveries(slack: Slack, request: web.Request) -> Json:
    """Every event's attempts, oldest first; any field of a delivery filters (event_id, type, channel, ts)."""
    wanted = {key: value for key, value in request.query.items() if key in {"event_id", "type", "channel", "ts"}}
    rows = [delivery.seen() for delivery in slack.deliveries.log]
    return {"deliveries": [row for row in rows if all(row[key] == value for key, value in wanted.items())]}


async def get_calls(slack: Slack, request: web.Request) -> Json:
    method = request.query.get("method", "")
    return {"calls": [call for call in slack.calls if not method or call["method"] == method]}


async def advance_clock(slack: Slack, request: web.Request) -> Json:
    slack.clock.advance((await body(request, requests.Advance)).advance_s)
    slack.updates.publish("clock", **_clock(slack))
    return _clock(slack)


async def get_clock(slack: Slack, request: web.Request) -> Json:
    return _clock(slack)


async def add_fault(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.FaultOrder)
    slack.faults.add(Fault(**asked.model_dump()))
    return {"faults": slack.faults.list(asked.method)}


async def get_faults(slack: Slack, request: web.Request) -> Json:
    return {"faults": slack.faults.list(request.query.get("method", ""))}


async def take_fault(slack: Slack, request: web.Request) -> Json:
    """One use of a fault, or an empty object. The product's dev tools ask for ``tool:<name>``."""
    fault = slack.faults.take((await body(request, requests.FaultTake)).method)
    return asdict(fault) if fault else {}


async def clear_faults(slack: Slack, request: web.Request) -> Json:
    slack.faults.clear()
    return {"faults": []}


async def configure(slack: Slack, request: web.Request) -> Json:
    asked = await body(request, requests.Configuration)
    urls = request_urls(asked.request_url)
    if not all(url.startswith(("http://", "https://")) for url in urls):
        raise BadRequestError("request_url must begin with http:// or https://.")
    slack.deliveries.set_urls(urls)
    return {"request_url": list(urls)}


async def get_state(slack: Slack, request: web.Request) -> Json:
    """Workspaces with their people and channels, the app and its commands: what the page starts from."""
    config = slack.config
    return {
        "boot": slack.updates.boot,
        "last_update": slack.updates.last,
        "request_url": list(slack.deliveries.urls),
        "clock": _clock(slack),
        "app": {
            "id": config.app_id,
            "name": config.app_name,
            "description": config.app_description,
            "suggested_prompts": [asdict(prompt) for prompt in config.suggested_prompts],
        },
        "emoji": EMOJI,
        "commands": [asdict(command) for command in config.commands],
        "workspaces": [_workspace(slack, workspace) for workspace in slack.workspaces.values()],
    }


async def get_sockets(slack: Slack, request: web.Request) -> Json:
    return {"sockets": slack.deliveries.sockets.seen()}


async def trouble_sockets(slack: Slack, request: web.Request) -> Json:
    """Tell the app's connections to go, cut them off, or let them hang half open."""
    asked = await body(request, requests.SocketTrouble)
    return {"count": await slack.deliveries.sockets.trouble(asked.kind, asked.id)}


def _envelope(slack: Slack, workspace: Workspace, event: Json, event_id: str | None) -> Json:
    if event.get("type") == "event_callback":
        return event
    if not event.get("type"):
        raise BadRequestError("An event needs a type.")
    return events.envelope(
        event, workspace, app_id=slack.config.app_id, now_s=slack.clock.now(), event_id=event_id or ""
    )


def _clock(slack: Slack) -> Json:
    return {"now": slack.clock.now(), "offset_s": slack.clock.offset_s}


def _workspace(slack: Slack, workspace: Workspace) -> Json:
    return {
        "id": workspace.id,
        "name": workspace.name,
        "domain": workspace.domain,
        "bot_user_id": workspace.bot_user_id,
        "installed": workspace.installation is not None,
        "scopes": [{"scope": scope, "meaning": MEANING.get(scope, scope)} for scope in _scopes(workspace)],
        "users": [asdict(user) for user in workspace.users.values()],
        "channels": [_channel(workspace, channel) for channel in workspace.channels.values()],
    }


def _scopes(workspace: Workspace) -> tuple[str, ...]:
    return workspace.installation.scopes if workspace.installation else ()


def _channel(workspace: Workspace, channel: Channel) -> Json:
    user = channel.other(workspace.bot_user_id) if channel.kind == "im" else None
    return {**asdict(channel), "user": user, "has_app": workspace.bot_user_id in channel.members}
