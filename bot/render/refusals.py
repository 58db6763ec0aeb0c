"""What Slack means when it does not do what it was asked: said here once, for every method.

It may be asked again later (ChannelUnavailableError), or the place is gone (ChannelGoneError). Any other `SlackApiError` is for good: in this form,
if its code is in REFUSED_FORMS, else altogether. Codes from docs.slack.dev/reference/methods.
"""

import asyncio

import aiohttp
from slack_sdk.errors import SlackApiError

from agent.channel import ChannelGoneError, ChannelUnavailableError
from bot.clients import code_of

LOST = {
    "app_access_restricted": "the admins have restricted who may use me there",
    "channel_not_found": "it is deleted, or I may not see it",
    "ekm_access_denied": "the admins have switched off messages there",
    "is_archived": "it is archived",
    "is_inactive": "it is archived",
    "messages_tab_disabled": "messages from me are switched off there",
    "not_in_channel": "I am not a member of it any more",
    "restricted_action": "I am not allowed to post there",
    "restricted_action_non_threadable_channel": "nobody may answer in threads there",
    "restricted_action_read_only_channel": "only some people may post there",
    "restricted_action_thread_only_channel": "only answers in threads may be posted there",
    "team_access_not_granted": "its workspace has not been given to me",
    "team_not_found": "I am not in its workspace",
}
"""What is the matter with a channel, by Slack's word for it. What is left in GONE is the matter with the app, or with a thread."""
GONE = LOST.keys() | {
    "account_inactive",
    "cannot_reply_to_message",
    "invalid_auth",
    "restricted_action_thread_locked",
    "thread_not_found",
    "token_revoked",
}
LATER = {
    "external_channel_migrating",
    "fatal_error",
    "internal_error",
    "messaging_processing_failed",
    "not_json",
    "org_login_required",  # while a workspace moves into an organization
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
}
"""Slack's own trouble, that passes. Whether it did what it was asked is not known. What fails in one message or file alone is not among it."""
LIMITED = {"message_limit_exceeded", "rate_limited", "ratelimited"}
REFUSED_FORMS = {
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "markdown_text_conflict",
    "msg_blocks_too_long",
    "msg_blocks_too_many",
    "msg_too_long",
}
"""What Slack refuses in one form and may take in another one."""
DENIED = {"posting_to_channel_denied": "I am not allowed to post there"}
"""What is the matter with a channel, where it is a message that is refused and not a file."""
FILES = {
    "file_type_not_allowed": "files of this kind are not allowed here",
    "file_upload_size_restricted": "it is larger than files may be here",
    "file_uploads_disabled": "file uploads are switched off here",
    "file_uploads_except_images_disabled": "only pictures may be uploaded here",
    "invalid_channel": "it can't be shared in this channel",
    "missing_scope": "I may not share files here until an admin installs me again",
    "posting_to_channel_denied": "I may not share files in this channel",
    "storage_limit_reached": "the workspace has no room left for files",
}
"""Why a file is refused, by Slack's word for it."""
UNKNOWN = (aiohttp.ClientError, asyncio.TimeoutError, OSError)
"""Failures after which nobody knows whether Slack committed."""


class FileRefusedError(Exception):
    """Slack takes a file neither now nor later: its words have to be shown otherwise. `code` is Slack's word for why."""

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refuses the file: {code}")
        self.code = code

    @property
    def why(self) -> str:
        """The reason, for people."""
        return FILES.get(self.code, f"Slack says: {self.code}")


def meaning(error: SlackApiError) -> Exception:
    """The error to raise for Slack's answer: `error` itself where it is for good."""
    code, status = code_of(error), error.response.status_code
    if status == 429 or code in LIMITED:
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return ChannelUnavailableError(
            "Slack asks to wait", retry_after_s=_seconds(headers.get("retry-after", "")), maybe_posted=False
        )
    if code == "token_expired":  # remembered past its end, on a machine that slept: the next look refreshes it
        return ChannelUnavailableError("Slack: token_expired", retry_after_s=1.0, maybe_posted=False)
    if code in GONE:
        return ChannelGoneError(f"Slack: {code}", place=LOST.get(code, ""))
    if status >= 500 or code in LATER:
        return ChannelUnavailableError(f"Slack: {code or status}", retry_after_s=0.5)
    return error


def _seconds(text: str) -> float:
    """Retry-After in seconds; a date, or nothing, counts as a minute."""
    try:
        return float(text)
    except ValueError:
        return 60.0
