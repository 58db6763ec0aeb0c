"""assistant.threads.* and agents.sessions.*: what the agent shows while it works."""

from bot.emulator.api.call import Call, Method
from bot.emulator.api.streams import SESSION_STATUSES
from bot.emulator.errors import SlackError
from bot.emulator.workspace import Channel, Json

ASSISTANT = ("assistant:write",)
# `assistant.threads.setStatus` is moving from assistant:write to chat:write; Slack takes either.
STATUS = ("chat:write", "assistant:write")
DEAF = "missing_agent_session_stopped_event_subscription"
MAX_TITLE_CHARS = 200


def set_status(call: Call) -> Json:
    channel = _channel(call)
    loading = call.structure("loading_messages", "invalid_arguments") or []
    if not isinstance(loading, list) or len(loading) > 10:
        raise SlackError("invalid_arguments")
    thread_ts = _root(call, channel, missing="invalid_thread_ts")
    call.slack.sessions.set_line(channel.id, thread_ts, call.text("status"), [str(text) for text in loading])
    return {}


def set_title(call: Call) -> Json:
    channel = _channel(call)
    session = call.slack.sessions.open(channel.id, _root(call, channel, missing="invalid_thread_ts"))
    session.title = call.required("title")
    return {}


def set_suggested_prompts(call: Call) -> Json:
    if not call.slack.config.agent:
        raise SlackError("not_agent_app")
    channel = _channel(call)
    prompts = call.structure("prompts", "invalid_arguments")
    if not isinstance(prompts, list) or not all(isinstance(p, dict) and p.get("message") for p in prompts):
        raise SlackError("invalid_arguments")
    # Without a thread the prompts belong to the empty conversation, which "" stands for.
    thread_ts = _root(call, channel, missing="invalid_thread_ts") if call.text("thread_ts") else ""
    call.slack.sessions.open(channel.id, thread_ts).prompts = prompts[:4]
    call.slack.updates.publish("status", **call.slack.sessions.seen(channel.id, thread_ts))
    return {}


def session_set_status(call: Call) -> Json:
    status = call.text("status")
    if status not in SESSION_STATUSES:
        raise SlackError("invalid_status")
    channel = _session_channel(call)
    initiator = call.text("initiator_user_id")
    if initiator and initiator not in channel.members:
        raise SlackError("user_not_found")
    thread_ts = _root(call, channel, missing="invalid_arguments")
    session = call.slack.sessions.set_status(channel.id, thread_ts, status)
    session.title = session.title or call.text("title")
    answer = {"status": status, "agent_status": status, "title": session.title}
    # Slack shows no Stop button to an app that would not hear it.
    heard = "agent_session_stopped" in call.slack.config.events
    return answer if heard else {**answer, "warning": DEAF, "response_metadata": {"warnings": [DEAF]}}


def session_rename(call: Call) -> Json:
    channel = _session_channel(call)
    session = call.slack.sessions.find(channel.id, _root(call, channel, missing="session_not_found"))
    if session is None:
        raise SlackError("session_not_found")
    if len(call.required("title")) > MAX_TITLE_CHARS:
        raise SlackError("invalid_name")
    session.title = call.text("title")
    return {"title": session.title}


def _channel(call: Call) -> Channel:
    channel = call.channel("channel_id")
    if not call.is_member(channel):
        raise SlackError("channel_not_found")
    return channel


def _session_channel(call: Call) -> Channel:
    channel = call.channel("channel_id")
    if not call.is_member(channel) or not call.slack.config.agent:
        raise SlackError("not_authorized")
    if not call.text("thread_ts"):
        raise SlackError("thread_ts_required")
    return channel


def _root(call: Call, channel: Channel, *, missing: str) -> str:
    """`thread_ts`, which has to be a root: Slack does not look a reply's root up here."""
    message = call.slack.timeline.find(channel.id, call.text("thread_ts"))
    if message is None or message.root_ts != message.ts:
        raise SlackError(missing)
    return message.ts


METHODS = {
    "assistant.threads.setStatus": Method(set_status, STATUS, required=("channel_id", "thread_ts", "status")),
    "assistant.threads.setTitle": Method(set_title, ASSISTANT, required=("channel_id", "thread_ts", "title")),
    "assistant.threads.setSuggestedPrompts": Method(
        set_suggested_prompts, ASSISTANT, required=("channel_id", "prompts")
    ),
    "agents.sessions.setStatus": Method(session_set_status, ("chat:write",), required=("channel_id", "status")),
    "agents.sessions.rename": Method(session_rename, ("chat:write",), required=("channel_id", "title")),
}
