"""chat.startStream, appendStream, stopStream: a message that grows while it is read."""

from collections.abc import Callable
from typing import Any

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.api.chat import WRITE, root_ts
from bot.emulator.api.content import metadata
from bot.emulator.blocks import MAX_BLOCKS, MAX_MARKDOWN_CHARS, check_blocks
from bot.emulator.datasets import tables_faults
from bot.emulator.errors import SlackError
from bot.emulator.messages import Message, Stream
from bot.emulator.workspace import Channel, Json

TASK_STATUSES = frozenset({"pending", "in_progress", "complete", "error"})
SESSION_STATUSES = frozenset({"active", "processing", "suspended", "closed"})


def start(call: Call) -> Json:
    channel = call.writable_channel()
    chunks = _chunks(call)
    _check_recipient(call, channel)
    message = posting.app_message(call.slack, call.installation, channel.id, "")
    message.thread_ts = root_ts(call, channel)
    message.markdown = True
    message.stream = Stream(call.slack.clock.now(), plan=call.text("task_display_mode") == "plan")
    _grow(message, chunks)
    posting.post(call.slack, message)
    call.slack.sessions.set_status(channel.id, message.root_ts, "processing")
    return {"channel": channel.id, "ts": message.ts}


def append(call: Call) -> Json:
    channel, message = _open_stream(call)
    chunks = _chunks(call)
    if not chunks:
        raise SlackError("no_text")
    _grow(message, chunks)
    posting.publish(call.slack, message)
    return {"channel": channel.id, "ts": message.ts}


def stop(call: Call) -> Json:
    channel, message = _open_stream(call)
    chunks, extra, about = _chunks(call), call.structure("blocks", "invalid_blocks_format"), metadata(call)
    status = call.text("session_status", "active")
    if status not in SESSION_STATUSES:
        raise SlackError("invalid_status")
    final = [] if extra is None else check_blocks(extra)

    def finish(target: Message) -> None:
        _grow(target, chunks)
        target.blocks = [*target.blocks, *posting.with_block_ids(final)]
        target.metadata = about or target.metadata
        assert target.stream is not None
        target.stream.state = "stopped"

    posting.edit(call.slack, message, finish, mark=False)
    call.slack.sessions.set_status(channel.id, message.root_ts, status)
    return {"channel": channel.id, "ts": message.ts, "message": message.wire(include_metadata=True)}


def _check_recipient(call: Call, channel: Channel) -> None:
    """A stream in a channel is shown to one person first, so Slack wants to know whom."""
    if channel.kind == "im":
        return
    if not call.text("recipient_team_id"):
        raise SlackError("missing_recipient_team_id")
    if not call.text("recipient_user_id"):
        raise SlackError("missing_recipient_user_id")
    recipient = call.slack.user(call.text("recipient_user_id"))
    if recipient is None or recipient.team_id != call.text("recipient_team_id"):
        raise SlackError("user_not_found")


def _open_stream(call: Call) -> tuple[Channel, Message]:
    channel = call.writable_channel()
    message = call.message(channel)
    if message.bot_id != call.installation.bot_id:
        raise SlackError("message_not_owned_by_app")
    state = message.stream.state_at(call.slack.clock.now()) if message.stream else "stopped"
    if state == "stopped_by_user":
        raise SlackError("stopped_by_user")
    if state != "streaming":
        raise SlackError("message_not_in_streaming_state")
    return channel, message


def _chunks(call: Call) -> list[Json]:
    """The chunks to add; `markdown_text` counts as one."""
    chunks = call.structure("chunks", "invalid_chunks") or []
    if not isinstance(chunks, list) or not all(_known(chunk) for chunk in chunks):
        raise SlackError("invalid_chunks")
    for chunk in chunks:
        if chunk["type"] == "blocks":
            check_blocks(chunk["blocks"])
    text = call.text("markdown_text")
    if len(text) > MAX_MARKDOWN_CHARS or any(len(chunk.get("text", "")) > MAX_MARKDOWN_CHARS for chunk in chunks):
        raise SlackError("msg_too_long")
    return [{"type": "markdown_text", "text": text}, *chunks] if text else chunks


def _known(chunk: Any) -> bool:
    if not isinstance(chunk, dict):
        return False
    checks: dict[str, Callable[[Json], bool]] = {
        "markdown_text": lambda c: isinstance(c.get("text"), str),
        "task_update": lambda c: bool(c.get("id") and c.get("title")) and c.get("status", "pending") in TASK_STATUSES,
        "plan_update": lambda c: isinstance(c.get("title"), str),
        "blocks": lambda c: isinstance(c.get("blocks"), list),
    }
    check = checks.get(str(chunk.get("type")))
    return check is not None and check(chunk)


def _grow(message: Message, chunks: list[Json]) -> None:
    for chunk in chunks:
        _GROW[chunk["type"]](message, chunk)
    if len(message.blocks) > MAX_BLOCKS:
        raise SlackError("msg_blocks_too_many")
    if any(tables_faults(message.blocks)):
        raise SlackError("invalid_blocks")


def _add_text(message: Message, chunk: Json) -> None:
    """Text goes on in the last block, so that a word cut in two is one word."""
    message.text += chunk["text"]
    if message.blocks and message.blocks[-1]["type"] == "markdown":
        message.blocks[-1] = {**message.blocks[-1], "text": message.blocks[-1]["text"] + chunk["text"]}
    elif chunk["text"]:
        message.blocks += posting.with_block_ids([{"type": "markdown", "text": chunk["text"]}])


def _add_task(message: Message, chunk: Json) -> None:
    card = {"type": "task_card", "task_id": chunk["id"], **{key: chunk[key] for key in chunk.keys() - {"type", "id"}}}
    tasks = _plan(message)["tasks"] if message.stream and message.stream.plan else message.blocks
    for index, old in enumerate(tasks):
        if old.get("task_id") == chunk["id"]:
            tasks[index] = {**old, **card}
            return
    tasks.append(posting.with_block_ids([card])[0])


def _add_title(message: Message, chunk: Json) -> None:
    _plan(message)["title"] = chunk["title"]


def _plan(message: Message) -> Json:
    plan = next((block for block in message.blocks if block["type"] == "plan"), None)
    if plan is None:
        plan = posting.with_block_ids([{"type": "plan", "title": "", "tasks": []}])[0]
        message.blocks.append(plan)
    return plan


def _add_blocks(message: Message, chunk: Json) -> None:
    message.blocks += posting.with_block_ids(chunk["blocks"])


_GROW: dict[str, Callable[[Message, Json], None]] = {
    "markdown_text": _add_text,
    "task_update": _add_task,
    "plan_update": _add_title,
    "blocks": _add_blocks,
}

METHODS = {
    "chat.startStream": Method(start, WRITE, required=("channel",)),
    "chat.appendStream": Method(append, WRITE, required=("channel", "ts")),
    "chat.stopStream": Method(stop, WRITE, required=("channel", "ts")),
}
