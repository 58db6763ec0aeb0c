"""Whether the app is in a channel: only where it is can it post."""

import asyncio

import structlog
from slack_sdk.errors import SlackApiError

from bot.clients import Clients, code_of

ANSWER_S = 1.5
"""Commands wait for it, and Slack waits three seconds for those."""
ABSENT = frozenset({"not_in_channel", "channel_not_found"})


class Membership:
    """Asks Slack by reading: an app reads no channel it is not in, and needs no further scope for it."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def absent(self, tenant: str, channel: str) -> bool:
        """Whether the app is not in a channel, as far as Slack tells now."""
        try:
            async with asyncio.timeout(ANSWER_S):
                client = await self._clients.of(tenant)
                await client.conversations_history(channel=channel, limit=1)
        except SlackApiError as error:
            return code_of(error) in ABSENT
        except Exception as error:
            structlog.get_logger().warning("membership_unknown", error=f"{type(error).__name__}: {error}")
        return False
