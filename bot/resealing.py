"""Tokens sealed with an old key are sealed with the current one, so that the old key can be retired."""

from datetime import datetime, timedelta
from typing import Any

import structlog

from bot.checkups import CHECKUPS
from bot.installs import INSTALLATIONS
from bot.keyring import Keyring, KeyringError
from workflows.storage import Is, Select, Store, Update

AGAIN = timedelta(hours=1)
"""After the last workspace of a pass: in a deploy, processes of the version before still seal with their own key."""
BATCH = 50
SEALED = ("token", "refresh_token")


class Resealing:
    """Goes through the installations, again and again, some at a time. Any number of clocks may."""

    def __init__(self, store: Store, keyring: Keyring) -> None:
        self._store = store
        self._keyring = keyring
        self._after = ""
        self._left = 0
        self._due: datetime | None = None

    async def sweep(self) -> int:
        """A sweep for the clock; returns how many installations were sealed anew. Raises StoreUnavailableError."""
        now = await self._store.now()
        if self._due is not None and now < self._due:
            return 0
        where = {"workspace": Is(">", self._after)}
        rows = await self._store.read(Select(CHECKUPS, where, order=("workspace",), limit=BATCH))
        done = 0
        for row in rows:
            done += await self._resealed(row["workspace"])
            self._after = row["workspace"]
        if len(rows) < BATCH:
            structlog.get_logger().info("tokens_looked_through", key=self._keyring.current, under_old_keys=self._left)
            self._after, self._left, self._due = "", 0, now + AGAIN
        return done

    async def _resealed(self, tenant: str) -> int:
        """One installation. Of one that is being refreshed the pair is known by its sealed text, and will have the current key anyway."""
        rows = await self._store.read(Select(INSTALLATIONS, {"tenant": tenant, "removed_at": None}))
        if not rows or all(self._keyring.is_current(rows[0][column]) for column in SEALED if rows[0][column]):
            return 0
        same = {"tenant": tenant, "refreshing_until": None, **{column: rows[0][column] for column in SEALED}}
        try:
            anew = self._anew(rows[0])
        except KeyringError as error:
            structlog.get_logger().error("token_not_resealed", tenant=tenant, error=str(error))
            self._left += 1
            return 0
        done = await self._store.write(Update(INSTALLATIONS, same, anew))
        self._left += 1 - done
        return done

    def _anew(self, row: dict[str, Any]) -> dict[str, str]:
        values = {column: row[column] for column in SEALED if row[column]}
        tenant = row["tenant"]
        opened = {column: self._keyring.open(text, tenant=tenant, column=column) for column, text in values.items()}
        return {column: self._keyring.seal(text, tenant=tenant, column=column) for column, text in opened.items()}
