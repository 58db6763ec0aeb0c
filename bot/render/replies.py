"""Answers by a command's `response_url`: five uses within thirty minutes, also in channels the app is not in."""

from typing import Any

import structlog
from slack_sdk.webhook import WebhookResponse
from slack_sdk.webhook.async_client import AsyncWebhookClient

from agent.channel import ChannelGoneError, ChannelUnavailableError
from bot.broadcasts import neutral, quiet
from bot.render.parts import parts
from bot.render.posting import Post
from bot.render.refusals import REFUSED_FORMS, UNKNOWN

REPLY_LIMIT = 3_000
"""Characters of one reply without blocks."""
CUT = "The rest does not fit into these replies. Invite me to the channel, and I post all of it."
REPLIES = 4
"""A fifth use of the address is left for what the command itself said."""


async def tell(url: str, text: str) -> None:
    """Tell whoever typed or clicked a few words. Best effort: whatever they are about stands, or not, without them."""
    if not url:
        return
    try:
        client = AsyncWebhookClient(url, timeout=5, retry_handlers=[])
        response = await client.send(text=neutral(text), response_type="ephemeral", replace_original=False)
    except UNKNOWN as error:
        structlog.get_logger().warning("person_not_told", error=f"{type(error).__name__}: {error}")
        return
    if response.status_code >= 400:
        structlog.get_logger().warning("person_not_told", error=f"{response.status_code}: {response.body[:80]}")


async def reply(url: str, post: Post) -> None:
    """Tell whoever typed the command, and nobody else. Raises ChannelUnavailableError, ChannelGoneError."""
    client = AsyncWebhookClient(url, timeout=5, retry_handlers=[])
    for shown in (*(form for form in post.forms if "blocks" in form), *_in_words(post.plain or post.text)):
        response = await _answered(client, shown)
        if response.status_code >= 400 and not (
            "blocks" in shown and any(code in response.body for code in REFUSED_FORMS)
        ):
            raise ChannelGoneError(f"the command's reply address is used up: {response.body[:80]}")
        if response.status_code < 400 and "blocks" in shown:
            return


def _in_words(text: str) -> list[dict[str, Any]]:
    """As many replies as the address takes."""
    pieces = parts(text, REPLY_LIMIT)
    if len(pieces) > REPLIES:
        pieces = [*pieces[: REPLIES - 1], f"{pieces[REPLIES - 1]}\n{CUT}"]
    return [{"text": each} for each in pieces]


async def _answered(client: AsyncWebhookClient, shown: dict[str, Any]) -> WebhookResponse:
    try:
        response = await client.send(response_type="ephemeral", replace_original=False, **quiet(shown))
    except UNKNOWN as error:
        raise ChannelUnavailableError(f"Slack did not answer: {type(error).__name__}", retry_after_s=1) from error
    if response.status_code >= 500 or response.status_code == 429:
        raise ChannelUnavailableError(f"Slack: {response.status_code}", retry_after_s=1)
    return response
