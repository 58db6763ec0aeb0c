"""What Slack refuses of a workspace's calls, and what follows beside the caller's own error."""

import asyncio

import structlog
from slack_sdk.errors import SlackApiError

from bot.checkups import Checkups
from bot.clients import REVOKED, code_of

LIMIT = 1_000
"""Lacks that are remembered, so that each is told once."""


class Refusals:
    """Hears of refused calls: a refused token is looked into, a scope that was not granted is told an operator once."""

    def __init__(self, checkups: Checkups) -> None:
        self._checkups = checkups
        self._lacking: set[tuple[str, str]] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def heard(self, tenant: str, method: str, error: SlackApiError) -> None:
        """A call of a tenant's was refused; its caller gets the error, too."""
        code = code_of(error)
        if code in REVOKED and tenant not in self._tasks:
            self._tasks[tenant] = task = asyncio.create_task(self._checkups.sooner(tenant))
            task.add_done_callback(lambda task: self._ended(tenant, task))
        elif code == "missing_scope":
            self._told(tenant, method, str(error.response.get("needed") or ""))

    async def close(self) -> None:
        """Wait for what is being written."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _ended(self, tenant: str, task: asyncio.Task[None]) -> None:
        self._tasks.pop(tenant, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            structlog.get_logger().warning("checkup_not_asked_for", tenant=tenant, error=str(error))

    def _told(self, tenant: str, method: str, needed: str) -> None:
        if (tenant, needed) in self._lacking:
            return
        if len(self._lacking) >= LIMIT:
            self._lacking.clear()
        self._lacking.add((tenant, needed))
        structlog.get_logger().warning(
            "scope_missing", tenant=tenant, method=method, needed=needed, do="an admin has to install the app again"
        )
