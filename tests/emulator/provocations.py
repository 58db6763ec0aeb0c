"""For each error of each method: what has to be so, and the call that then fails with it."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.emulator import Emulator, EmulatorClient
from bot.emulator.workspace import Channel
from tests.emulator.conftest import TOKEN

Json = dict[str, Any]
CAMPAIGNS, ELSEWHERE, NOWHERE, DIRECT = "C0CAMPAIGNS", "C0RANDOM", "C0NOWHERE", "D0ADA"
LINK = "https://reports.example/q3"
MODAL: Json = {"type": "modal", "title": {"type": "plain_text", "text": "One"}, "blocks": []}
HOME: Json = {"type": "home", "blocks": []}
HUGE: Json = {**MODAL, "private_metadata": "x" * 250_001}
DIVIDERS = [{"type": "divider"}] * 51
RICH = [{"type": "rich_text", "elements": []}]
SECTION = [{"type": "section", "text": {"type": "mrkdwn", "text": "x"}}]
LONG_SECTIONS = [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3000}}] * 5
PERSON = {"recipient_team_id": "T0NORTHWIND", "recipient_user_id": "U0ADA"}
NEWS = {"event_type": "t", "event_payload": {"x": "y" * 8000}}
CLIENT = {"client_id": "1.2", "client_secret": "shh"}


@dataclass
class Stage:
    emulator: Emulator
    people: EmulatorClient
    api: AsyncWebClient

    async def post(self, **args: Any) -> str:
        return str((await self.api.chat_postMessage(**{"channel": CAMPAIGNS, "text": "x", **args}))["ts"])

    def channel(self, name: str = CAMPAIGNS) -> Channel:
        return self.emulator.slack.workspaces["T0NORTHWIND"].channels[name]


Before = Callable[[Stage], Awaitable[Json | None]]


@dataclass(frozen=True)
class Provocation:
    """`before` may return values for arguments that begin with a dollar sign; `scopes` are then all the token has."""

    args: Json
    before: Before | None = None
    config: Json = field(default_factory=dict)
    scopes: tuple[str, ...] = ()


async def archived(stage: Stage) -> Json:
    ts = await stage.post()
    await stage.people.change_channel("#campaigns", is_archived=True)
    return {"ts": ts}


async def posted(stage: Stage) -> Json:
    return {"ts": await stage.post()}


async def said(stage: Stage) -> Json:
    return {"ts": await stage.people.post_message("#campaigns", "@ada", f"see {LINK} and http://other.example/x")}


async def joined(stage: Stage) -> Json:
    await stage.people.command("#campaigns", "@ada", "/invite", "@chloe")
    return {"ts": (await stage.people.messages("#campaigns"))[-1]["ts"]}


async def locked(stage: Stage) -> Json:
    ts = await stage.post()
    await stage.people.change_channel("#campaigns", lock_thread=ts)
    return {"ts": ts}


def restricted(kind: str) -> Before:
    async def before(stage: Stage) -> Json:
        ts = await stage.post()
        await stage.people.change_channel("#campaigns", posting=kind)
        return {"ts": ts}

    return before


async def streaming(stage: Stage) -> Json:
    args = {"channel": CAMPAIGNS, "markdown_text": "x", **PERSON}
    return {"ts": (await stage.api.api_call("chat.startStream", json=args))["ts"]}


async def expired_stream(stage: Stage) -> Json:
    given = await streaming(stage)
    await stage.people.advance_clock(301)
    return given


async def stopped(stage: Stage) -> Json:
    given = await streaming(stage)
    await stage.people.stop("#campaigns", given["ts"], "@ada")
    return given


async def archived_stream(stage: Stage) -> Json:
    given = await streaming(stage)
    await stage.people.change_channel("#campaigns", is_archived=True)
    return given


async def full_stream(stage: Stage) -> Json:
    given = await streaming(stage)
    for _ in range(49):
        await stage.api.chat_appendStream(**given, channel=CAMPAIGNS, chunks=[{"type": "blocks", "blocks": SECTION}])
    return given


async def removed(stage: Stage) -> Json:
    given = await streaming(stage)
    stage.channel().members.remove("U0THREADLINE")
    return given


async def rich(stage: Stage) -> Json:
    return {"ts": await stage.post(blocks=RICH)}


async def hour_old(stage: Stage) -> Json:
    given = await posted(stage)
    await stage.people.advance_clock(3600)
    return given


async def fully_booked(stage: Stage) -> Json:
    post_at = int(time.time()) + 3600
    for _ in range(30):
        await stage.api.chat_scheduleMessage(channel=CAMPAIGNS, post_at=post_at, text="x")
    return {"post_at": str(post_at)}


async def soon(stage: Stage) -> Json:
    return {"post_at": str(int(time.time()) + 3600)}


async def soon_archived(stage: Stage) -> Json:
    await archived(stage)
    return await soon(stage)


async def soon_restricted(stage: Stage) -> Json:
    await stage.people.change_channel("#campaigns", posting="nobody")
    return await soon(stage)


async def mention(stage: Stage) -> Json:
    token = stage.emulator.slack.interactions.new_action_token("T0NORTHWIND", "U0ADA")
    return {"token": token}


async def old_mention(stage: Stage) -> Json:
    given = await mention(stage)
    await stage.people.advance_clock(3600)
    return given


async def trigger(stage: Stage) -> Json:
    return {"trigger": stage.emulator.slack.interactions.new_trigger("T0NORTHWIND", "U0ADA")}


async def old_trigger(stage: Stage) -> Json:
    given = await trigger(stage)
    await stage.people.advance_clock(4)
    return given


async def opened(stage: Stage) -> Json:
    """A modal named `one` is open; `used` is its trigger, `trigger` a fresh one."""
    used = (await trigger(stage))["trigger"]
    view = {**MODAL, "external_id": "one"}
    answer = await stage.api.views_open(trigger_id=used, view=view)
    other = await stage.api.views_push(trigger_id=(await trigger(stage))["trigger"], view=MODAL)
    return {"used": used, "view": answer["view"]["id"], "other": other["view"]["id"], **await trigger(stage)}


async def piled_up(stage: Stage) -> Json:
    given = await opened(stage)
    await stage.api.views_push(trigger_id=given["trigger"], view=MODAL)
    return await trigger(stage)


async def named_homes(stage: Stage) -> None:
    await stage.api.views_publish(user_id="U0BEN", view={**HOME, "external_id": "one"})


async def home(stage: Stage) -> None:
    await stage.api.views_publish(user_id="U0ADA", view=HOME)


async def reacted(stage: Stage) -> Json:
    given = await posted(stage)
    await stage.api.reactions_add(channel=CAMPAIGNS, timestamp=given["ts"], name="eyes")
    return given


async def many_reactions(stage: Stage) -> Json:
    given = await posted(stage)
    for number in range(50):
        await stage.people.react("#campaigns", "@ada", given["ts"], f"emoji_{number}")
    return given


async def uploaded(stage: Stage) -> Json:
    file = stage.emulator.slack.files.create("T0NORTHWIND", "U0ADA", "a.csv", now_s=0.0, content=b"x")
    return {"file": file.id}


async def disabled(stage: Stage) -> None:
    await stage.people.trouble_sockets("link_disabled")


async def granted(stage: Stage) -> Json:
    from bot.emulator.slack import Grant

    stage.emulator.slack.grants["code"] = Grant("T0HARBOR", "U0DANA", "http://127.0.0.1/x", ("chat:write",), 2e10)
    return {}


async def org_granted(stage: Stage) -> Json:
    from bot.emulator.seed import install_in_org
    from bot.emulator.slack import Grant

    slack = stage.emulator.slack
    places = [one for one in slack.workspaces.values() if one.org]
    install_in_org(places, "xoxb-org", scopes=("chat:write",), installer_id="U0NOOR")
    slack.grants["code"] = Grant(places[0].id, "U0NOOR", "http://127.0.0.1/x", ("chat:write",), 2e10)
    return {}


async def exchanged(stage: Stage) -> Json:
    answer = await stage.api.oauth_v2_exchange(token=TOKEN, **CLIENT)
    return {"token": answer["access_token"]}


async def revoked(stage: Stage) -> None:
    await stage.people.uninstall()


P = Provocation
NO_CHANNEL = P({"channel": NOWHERE, "ts": "1.1", "text": "x", "timestamp": "1.1", "name": "eyes", "message_ts": "1.1"})
STRANGER = P({"channel": ELSEWHERE, "text": "x", "ts": "1.1", **PERSON})
SAYS: dict[str, Provocation] = {
    "channel_not_found": NO_CHANNEL,
    "not_in_channel": STRANGER,
    "is_archived": P({"channel": CAMPAIGNS, "text": "x"}, archived),
    "no_text": P({"channel": CAMPAIGNS}),
    "markdown_text_conflict": P({"channel": CAMPAIGNS, "text": "x", "markdown_text": "y"}),
    "invalid_blocks": P({"channel": CAMPAIGNS, "blocks": DIVIDERS}),
    "invalid_blocks_format": P({"channel": CAMPAIGNS, "blocks": "nonsense"}),
    "invalid_attachments": P({"channel": CAMPAIGNS, "attachments": {}}),
    "invalid_metadata_format": P({"channel": CAMPAIGNS, "text": "x", "metadata": "nonsense"}),
    "invalid_metadata_schema": P({"channel": CAMPAIGNS, "text": "x", "metadata": {"event_type": "t"}}),
    "metadata_too_large": P({"channel": CAMPAIGNS, "text": "x", "metadata": NEWS}),
    "msg_blocks_too_long": P({"channel": CAMPAIGNS, "blocks": LONG_SECTIONS}),
    "too_many_attachments": P({"channel": CAMPAIGNS, "attachments": [{"text": "x"}] * 101}),
    "messages_tab_disabled": P({"channel": DIRECT, "text": "x"}, config={"messages_tab": False}),
    "cannot_reply_to_message": P({"channel": CAMPAIGNS, "text": "x", "thread_ts": "$ts"}, joined),
    "thread_not_found": P({"channel": CAMPAIGNS, "text": "x", "thread_ts": "1.1", **PERSON}),
    "restricted_action": P({"channel": CAMPAIGNS, "text": "x"}, restricted("nobody")),
    "restricted_action_read_only_channel": P({"channel": CAMPAIGNS, "text": "x"}, restricted("admins")),
    "restricted_action_thread_only_channel": P({"channel": CAMPAIGNS, "text": "x"}, restricted("threads_only")),
    "restricted_action_non_threadable_channel": P(
        {"channel": CAMPAIGNS, "text": "x", "thread_ts": "$ts"}, restricted("no_threads")
    ),
    "restricted_action_thread_locked": P({"channel": CAMPAIGNS, "text": "x", "thread_ts": "$ts", **PERSON}, locked),
}
"""What is wrong with a post in the same way for every method that posts."""

CHANGES: dict[str, Provocation] = {
    key: P({**SAYS[key].args, "ts": "$ts"}, posted)
    for key in (
        "no_text", "markdown_text_conflict", "invalid_blocks", "invalid_blocks_format", "invalid_attachments", "invalid_metadata_format",
        "invalid_metadata_schema", "metadata_too_large", "too_many_attachments",
    )
}  # fmt: skip
ON_STREAM: dict[str, Provocation] = {
    "channel_not_found": NO_CHANNEL,
    "not_in_channel": P({"channel": CAMPAIGNS, "ts": "$ts", "markdown_text": "x"}, removed),
    "is_archived": P({"channel": CAMPAIGNS, "ts": "$ts", "markdown_text": "x"}, archived_stream),
    "message_not_found": P({"channel": CAMPAIGNS, "ts": "1.1", "markdown_text": "x"}),
    "message_not_owned_by_app": P({"channel": CAMPAIGNS, "ts": "$ts", "markdown_text": "x"}, said),
    "message_not_in_streaming_state": P({"channel": CAMPAIGNS, "ts": "$ts", "markdown_text": "x"}, expired_stream),
    "stopped_by_user": P({"channel": CAMPAIGNS, "ts": "$ts", "markdown_text": "x"}, stopped),
    "invalid_chunks": P({"channel": CAMPAIGNS, "ts": "$ts", "chunks": [{"type": "dance"}]}, streaming),
}
THREAD: dict[str, Provocation] = {
    "channel_not_found": P(
        {"channel_id": NOWHERE, "thread_ts": "1.1", "status": "active", "title": "x", "prompts": []}
    ),
    "invalid_thread_ts": P(
        {"channel_id": CAMPAIGNS, "thread_ts": "1.1", "status": "x", "title": "x", "prompts": [{"message": "x"}]}
    ),
    "not_authorized": P({"channel_id": ELSEWHERE, "thread_ts": "1.1", "status": "active", "title": "x"}),
    "thread_ts_required": P({"channel_id": CAMPAIGNS, "status": "active", "title": "x"}),
    "session_not_found": P({"channel_id": CAMPAIGNS, "thread_ts": "$ts", "title": "x"}, posted),
    "invalid_status": P({"channel_id": CAMPAIGNS, "thread_ts": "1.1", "status": "dancing"}),
    "user_not_found": P(
        {"channel_id": CAMPAIGNS, "thread_ts": "$ts", "status": "active", "initiator_user_id": "U0DANA"}, posted
    ),
    "not_agent_app": P({"channel_id": DIRECT, "prompts": [{"message": "x"}]}, config={"agent": False}),
    "invalid_name": P({"channel_id": CAMPAIGNS, "thread_ts": "$ts", "title": "x" * 201}, streaming),
}
VIEW: dict[str, Provocation] = {
    "exchanged_trigger_id": P({"trigger_id": "$used", "view": MODAL}, opened),
    "expired_trigger_id": P({"trigger_id": "$trigger", "view": MODAL}, old_trigger),
    "invalid_trigger_id": P({"trigger_id": "1.2.3", "view": MODAL}),
    "view_too_large": P({"user_id": "U0ADA", "view_id": "$other", "view": HUGE}, opened),
    "duplicate_external_id": P(
        {"trigger_id": "$trigger", "view_id": "$other", "view": {**MODAL, "external_id": "one"}}, opened
    ),
}
LISTED: dict[str, Provocation] = {
    "invalid_cursor": P({"channel": CAMPAIGNS, "ts": "$ts", "cursor": "nonsense"}, posted),
    "invalid_limit": P({"channel": CAMPAIGNS, "limit": "many"}),
    "invalid_types": P({"types": "dance"}),
    "channel_not_found": NO_CHANNEL,
    "not_in_channel": P({"channel": ELSEWHERE, "ts": "1.1"}),
    "invalid_ts_latest": P({"channel": CAMPAIGNS, "ts": "$ts", "latest": "yesterday"}, said),
    "invalid_ts_oldest": P({"channel": CAMPAIGNS, "ts": "$ts", "oldest": "yesterday"}, said),
    "method_not_supported_for_channel_type": P({"channel": DIRECT}),
    "is_archived": P({"channel": CAMPAIGNS}, archived),
    "missing_scope": P({"types": "im", "channel": CAMPAIGNS, "ts": "1.1"}, scopes=("mpim:read", "mpim:history")),
}
REACTED: dict[str, Provocation] = {
    "channel_not_found": NO_CHANNEL,
    "invalid_name": P({"channel": CAMPAIGNS, "timestamp": "1.1", "name": "not a name"}),
    "message_not_found": P({"channel": CAMPAIGNS, "timestamp": "1.1", "name": "eyes"}),
    "no_item_specified": P({"channel": CAMPAIGNS, "name": "eyes"}),
    "is_archived": P({"channel": CAMPAIGNS, "timestamp": "$ts", "name": "eyes"}, archived),
    "already_reacted": P({"channel": CAMPAIGNS, "timestamp": "$ts", "name": "eyes"}, reacted),
    "no_reaction": P({"channel": CAMPAIGNS, "timestamp": "$ts", "name": "eyes"}, posted),
    "thread_locked": P({"channel": CAMPAIGNS, "timestamp": "$ts", "name": "eyes"}, locked),
    "too_many_emoji": P({"channel": CAMPAIGNS, "timestamp": "$ts", "name": "eyes"}, many_reactions),
}
CREDENTIALS: dict[str, Provocation] = {
    "invalid_client_id": P({**CLIENT, "client_id": "9"}),
    "bad_client_secret": P({**CLIENT, "client_secret": "no"}),
}
UNFURLS = {LINK: {"text": "x"}}
ROTATES: Json = {"token_rotation": True}

PROVOCATIONS: dict[str, dict[str, Provocation]] = {
    "agents.sessions.rename": THREAD,
    "agents.sessions.setStatus": THREAD,
    "apps.connections.open": {"forbidden_team": P({}, disabled)},
    "apps.event.authorizations.list": {"invalid_event_context": P({"event_context": "9-x"})},
    "apps.uninstall": CREDENTIALS,
    "assistant.search.context": {
        "missing_query": P({}),
        "query_too_long": P({"query": "x" * 1001}),
        "invalid_action_token": P({"query": "x", "action_token": "$token"}, old_mention),
        "invalid_cursor": P({"query": "x", "action_token": "$token", "cursor": "nonsense"}, mention),
        "context_channel_not_found": P(
            {"query": "x", "action_token": "$token", "context_channel_id": "G0PLANNING"}, mention
        ),
        "missing_scope": P({"query": "x", "channel_types": "private_channel"}),
    },
    "assistant.threads.setStatus": THREAD,
    "assistant.threads.setSuggestedPrompts": THREAD,
    "assistant.threads.setTitle": THREAD,
    "auth.teams.list": LISTED,
    "blocks.validate": {
        "invalid_arguments": P({"blocks": [], "view": MODAL}),
        "invalid_blocks": P({"blocks": DIVIDERS}),
        "invalid_message": P({"message": {"blocks": DIVIDERS}}),
        "invalid_view": P({"view": {"type": "modal"}}),
    },
    "bots.info": {"bot_not_found": P({"bot": "B0NOBODY"})},
    "chat.appendStream": ON_STREAM
    | {
        "no_text": P({"channel": CAMPAIGNS, "ts": "$ts"}, streaming),
        "msg_blocks_too_many": P(
            {"channel": CAMPAIGNS, "ts": "$ts", "chunks": [{"type": "blocks", "blocks": SECTION}]}, full_stream
        ),
    },
    "chat.delete": {
        "channel_not_found": NO_CHANNEL,
        "message_not_found": P({"channel": CAMPAIGNS, "ts": "1.1"}),
        "cant_delete_message": P({"channel": CAMPAIGNS, "ts": "$ts"}, said),
    },
    "chat.deleteScheduledMessage": {
        "channel_not_found": P({"channel": NOWHERE, "scheduled_message_id": "Q1"}),
        "invalid_scheduled_message_id": P({"channel": CAMPAIGNS, "scheduled_message_id": "Q1"}),
    },
    "chat.getPermalink": {
        "channel_not_found": NO_CHANNEL,
        "message_not_found": P({"channel": CAMPAIGNS, "message_ts": "1.1"}),
    },
    "chat.postEphemeral": {key: P({**one.args, "user": "U0ADA"}, one.before, one.config) for key, one in SAYS.items()}
    | {
        "msg_too_long": P({"channel": CAMPAIGNS, "user": "U0ADA", "text": "x" * 4001}),
        "user_not_in_channel": P({"channel": CAMPAIGNS, "user": "U0DANA", "text": "x"}),
    },
    "chat.postMessage": SAYS,
    "chat.scheduleMessage": {
        "channel_not_found": P({"channel": NOWHERE, "text": "x", "post_at": "$post_at"}, soon),
        "not_in_channel": P({"channel": ELSEWHERE, "text": "x", "post_at": "$post_at"}, soon),
        "is_archived": P({"channel": CAMPAIGNS, "text": "x", "post_at": "$post_at"}, soon_archived),
        "no_text": P({"channel": CAMPAIGNS, "post_at": "$post_at"}, soon),
        "restricted_action": P({"channel": CAMPAIGNS, "text": "x", "post_at": "$post_at"}, soon_restricted),
        "invalid_time": P({"channel": CAMPAIGNS, "text": "x", "post_at": "tomorrow"}),
        "time_in_past": P({"channel": CAMPAIGNS, "text": "x", "post_at": "1"}),
        "time_too_far": P({"channel": CAMPAIGNS, "text": "x", "post_at": "20000000000"}),
        "restricted_too_many": P({"channel": CAMPAIGNS, "text": "x", "post_at": "$post_at"}, fully_booked),
    },
    "chat.scheduledMessages.list": LISTED | {"invalid_channel": P({"channel": NOWHERE})},
    "chat.startStream": {key: P({**one.args, **PERSON}, one.before, one.config) for key, one in SAYS.items()}
    | {
        "invalid_chunks": P({"channel": CAMPAIGNS, "chunks": "nonsense", **PERSON}),
        "missing_recipient_team_id": P({"channel": CAMPAIGNS, "recipient_user_id": "U0ADA"}),
        "missing_recipient_user_id": P({"channel": CAMPAIGNS, "recipient_team_id": "T0NORTHWIND"}),
        "user_not_found": P({"channel": CAMPAIGNS, **PERSON, "recipient_user_id": "U0NOBODY"}),
        "msg_blocks_too_many": P(
            {
                "channel": CAMPAIGNS,
                "chunks": [{"type": "blocks", "blocks": [{"type": "divider"}] * 26}] * 2,
                **PERSON,
            }
        ),
    },
    "chat.stopStream": ON_STREAM
    | {
        "invalid_blocks": P({"channel": CAMPAIGNS, "ts": "$ts", "blocks": DIVIDERS}, streaming),
        "invalid_status": P({"channel": CAMPAIGNS, "ts": "$ts", "session_status": "dancing"}, streaming),
        "metadata_too_large": P({"channel": CAMPAIGNS, "ts": "$ts", "metadata": NEWS}, streaming),
    },
    "chat.unfurl": {
        "missing_unfurls": P({"channel": CAMPAIGNS, "ts": "1.1"}),
        "invalid_unfurls_format": P({"channel": CAMPAIGNS, "ts": "1.1", "unfurls": "nonsense"}),
        "cannot_parse_attachment": P({"channel": CAMPAIGNS, "ts": "1.1", "unfurls": {LINK: "text"}}),
        "missing_channel": P({"unfurls": UNFURLS}),
        "missing_ts": P({"channel": CAMPAIGNS, "unfurls": UNFURLS}),
        "cannot_find_channel": P({"channel": NOWHERE, "ts": "1.1", "unfurls": UNFURLS}),
        "cannot_find_message": P({"channel": CAMPAIGNS, "ts": "1.1", "unfurls": UNFURLS}),
        "cannot_unfurl_message": P({"channel": CAMPAIGNS, "ts": "$ts", "unfurls": UNFURLS}, posted),
        "cannot_unfurl_url": P(
            {"channel": CAMPAIGNS, "ts": "$ts", "unfurls": {"http://other.example/x": {"text": "x"}}}, said
        ),
        "missing_source": P({"unfurl_id": "Uf1", "unfurls": UNFURLS}),
        "missing_unfurl_id": P({"source": "composer", "unfurls": UNFURLS}),
        "invalid_source": P({"unfurl_id": "Uf1", "source": "dance", "unfurls": UNFURLS}),
        "invalid_unfurl_id": P({"unfurl_id": "Uf1", "source": "composer", "unfurls": UNFURLS}),
    },
    "chat.update": CHANGES
    | {
        "channel_not_found": NO_CHANNEL,
        "message_not_found": P({"channel": CAMPAIGNS, "ts": "1.1", "text": "x"}),
        "cant_update_message": P({"channel": CAMPAIGNS, "ts": "$ts", "text": "x"}, said),
        "msg_too_long": P({"channel": CAMPAIGNS, "ts": "$ts", "text": "x" * 4001}, posted),
        "streaming_state_conflict": P({"channel": CAMPAIGNS, "ts": "$ts", "text": "x"}, streaming),
        "is_inactive": P({"channel": CAMPAIGNS, "ts": "$ts", "text": "x"}, archived),
        "block_mismatch": P({"channel": CAMPAIGNS, "ts": "$ts", "blocks": SECTION}, rich),
        "edit_window_closed": P(
            {"channel": CAMPAIGNS, "ts": "$ts", "text": "x"}, hour_old, config={"edit_window_s": 60.0}
        ),
    },
    "conversations.history": LISTED,
    "conversations.info": LISTED,
    "conversations.join": LISTED,
    "conversations.leave": LISTED | {"cant_leave_general": P({"channel": "C0GENERAL"})},
    "conversations.list": LISTED,
    "conversations.members": LISTED,
    "conversations.open": {
        "channel_not_found": NO_CHANNEL,
        "users_list_not_supplied": P({}),
        "user_not_found": P({"users": "U0NOBODY"}),
        "too_many_users": P({"users": ",".join(["U0ADA"] * 9)}),
        "missing_scope": P({"users": "U0ADA"}, scopes=("mpim:write",)),
    },
    "conversations.replies": LISTED | {"thread_not_found": P({"channel": CAMPAIGNS, "ts": "1.1"})},
    "files.completeUploadExternal": {
        "file_not_found": P({"files": [{"id": "F0"}]}),
        "missing_argument": P({}),
        "invalid_channel": P({"files": [{"id": "$file"}], "channel_id": NOWHERE}, uploaded),
        "not_in_channel": P({"files": [{"id": "$file"}], "channel_id": ELSEWHERE}, uploaded),
        "invalid_blocks": P({"files": [{"id": "$file"}], "channel_id": CAMPAIGNS, "blocks": DIVIDERS}, uploaded),
    },
    "files.delete": {
        "file_not_found": P({"file": "F0"}),
        "cant_delete_file": P({"file": "$file"}, uploaded),
    },
    "files.getUploadURLExternal": {"missing_argument": P({"filename": "a.csv", "length": "0"})},
    "files.info": {"file_not_found": P({"file": "F0"})},
    "oauth.v2.access": CREDENTIALS
    | {
        "invalid_code": P({**CLIENT, "code": "no"}),
        "invalid_grant_type": P({**CLIENT, "grant_type": "password"}),
        "invalid_refresh_token": P({**CLIENT, "grant_type": "refresh_token", "refresh_token": "no"}),
        "bad_redirect_uri": P({**CLIENT, "code": "code", "redirect_uri": "http://elsewhere/"}, granted),
        "cannot_install_an_org_installed_app": P({**CLIENT, "code": "code"}, org_granted, {"grid": True}),
    },
    "oauth.v2.exchange": CREDENTIALS
    | {
        "token_rotation_not_enabled": P({**CLIENT, "token": TOKEN}),
        "invalid_token": P({**CLIENT, "token": "no"}, config=ROTATES),
        "token_already_exchanged": P({**CLIENT, "token": "$token"}, exchanged, ROTATES),
        "authorization_not_found": P({**CLIENT, "token": TOKEN}, revoked, ROTATES),
    },
    "reactions.add": REACTED,
    "reactions.get": REACTED,
    "reactions.remove": REACTED,
    "team.info": {"team_not_found": P({"team": "T0NOWHERE"})},
    "users.conversations": LISTED,
    "users.info": {"user_not_found": P({"user": "U0NOBODY"})},
    "users.list": LISTED,
    "users.lookupByEmail": {"users_not_found": P({"email": "x@y.example"})},
    "users.profile.get": {"user_not_found": P({"user": "U0NOBODY"})},
    "views.open": VIEW,
    "views.publish": VIEW
    | {
        "hash_conflict": P({"user_id": "U0ADA", "view": HOME, "hash": "old"}, home),
        "not_enabled": P({"user_id": "U0ADA", "view": HOME}, config={"home_tab": False}),
        "duplicate_external_id": P({"user_id": "U0ADA", "view": {**HOME, "external_id": "one"}}, named_homes),
    },
    "views.push": VIEW
    | {
        "not_found": P({"trigger_id": "$trigger", "view": MODAL}, trigger),
        "push_limit_reached": P({"trigger_id": "$trigger", "view": MODAL}, piled_up),
    },
    "views.update": VIEW
    | {
        "hash_conflict": P({"view_id": "$view", "view": MODAL, "hash": "old"}, opened),
        "not_found": P({"view_id": "V0", "view": MODAL}),
    },
}
"""A family of methods shares its table; what a method's row in slack_methods.py does not name is not asked of it."""


def filled(value: Any, given: Json) -> Any:
    """`value` with each text that begins with a dollar sign replaced by what was prepared."""
    if isinstance(value, dict):
        return {key: filled(each, given) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, given) for each in value]
    return given[value[1:]] if isinstance(value, str) and value.startswith("$") else value
