"""files.*: the three steps of an upload, and what is known about a file."""

from bot.emulator import posting
from bot.emulator.api.call import Call, Method
from bot.emulator.api.chat import root_ts
from bot.emulator.blocks import check_blocks
from bot.emulator.errors import SlackError
from bot.emulator.files import File
from bot.emulator.workspace import Channel, Json

WRITE = ("files:write",)


def get_upload_url(call: Call) -> Json:
    name, length = call.text("filename"), call.text("length")
    if not name or not length.isdigit() or int(length) == 0:
        raise SlackError("missing_argument")
    slack, installation = call.slack, call.installation
    team_id = installation.team_id or installation.org_id
    file = slack.files.create(team_id, installation.bot_user_id, name, now_s=slack.clock.now())
    return {"upload_url": f"{slack.url}/upload/{file.id}", "file_id": file.id}


def complete_upload(call: Call) -> Json:
    """The share itself comes a moment later in Slack; here it stands at once, but its ts is not told either."""
    given = call.structure("files", "invalid_arguments") or []
    files = [_uploaded(call, entry) for entry in given if isinstance(entry, dict)]
    if not files:
        raise SlackError("missing_argument")
    if call.text("channel_id"):
        _share(call, _shared_channel(call), files)
    return {"files": [{"id": file.id, "title": file.title} for file in files]}


def info(call: Call) -> Json:
    file = call.slack.files.find(call.required("file"))
    if file is None or not call.slack.has_app(call.installation, file.team_id) or file.content is None:
        raise SlackError("file_not_found")
    return {"file": file.wire(call.slack.url), "comments": [], "response_metadata": {"next_cursor": ""}}


def delete(call: Call) -> Json:
    """The app's own files only. The messages that shared it stay, without it."""
    slack = call.slack
    file = slack.files.find(call.required("file"))
    if file is None or not slack.has_app(call.installation, file.team_id):
        raise SlackError("file_not_found")
    if file.user_id != call.installation.bot_user_id:
        raise SlackError("cant_delete_file")
    slack.files.remove(file)
    for message in slack.timeline.everything():
        if any(shown.get("id") == file.id for shown in message.files):
            message.files = [shown for shown in message.files if shown.get("id") != file.id]
            posting.publish(slack, message)
    return {}


def list_files(call: Call) -> Json:
    channel, user = call.text("channel"), call.text("user")
    found = [
        file
        for file in call.slack.files.all()
        if call.slack.has_app(call.installation, file.team_id)
        and file.content is not None
        and channel in {"", *file.channels}
        and user in {"", file.user_id}
    ]
    count, number = call.number("count", 100, most=1000), call.number("page", 1, most=10_000)
    shown = [file.wire(call.slack.url) for file in found[(number - 1) * count : number * count]]
    paging = {"count": count, "total": len(found), "page": number, "pages": -(-len(found) // count)}
    return {"files": shown, "paging": paging}


def _uploaded(call: Call, entry: Json) -> File:
    file = call.slack.files.find(str(entry.get("id")))
    if file is None or file.content is None:
        raise SlackError("file_not_found")
    file.title = str(entry.get("title") or file.name)
    return file


def _shared_channel(call: Call) -> Channel:
    try:
        return call.writable_channel("channel_id")
    except SlackError as error:
        raise SlackError("invalid_channel" if error.code == "channel_not_found" else error.code) from None


def _share(call: Call, channel: Channel, files: list[File]) -> None:
    message = posting.app_message(call.slack, call.installation, channel.id, call.text("initial_comment"))
    message.thread_ts = root_ts(call, channel)
    message.subtype = "file_share"
    blocks = call.structure("blocks", "invalid_blocks_format")
    message.blocks = posting.with_block_ids(check_blocks(blocks)) if blocks else []
    for file in files:
        file.share(channel.id, message.ts)
    message.files = [file.wire(call.slack.url) for file in files]
    posting.post(call.slack, message)


METHODS = {
    "files.getUploadURLExternal": Method(get_upload_url, WRITE),
    "files.completeUploadExternal": Method(complete_upload, WRITE),
    "files.delete": Method(delete, WRITE, required=("file",)),
    "files.list": Method(list_files, ("files:read",)),
    "files.info": Method(info, ("files:read",), required=("file",)),
}
