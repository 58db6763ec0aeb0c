"""The Web API as this product needs it: which methods there are, and of each its scopes, tier, required arguments and errors.

Derived from docs.slack.dev/reference/methods (November 2026). Scopes: any one is enough. Tier 5 stands for a limit of its own.
Errors are those that a local Slack can bring about, beyond COMMON; what only a fault can, is not listed. Where Slack has its own word
for a missing argument, that word is among the errors and the argument is not.
"""

from dataclasses import dataclass

COMMON = {
    "account_inactive", "fatal_error", "internal_error", "invalid_arguments", "invalid_auth", "invalid_json", "json_not_object",
    "missing_argument", "missing_scope", "not_allowed_token_type", "not_authed", "ratelimited", "service_unavailable",
    "team_access_not_granted", "team_not_found", "token_expired", "token_revoked", "unknown_method",
}  # fmt: skip
"""Errors that any method may answer with."""

OBSERVED = {"thread_not_found", "markdown_text_conflict", "msg_too_long", "invalid_status", "invalid_attachments"}
"""Given by methods that do not document them; reported by developers."""

NO_METHOD = {"expired_url", "used_url"}
"""Answers of response URLs."""

TABLE = """
agents.sessions.rename               | chat:write | 3 | channel_id title | channel_not_found invalid_name not_authorized session_not_found thread_ts_required
agents.sessions.setStatus            | chat:write | 3 | channel_id status | channel_not_found invalid_status not_authorized thread_ts_required user_not_found
api.test                             | | 4 | |
apps.connections.open                | | 3 | | forbidden_team
apps.event.authorizations.list       | | 5 | event_context | invalid_event_context
apps.uninstall                       | | 1 | | bad_client_secret invalid_client_id
assistant.search.context             | search:read.files search:read.public search:read.users | 5 | | context_channel_not_found invalid_action_token invalid_cursor missing_query missing_scope query_too_long
assistant.threads.setStatus          | assistant:write chat:write | 5 | channel_id status thread_ts | channel_not_found invalid_thread_ts
assistant.threads.setSuggestedPrompts | assistant:write | 4 | channel_id prompts | channel_not_found invalid_thread_ts not_agent_app
assistant.threads.setTitle           | assistant:write | 4 | channel_id thread_ts title | channel_not_found invalid_thread_ts
auth.revoke                          | | 3 | |
auth.teams.list                      | | 2 | | invalid_cursor invalid_limit
auth.test                            | | 5 | |
blocks.validate                      | | 5 | | invalid_arguments invalid_blocks invalid_message invalid_view
bots.info                            | users:read | 3 | | bot_not_found
chat.appendStream                    | chat:write | 4 | channel ts | channel_not_found invalid_chunks is_archived message_not_found message_not_in_streaming_state message_not_owned_by_app msg_blocks_too_many no_text not_in_channel stopped_by_user
chat.delete                          | chat:write | 3 | channel ts | cant_delete_message channel_not_found message_not_found
chat.deleteScheduledMessage          | chat:write | 3 | channel scheduled_message_id | channel_not_found invalid_scheduled_message_id
chat.getPermalink                    | | 5 | channel message_ts | channel_not_found message_not_found
chat.postEphemeral                   | chat:write | 4 | channel user | cannot_reply_to_message channel_not_found invalid_attachments invalid_blocks invalid_blocks_format is_archived markdown_text_conflict messages_tab_disabled msg_too_long no_text not_in_channel restricted_action too_many_attachments user_not_in_channel
chat.postMessage                     | chat:write | 5 | channel | cannot_reply_to_message channel_not_found invalid_blocks invalid_blocks_format invalid_metadata_format invalid_metadata_schema is_archived markdown_text_conflict messages_tab_disabled metadata_too_large msg_blocks_too_long no_text not_in_channel restricted_action restricted_action_non_threadable_channel restricted_action_read_only_channel restricted_action_thread_locked restricted_action_thread_only_channel thread_not_found too_many_attachments
chat.scheduleMessage                 | chat:write | 3 | channel post_at | channel_not_found invalid_time is_archived no_text not_in_channel restricted_action restricted_too_many time_in_past time_too_far
chat.scheduledMessages.list          | | 3 | | invalid_channel invalid_cursor
chat.startStream                     | chat:write | 2 | channel | channel_not_found invalid_chunks is_archived messages_tab_disabled missing_recipient_team_id missing_recipient_user_id msg_blocks_too_many not_in_channel restricted_action_thread_locked thread_not_found user_not_found
chat.stopStream                      | chat:write | 2 | channel ts | channel_not_found invalid_blocks invalid_chunks invalid_status is_archived message_not_found message_not_in_streaming_state message_not_owned_by_app metadata_too_large not_in_channel stopped_by_user
chat.unfurl                          | links:write | 3 | | cannot_find_channel cannot_find_message cannot_parse_attachment cannot_unfurl_message cannot_unfurl_url invalid_source invalid_unfurl_id invalid_unfurls_format missing_channel missing_source missing_ts missing_unfurl_id missing_unfurls
chat.update                          | chat:write | 3 | channel ts | block_mismatch cant_update_message channel_not_found edit_window_closed invalid_attachments invalid_blocks invalid_blocks_format invalid_metadata_format invalid_metadata_schema is_inactive markdown_text_conflict message_not_found metadata_too_large msg_too_long no_text streaming_state_conflict too_many_attachments
conversations.history                | channels:history groups:history im:history mpim:history | 3 | channel | channel_not_found invalid_cursor invalid_ts_latest invalid_ts_oldest not_in_channel
conversations.info                   | channels:read groups:read im:read mpim:read | 3 | channel | channel_not_found missing_scope
conversations.join                   | channels:join | 3 | channel | channel_not_found is_archived method_not_supported_for_channel_type
conversations.leave                  | channels:manage channels:write groups:write im:write mpim:write | 3 | channel | cant_leave_general channel_not_found is_archived method_not_supported_for_channel_type
conversations.list                   | channels:read groups:read im:read mpim:read | 2 | | invalid_cursor invalid_limit invalid_types missing_scope
conversations.members                | channels:read groups:read im:read mpim:read | 4 | channel | channel_not_found invalid_cursor invalid_limit
conversations.open                   | channels:manage groups:write im:write mpim:write | 3 | | channel_not_found missing_scope too_many_users user_not_found users_list_not_supplied
conversations.replies                | channels:history groups:history im:history mpim:history | 3 | channel ts | channel_not_found invalid_cursor invalid_ts_latest invalid_ts_oldest missing_scope not_in_channel thread_not_found
emoji.list                           | emoji:read | 2 | |
files.completeUploadExternal         | files:write | 4 | | file_not_found invalid_blocks invalid_channel missing_argument not_in_channel
files.delete                         | files:write | 3 | file | cant_delete_file file_not_found
files.getUploadURLExternal           | files:write | 4 | | missing_argument
files.info                           | files:read | 4 | file | file_not_found
files.list                           | files:read | 3 | |
oauth.v2.access                      | | 5 | | bad_client_secret bad_redirect_uri cannot_install_an_org_installed_app invalid_client_id invalid_code invalid_grant_type invalid_refresh_token
oauth.v2.exchange                    | | 5 | | authorization_not_found bad_client_secret invalid_client_id invalid_token token_already_exchanged token_rotation_not_enabled
reactions.add                        | reactions:write | 3 | channel | already_reacted channel_not_found invalid_name is_archived message_not_found no_item_specified thread_locked too_many_emoji
reactions.get                        | reactions:read | 3 | | channel_not_found message_not_found no_item_specified
reactions.remove                     | reactions:write | 2 | | channel_not_found invalid_name message_not_found no_item_specified no_reaction
team.info                            | team:read | 3 | | team_not_found
usergroups.list                      | usergroups:read | 2 | |
users.conversations                  | channels:read groups:read im:read mpim:read | 3 | | invalid_cursor invalid_limit invalid_types missing_scope
users.info                           | users:read | 4 | user | user_not_found
users.list                           | users:read | 2 | | invalid_cursor
users.lookupByEmail                  | users:read.email | 3 | email | users_not_found
users.profile.get                    | users.profile:read | 4 | | user_not_found
views.open                           | | 4 | view | duplicate_external_id exchanged_trigger_id expired_trigger_id invalid_trigger_id view_too_large
views.publish                        | | 4 | user_id view | duplicate_external_id hash_conflict not_enabled view_too_large
views.push                           | | 4 | view | duplicate_external_id exchanged_trigger_id expired_trigger_id invalid_trigger_id not_found push_limit_reached view_too_large
views.update                         | | 4 | view | duplicate_external_id hash_conflict not_found view_too_large
"""


@dataclass(frozen=True)
class Row:
    scopes: frozenset[str]
    tier: int
    required: tuple[str, ...]
    errors: tuple[str, ...]


def _rows() -> dict[str, Row]:
    found = {}
    for line in TABLE.strip().splitlines():
        name, scopes, tier, required, errors = (cell.strip() for cell in line.split("|"))
        found[name] = Row(frozenset(scopes.split()), int(tier), tuple(required.split()), tuple(errors.split()))
    return found


METHODS = _rows()
