"""Checkups: whether the app is still in the workspaces that have it.

Slack tells of a removal by events alone, and all their deliveries may fail. So each workspace's token is tried once a day, and soon after
Slack has refused it. One answer may be wrong: a workspace has removed the app when two in a row, minutes apart, say so.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import structlog
from slack_sdk.web.async_client import AsyncWebClient

from bot.clients import CredentialSource, CredentialsUnavailableError, TokenRefusedError, works
from workflows.storage import Column, Delete, Insert, Is, Select, Store, Table, Update, Write

CHECKUPS = Table(
    "checkups",
    (
        Column("workspace", "text"),
        Column("due_at", "time"),
        Column("asked_at", "time"),
        Column("refused", "int", default=0),  # how often in a row
    ),
    ("workspace",),
    shared=True,  # the clock looks for those that are due in all workspaces
)
EVERY = timedelta(days=1)
AGAIN = timedelta(minutes=5)
"""Between two looks at the same workspace at least, whatever Slack refuses meanwhile."""
ENOUGH = 2
BATCH = 10
"""Workspaces of one round of the clock, asked side by side: other sweeps have their turn within a time-out."""
TIMEOUT_S = 3

Leave = Callable[[str, str], Awaitable[None]]
"""Ends what is done in a workspace, whose token Slack takes no more."""


def enrolled(workspace: str, now: datetime) -> Write:
    """The write that goes with an installation: from now on it is looked after."""
    values = {"workspace": workspace, "due_at": now + EVERY, "asked_at": now - AGAIN, "refused": 0}
    return Insert(CHECKUPS, values, on_conflict="replace")


class Checkups:
    """Looks after the workspaces that have the app, and ends what is done in those that have removed it unheard."""

    def __init__(self, store: Store, source: CredentialSource, leave: Leave, *, api_url: str) -> None:
        self._store = store
        self._source = source
        self._leave = leave
        self._api_url = api_url

    async def enrol(self, workspace: str) -> None:
        """Look after a workspace that is in no installation. Raises StoreUnavailableError."""
        await self._store.write(enrolled(workspace, await self._store.now()))

    async def sooner(self, workspace: str) -> None:
        """Slack has refused its token: look soon, unless that was done just now. Raises StoreUnavailableError."""
        now = await self._store.now()
        not_now = {"workspace": workspace, "asked_at": Is("<=", now - AGAIN), "due_at": Is(">", now)}
        await self._store.write(Update(CHECKUPS, not_now, {"due_at": now}))

    async def sweep(self) -> int:
        """A sweep for the clock; returns how many workspaces have turned out to have removed the app."""
        now = await self._store.now()
        due = await self._store.read(Select(CHECKUPS, {"due_at": Is("<=", now)}, order=("due_at",), limit=BATCH))
        return sum(await asyncio.gather(*(self._checked(row, now) for row in due)))

    async def _checked(self, row: dict[str, Any], now: datetime) -> bool:
        """Look at one, if no other clock does. Whatever stands in the way, the next look is in `AGAIN`."""
        if not await self._store.write(Update(CHECKUPS, row, {"asked_at": now, "due_at": now + AGAIN})):
            return False
        try:
            known = await self._source.credentials(row["workspace"])
            if known is None and not await self._source.installed(row["workspace"]):
                await self._store.write(Delete(CHECKUPS, {"workspace": row["workspace"], "asked_at": now}))
                return False  # its removal was cut off before this row went
            token = known.token if known else ""
            taken = known is None or await works(self._client(token))
        except TokenRefusedError:
            token, taken = "", False
        except CredentialsUnavailableError as error:
            structlog.get_logger().info("checkup_put_off", tenant=row["workspace"], reason=str(error))
            return False
        return await self._concluded(row, token, taken=taken, now=now)

    async def _concluded(self, row: dict[str, Any], token: str, *, taken: bool, now: datetime) -> bool:
        workspace, refused = row["workspace"], 0 if taken else row["refused"] + 1
        if refused >= ENOUGH:
            structlog.get_logger().warning("app_found_removed", tenant=workspace)
            await self._leave(workspace, token)
            return True
        again = {"refused": refused} if refused else {"refused": 0, "due_at": now + EVERY}
        await self._store.write(Update(CHECKUPS, {"workspace": workspace, "asked_at": now}, again))
        return False

    def _client(self, token: str) -> AsyncWebClient:
        return AsyncWebClient(token=token, base_url=self._api_url, timeout=TIMEOUT_S, retry_handlers=[])
