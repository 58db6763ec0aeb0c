"""What Bolt's OAuth flow keeps, over our own stores: states, valid once and on every replica, and the installations they lead to."""

import secrets
from datetime import timedelta
from logging import Logger, getLogger
from typing import Any

from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.installation_store.models.bot import Bot
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore

from bot.installs import Installs, tenant_named
from workflows.storage import Column, Delete, Insert, Is, Store, Table

STATES = Table(
    "oauth_states",
    (Column("state", "text"), Column("expires_at", "time")),
    ("state",),
    shared=True,  # an install begins before anybody knows for which workspace
)
STATE_LIFETIME = timedelta(minutes=10)


class InstallationStore(AsyncInstallationStore):
    """What Bolt's OAuth flow saves to."""

    def __init__(self, installs: Installs) -> None:
        self._installs = installs

    @property
    def logger(self) -> Logger:
        return getLogger(__name__)

    async def async_save(self, installation: Installation) -> None:
        await self._installs.install(installation)

    async def async_find_bot(
        self, *, enterprise_id: str | None, team_id: str | None, is_enterprise_install: bool | None = False
    ) -> Bot | None:
        found = await self._installs.credentials(tenant_named(team_id, enterprise_id, is_enterprise_install))
        if found is None:
            return None
        return Bot(
            bot_token=found.token, bot_id=found.bot_id, bot_user_id=found.bot_user_id, team_id=team_id, enterprise_id=enterprise_id,
            installed_at=0.0,
        )  # fmt: skip


class StateStore(AsyncOAuthStateStore):
    """OAuth states in the shared store: single use, ten minutes, valid on every replica."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def logger(self) -> Logger:
        return getLogger(__name__)

    async def async_issue(self, *args: Any, **kwargs: Any) -> str:
        state = secrets.token_urlsafe(32)
        now = await self._store.now()
        await self._store.write(
            Delete(STATES, {"expires_at": Is("<", now)}),
            Insert(STATES, {"state": state, "expires_at": now + STATE_LIFETIME}),
        )
        return state

    async def async_consume(self, state: str) -> bool:
        where = {"state": state, "expires_at": Is(">", await self._store.now())}
        return await self._store.write(Delete(STATES, where)) == 1
