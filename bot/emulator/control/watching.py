"""Control API: changes as they happen, and the pictures the page shows."""

import asyncio
import contextlib
import html
import json
import time

from aiohttp import web

from bot.emulator.errors import NotFoundError
from bot.emulator.lookup import find_user
from bot.emulator.rendering import blocks_html
from bot.emulator.slack import Slack
from bot.emulator.workspace import Json, User

HEARTBEAT_S = 15.0
COLOURS = ("#4f6bed", "#c2553d", "#2f8f6b", "#8a5cc2", "#b0872b", "#2c7da0")


async def updates(slack: Slack, request: web.Request) -> Json | web.StreamResponse:
    """Changes after number `after`: an event stream for browsers, else one long poll of up to `timeout_s` seconds."""
    given = request.headers.get("Last-Event-ID") or request.query.get("after") or str(slack.updates.last)
    after = int(given) if given.isdigit() else 0
    if "text/event-stream" in request.headers.get("Accept", ""):
        return await _stream(slack, request, after)
    wait_s = min(float(request.query.get("timeout_s", "25")), 60.0)
    found = await slack.updates.wait(after, wait_s)
    return {"boot": slack.updates.boot, "updates": found, "next": found[-1]["n"] if found else after}


async def get_view(slack: Slack, request: web.Request) -> Json:
    """A person's open modals and Home tab, with the HTML of their blocks."""
    user = find_user(slack, request.query.get("user", ""))
    shown = [view for view in slack.interactions.views.values() if view.user_id == user.id]
    home = slack.interactions.homes.get(user.id)
    return {
        "views": [
            {"id": v.id, "hash": v.hash, **v.body, "html": blocks_html(slack, v.body.get("blocks", []))} for v in shown
        ],
        "home": {**home.body, "html": blocks_html(slack, home.body.get("blocks", []))} if home else None,
    }


async def file_content(slack: Slack, request: web.Request) -> web.StreamResponse:
    """A file for the page. Anything but an image is a download: what the app uploads must not run here as a page."""
    file = slack.files.find(request.match_info["file_id"])
    if file is None or file.content is None:
        raise NotFoundError("There is no such file.")
    shown = file.mimetype in {"image/png", "image/jpeg", "image/gif", "image/webp"}
    headers = {"X-Content-Type-Options": "nosniff"}
    if not shown:
        headers["Content-Disposition"] = f'attachment; filename="{file.name.encode("ascii", "ignore").decode()}"'
    content_type = file.mimetype if shown else "application/octet-stream"
    return web.Response(body=file.content, content_type=content_type, headers=headers)


async def avatar(slack: Slack, request: web.Request) -> web.StreamResponse:
    """A square with initials, drawn here so that nothing has to be fetched."""
    user = slack.user(request.match_info["user_id"])
    name = user.real_name if user else "Slackbot"
    initials = "".join(word[0] for word in name.split()[:2]).upper()
    colour = _colour(slack, user)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 72 72"><rect width="72" height="72" rx="14" fill="{colour}"/>'
        '<text x="36" y="46" text-anchor="middle" font-family="system-ui,sans-serif" font-weight="600" font-size="28"'
        f' fill="#fff">{html.escape(initials)}</text></svg>'
    )
    return web.Response(text=svg, content_type="image/svg+xml", headers={"Cache-Control": "max-age=3600"})


def _colour(slack: Slack, user: User | None) -> str:
    """By position, so that no two people of a small workspace look alike."""
    if user is None or user.is_bot:
        return "#611f69" if user else "#3f4652"
    return COLOURS[slack.workspaces[user.team_id].people.index(user) % len(COLOURS)]


async def _stream(slack: Slack, request: web.Request, after: int) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    await _send(response, {"n": after, "kind": "hello", "boot": slack.updates.boot})
    sent_s = time.monotonic()
    with contextlib.suppress(ConnectionError, asyncio.CancelledError):
        while not slack.updates.closed:
            for update in await slack.updates.wait(after, HEARTBEAT_S):
                await _send(response, update)
                after, sent_s = update["n"], time.monotonic()
            if time.monotonic() - sent_s >= HEARTBEAT_S:
                await response.write(b": still here\n\n")
                sent_s = time.monotonic()
    return response


async def _send(response: web.StreamResponse, update: Json) -> None:
    await response.write(f"id: {update['n']}\ndata: {json.dumps(update)}\n\n".encode())
