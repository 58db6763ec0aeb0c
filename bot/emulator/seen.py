"""Messages as a person sees them, for the control API and the page."""

from bot.emulator.delivery import Delivery
from bot.emulator.messages import Message
from bot.emulator.slack import Slack
from bot.emulator.typed import retyped
from bot.emulator.workspace import Json

SLACKBOT = "USLACKBOT"


def seen_message(slack: Slack, message: Message) -> Json:
    """One message with everything shown beside it: name, reactions, streaming state, thread counts, delivery."""
    author = slack.user(message.user_id)
    counts = slack.timeline.thread_counts(message)
    return {
        "ts": message.ts,
        "thread_ts": message.thread_ts,
        "team": message.team_id,
        "channel": message.channel_id,
        "user": message.user_id,
        "user_name": author.real_name if author else "Slackbot",
        "is_bot": bool(message.bot_id) or message.user_id == SLACKBOT,
        "text": message.text,
        "typed": retyped(message.text, lambda user_id: _name(slack, user_id)),
        "blocks": message.blocks,
        "attachments": message.attachments,
        "files": message.files,
        "metadata": message.metadata,
        "reactions": message.reaction_list(),
        "subtype": message.subtype or None,
        "edited": bool(message.edited_ts),
        "ephemeral": bool(message.ephemeral_for),
        "ephemeral_for": message.ephemeral_for or None,
        "streaming": message.stream.state_at(slack.clock.now()) if message.stream else None,
        "reply_count": counts.get("reply_count", 0),
        "reply_users": counts.get("reply_users", []),
        "latest_reply": counts.get("latest_reply"),
        "delivery": delivery_state(message.deliveries),
    }


def _name(slack: Slack, user_id: str) -> str:
    user = slack.user(user_id)
    return user.real_name if user else user_id


def seen_messages(slack: Slack, channel_id: str, *, thread_ts: str = "", reader: str = "") -> list[Json]:
    """A channel, or a thread with its root. With `reader` set, other people's ephemeral messages are left out."""
    timeline = slack.timeline
    messages = timeline.thread(channel_id, thread_ts) if thread_ts else list(timeline.top_level(channel_id))
    return [seen_message(slack, message) for message in messages if not reader or message.ephemeral_for in {"", reader}]


def delivery_state(deliveries: list[Delivery]) -> str:
    """How the app's being told stands: delivered, pending, retrying, failed, or "" when it is not told."""
    if not deliveries:
        return ""
    if all(delivery.delivered for delivery in deliveries):
        return "delivered"
    if any(delivery.done and not delivery.delivered for delivery in deliveries):
        return "failed"
    return "retrying" if any(attempt.reason for d in deliveries for attempt in d.attempts) else "pending"
