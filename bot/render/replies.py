"""Answers by a command's `response_url`: five uses within thirty minutes, also in channels the app is not in."""

import structlog
from slack_sdk.webhook.async_client import AsyncWebhookClient

from agent.channel import ChannelGoneError, ChannelUnavailableError
from bot.render.posting import NO_BLOCKS, UNKNOWN, Post


async def tell(url: str, text: str) -> None:
    """Tell whoever typed or clicked a few words. Best effort: whatever they are about stands, or not, without them."""
    if not url:
        return
    try:
        client = AsyncWebhookClient(url, timeout=5, retry_handlers=[])
        response = await client.send(text=text, response_type="ephemeral", replace_original=False)
    except UNKNOWN as error:
        structlog.get_logger().warning("person_not_told", error=f"{type(error).__name__}: {error}")
        return
    if response.status_code >= 400:
        structlog.get_logger().warning("person_not_told", error=f"{response.status_code}: {response.body[:80]}")


async def reply(url: str, post: Post) -> None:
    """Tell whoever typed the command, and nobody else. Raises ChannelUnavailableError, ChannelGoneError."""
    client = AsyncWebhookClient(url, timeout=5, retry_handlers=[])
    try:
        response = await client.send(text=post.text, blocks=list(post.blocks), response_type="ephemeral")
        if response.status_code >= 400 and any(code in response.body for code in NO_BLOCKS):
            response = await client.send(text=post.plain[:3000], response_type="ephemeral")
    except UNKNOWN as error:
        raise ChannelUnavailableError(f"Slack did not answer: {type(error).__name__}", retry_after_s=1) from error
    if response.status_code >= 500 or response.status_code == 429:
        raise ChannelUnavailableError(f"Slack: {response.status_code}", retry_after_s=1)
    if response.status_code >= 400:
        raise ChannelGoneError(f"the command's reply address is used up: {response.body[:80]}")
