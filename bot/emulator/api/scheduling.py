"""chat.scheduleMessage and what belongs to it."""

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.api.chat import WRITE, new_message
from bot.emulator.api.content import content
from bot.emulator.api.conversations import page
from bot.emulator.errors import SlackError
from bot.emulator.workspace import Json

FARTHEST_S = 120 * 86_400
MOST_IN_FIVE_MINUTES = 30


def schedule(call: Call) -> Json:
    slack, channel, post_at = call.slack, call.writable_channel(), _time(call)
    near = [one for one in slack.scheduled.waiting.values() if one.channel_id == channel.id]
    if sum(abs(one.post_at - post_at) < 300 for one in near) >= MOST_IN_FIVE_MINUTES:
        raise SlackError("restricted_too_many")
    said = content(call)

    def post() -> None:
        # Removed from the channel, or from the workspace, meanwhile: Slack drops it.
        if not call.installation.revoked and call.is_member(channel):
            posting.post(slack, new_message(call, channel, said))

    waiting = slack.scheduled.add(channel.team_id, channel.id, post_at, said.text, post)
    message = new_message(call, channel, said).wire(include_metadata=True)
    return {"channel": channel.id, "scheduled_message_id": waiting.id, "post_at": post_at, "message": message}


def delete(call: Call) -> Json:
    channel = call.channel()
    waiting = call.slack.scheduled.waiting.get(call.required("scheduled_message_id"))
    # Too late in the last minute, as for one that is not known.
    if waiting is None or waiting.channel_id != channel.id or waiting.post_at - call.slack.clock.now() < 60:
        raise SlackError("invalid_scheduled_message_id")
    call.slack.scheduled.remove(waiting.id)
    return {}


def list_scheduled(call: Call) -> Json:
    wanted = call.text("channel")
    if wanted and call.slack.workspace_of(wanted) is None:
        raise SlackError("invalid_channel")
    found = [
        one
        for one in call.slack.scheduled.waiting.values()
        if call.slack.has_app(call.installation, one.team_id) and wanted in {"", one.channel_id}
    ]
    return page(call, "scheduled_messages", found, most=1000, show=lambda one: one.wire())


def _time(call: Call) -> int:
    given, now_s = call.text("post_at"), call.slack.clock.now()
    if not given.isdigit():
        raise SlackError("invalid_time")
    if int(given) <= now_s:
        raise SlackError("time_in_past")
    if int(given) > now_s + FARTHEST_S:
        raise SlackError("time_too_far")
    return int(given)


METHODS = {
    "chat.scheduleMessage": Method(schedule, WRITE, required=("channel", "post_at")),
    "chat.deleteScheduledMessage": Method(delete, WRITE, required=("scheduled_message_id", "channel")),
    "chat.scheduledMessages.list": Method(list_scheduled),
}
