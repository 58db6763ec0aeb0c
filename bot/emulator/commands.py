"""Slash commands: sent to the app, and what it answers at once."""

import json

from bot.emulator import people, posting
from bot.emulator.delivery import Reply
from bot.emulator.errors import BadRequestError
from bot.emulator.messages import Message
from bot.emulator.responses import show
from bot.emulator.slack import Slack
from bot.emulator.workspace import Channel, Json, User


async def run_command(slack: Slack, channel: Channel, user: User, command: str, text: str) -> Json:
    """Run `command` as typed by `user`.

    Returns:
        ``{status, response, ts, problem}``: the HTTP status and body of the app's answer, the timestamp of the message
        that shows it (None when there is none), and Slack's word for what went wrong, or "".

    """
    if command == "/invite":
        return _invite(slack, channel, user, text)
    workspace = slack.workspaces[user.team_id]  # a stranger's commands are those of their own workspace
    granted = workspace.installation.scopes if workspace.installation else ()
    if command not in {known.command for known in slack.config.commands} or "commands" not in granted:
        raise BadRequestError(f"{command} is not a command of this workspace.")
    response_id = slack.interactions.new_response_url(workspace.id, channel.id, user.id)
    reply = await slack.deliveries.ask(_fields(slack, channel, user, (command, text), response_id))
    if reply.problem:
        problem = "operation_timeout" if reply.problem == "http_timeout" else "dispatch_failed"
        shown = people.tell(slack, channel, user, f"{command} failed with the error “{problem}”")
        return {"status": reply.status, "response": None, "ts": shown.ts, "problem": problem}
    body = parsed(reply)
    message = show(slack, slack.interactions.response_url(response_id), body) if body else None
    return {"status": reply.status, "response": body, "ts": message.ts if message else None, "problem": ""}


def parsed(reply: Reply) -> Json | None:
    """The message in an answer's body: JSON, bare text, or nothing."""
    try:
        body = json.loads(reply.body)
    except ValueError:
        body = {"text": reply.body}
    return body if isinstance(body, dict) and (body.get("text") or body.get("blocks")) else None


def _fields(slack: Slack, channel: Channel, user: User, typed: tuple[str, str], response_id: str) -> dict[str, str]:
    workspace = slack.workspaces[channel.team_id]
    return {
        "token": "deprecated-verification-token",
        "team_id": workspace.id,
        "team_domain": workspace.domain,
        "channel_id": channel.id,
        "channel_name": channel.name or "directmessage",
        "user_id": user.id,
        "user_name": user.handle,
        "command": typed[0],
        "text": typed[1],
        "api_app_id": slack.config.app_id,
        "is_enterprise_install": "true" if workspace.org_wide else "false",  # a string, unlike everywhere else
        **({"enterprise_id": workspace.org.id, "enterprise_name": workspace.org.name} if workspace.org else {}),
        "response_url": f"{slack.url}/response/{response_id}",
        "trigger_id": slack.interactions.new_trigger(workspace.id, user.id),
    }


def _invite(slack: Slack, channel: Channel, user: User, text: str) -> Json:
    """Slack's own command; the one way to bring the app into a channel."""
    workspace = slack.workspaces[channel.team_id]
    guest = workspace.user_named(text.strip())
    if guest is None or channel.kind == "im" or (guest.is_bot and workspace.installation is None):
        shown = people.tell(slack, channel, user, f"/invite found nobody called “{text.strip()}” to add here.")
        return {"status": 200, "response": None, "ts": shown.ts, "problem": ""}
    posting.join(slack, channel, guest.id)
    joined = Message(
        slack.clock.timestamp(), channel.id, channel.team_id, guest.id, f"<@{guest.id}> has joined the channel"
    )
    joined.subtype = "channel_join"
    posting.post(slack, joined)
    return {"status": 200, "response": None, "ts": joined.ts, "problem": ""}
