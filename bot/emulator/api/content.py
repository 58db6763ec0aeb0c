"""What a message is to say: text, Markdown or blocks, checked against Slack's limits."""

import json
from dataclasses import dataclass, field

from bot.emulator.api.call import Call
from bot.emulator.blocks import MAX_MARKDOWN_CHARS, check_blocks
from bot.emulator.errors import SlackError
from bot.emulator.posting import with_block_ids
from bot.emulator.workspace import Json

MAX_TEXT_CHARS = 40_000
MAX_METADATA_BYTES = 8_000


@dataclass(frozen=True, slots=True)
class Content:
    """The checked arguments of a post or an update. None means: the caller said nothing about it."""

    text: str
    blocks: list[Json] | None
    attachments: list[Json] | None
    metadata: Json | None
    markdown: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def note(self) -> Json:
        """The part of the answer that carries warnings."""
        if not self.warnings:
            return {}
        return {"warning": ",".join(self.warnings), "response_metadata": {"warnings": self.warnings}}


def content(call: Call) -> Content:
    """Read and check what a message says.

    Raises:
        SlackError: no_text, markdown_text_conflict, invalid_blocks and the other limits.

    """
    text, markdown = call.text("text"), call.text("markdown_text")
    blocks, attachments = _blocks(call), _attachments(call)
    if markdown and (text or blocks):
        raise SlackError("markdown_text_conflict")
    if not (text or markdown or blocks or attachments):
        raise SlackError("no_text")
    if len(markdown) > MAX_MARKDOWN_CHARS:
        raise SlackError("msg_too_long")
    if markdown:
        block = {"type": "markdown", "text": markdown}
        return Content(markdown, with_block_ids([block]), attachments, metadata(call), markdown=True)
    long = len(text) > MAX_TEXT_CHARS
    warnings = ["message_truncated"] if long else []
    return Content(text[:MAX_TEXT_CHARS], blocks, attachments, metadata(call), warnings=warnings)


def metadata(call: Call) -> Json | None:
    """`{event_type, event_payload}`; an empty object asks an update to remove it."""
    value = call.structure("metadata", "invalid_metadata_format")
    if value is None:
        return None
    if value == {}:
        return {}
    if not isinstance(value, dict) or not isinstance(value.get("event_type"), str):
        raise SlackError("invalid_metadata_format")
    if not isinstance(value.get("event_payload"), dict):
        raise SlackError("invalid_metadata_schema")
    if len(json.dumps(value).encode()) > MAX_METADATA_BYTES:
        raise SlackError("metadata_too_large")
    return {"event_type": value["event_type"], "event_payload": value["event_payload"]}


def _blocks(call: Call) -> list[Json] | None:
    blocks = call.structure("blocks", "invalid_blocks_format")
    return None if blocks is None else with_block_ids(check_blocks(blocks))


def _attachments(call: Call) -> list[Json] | None:
    attachments = call.structure("attachments", "invalid_attachments")
    if attachments is None:
        return None
    if not isinstance(attachments, list):
        raise SlackError("invalid_attachments")
    if len(attachments) > 100:
        raise SlackError("too_many_attachments")
    return attachments
