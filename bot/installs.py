"""Installations: one row per workspace or org, its token sealed. Also events of workspaces not known yet."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import structlog
from slack_sdk.oauth.installation_store.models.installation import Installation

from bot.checkups import CHECKUPS, enrolled
from bot.clients import Credentials, CredentialSource, CredentialsUnavailableError
from bot.departures import Departures
from bot.keyring import Keyring, KeyringError
from bot.rotation import Rotation
from workflows.storage import Column, Delete, Insert, Is, Select, Store, StoreUnavailableError, Table, Update, Write

INSTALLATIONS = Table(
    "installations",
    (
        Column("tenant", "text"),
        Column("name", "text", default=""),
        Column("app_id", "text", default=""),
        Column("bot_user_id", "text"),
        Column("bot_id", "text"),
        Column("token", "text"),  # sealed
        Column("scopes", "text", default=""),
        Column("installer", "text", default=""),
        Column("installed_at", "time", default="now"),
        Column("removed_at", "time", null=True),
        Column("refresh_token", "text", default=""),  # sealed; empty where tokens do not expire
        Column("expires_at", "time", null=True),
        Column("refreshing_until", "time", null=True),  # claimed by a process that refreshes
        Column("lost", "bool", default=False),  # Slack will not take the refresh token
    ),
    ("tenant",),
)
KEPT_EVENTS = Table(
    "kept_events",
    (
        Column("tenant", "text"),
        Column("event_id", "text"),
        Column("envelope", "json"),
        Column("at", "time", default="now"),
    ),
    ("tenant", "event_id"),
)

KEPT = timedelta(hours=1)
KEPT_PER_TENANT = 200
"""What comes beyond these is refused, so that Slack sends it again: one workspace that nobody knows must not fill the store."""
LIMIT = 10_000
"""Installations that are remembered."""
REMEMBERED_S = 5.0
"""How long a replica may act on an installation that another has removed."""


class Installs:
    """Reads and writes installations, for the app's own use."""

    def __init__(self, store: Store, keyring: Keyring, rotation: Rotation, departures: Departures) -> None:
        self._store = store
        self._keyring = keyring
        self._rotation = rotation
        self._departures = departures
        self._known: OrderedDict[str, tuple[float, Credentials]] = OrderedDict()

    async def installer(self, tenant: str) -> str:
        """Who installed the app there; empty if nobody knows."""
        rows = await self._store.read(Select(INSTALLATIONS, {"tenant": tenant, "removed_at": None}))
        return str(rows[0]["installer"]) if rows else ""

    async def credentials(self, tenant: str) -> Credentials | None:
        """The tenant's credentials, their token refreshed if it is about to expire, or None if the app is not installed there.

        Raises CredentialsUnavailableError if the token has expired and can't be refreshed now.
        """
        known = self._known.get(tenant)
        if known is not None and time.monotonic() - known[0] < REMEMBERED_S:
            return known[1]
        rows = await self._store.read(Select(INSTALLATIONS, {"tenant": tenant, "removed_at": None}))
        row = await self._rotation.current(rows[0]) if rows else None
        if row is None:
            self._known.pop(tenant, None)
            return None
        found = self._credentials(row)
        self._remember(found)
        return found

    def _remember(self, found: Credentials) -> None:
        self._known[found.tenant] = (time.monotonic(), found)
        self._known.move_to_end(found.tenant)
        while len(self._known) > LIMIT:
            self._known.popitem(last=False)

    def refresh(self, tenant: str) -> None:
        """Look into storage at the next use: what is remembered was overtaken."""
        self._known.pop(tenant, None)

    def _credentials(self, row: dict[str, Any]) -> Credentials:
        try:
            token = self._keyring.open(row["token"], tenant=row["tenant"], column="token")
        except KeyringError as error:
            raise CredentialsUnavailableError(str(error)) from error
        scopes = frozenset(filter(None, row["scopes"].split(",")))
        return Credentials(row["tenant"], token, row["bot_user_id"], row["bot_id"], row["installed_at"], scopes)

    async def saving(self, installation: Installation) -> tuple[Write, ...]:
        """The writes that insert or replace a workspace's installation.

        Raises StoreUnavailableError, also while the data of an installation before is being deleted.
        """
        tenant = tenant_of_installation(installation)
        now = await self._store.now()
        values = {
            "tenant": tenant,
            "name": installation.team_name or installation.enterprise_name or "",
            "app_id": installation.app_id or "",
            "bot_user_id": installation.bot_user_id or "",
            "bot_id": installation.bot_id or "",
            "token": self._keyring.seal(installation.bot_token or "", tenant=tenant, column="token"),
            "scopes": ",".join(installation.bot_scopes or []),
            "installer": installation.user_id or "",
            "installed_at": now,
            "removed_at": None,
            **self._expiring(installation, tenant, now),
        }
        saved = Insert(INSTALLATIONS, values, on_conflict="replace")
        return saved, enrolled(tenant, now), await self._departures.returning(tenant)

    def _expiring(self, installation: Installation, tenant: str, now: datetime) -> dict[str, Any]:
        """The columns of token rotation; empty ones where the app's tokens do not expire."""
        token, at_s = installation.bot_refresh_token, installation.bot_token_expires_at
        none = {"refresh_token": "", "expires_at": None, "refreshing_until": None, "lost": False}
        if not token or at_s is None:
            return none
        # The SDK adds Slack's seconds to this machine's clock; what is stored goes by the store's.
        expires_at = now + timedelta(seconds=at_s - time.time())
        sealed = self._keyring.seal(token, tenant=tenant, column="refresh_token")
        return {**none, "refresh_token": sealed, "expires_at": expires_at}

    async def uninstall(self, tenant: str, *, token: str | None = None) -> None:
        """Forget the tokens at once; the rest stays until the tenant's retention is over.

        `token`: the one that Slack does not take any more; an installation with another one stands. None: one whose token was lost.
        A workspace that is none of the installations has its token in the settings, and only leaves.
        """
        await self._ended(tenant, lambda rows: self._stand_on(rows, token))

    async def retire(self, tenant: str) -> None:
        """The same, whatever its token is. Raises StoreUnavailableError."""
        await self._ended(tenant, bool)

    async def _ended(self, tenant: str, gone: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Look until what was found `gone` is what was taken away: a token may be sealed anew, or replaced, at any moment."""
        while True:
            # Before the installation: whoever installs again has a checkup of their own.
            checkups = await self._store.read(Select(CHECKUPS, {"workspace": tenant}))
            rows = await self._store.read(Select(INSTALLATIONS, {"tenant": tenant, "removed_at": None}))
            if not gone(rows):
                return
            if await self._retired(tenant, rows):
                break
        for each in checkups:
            await self._store.write(Delete(CHECKUPS, each))

    async def _retired(self, tenant: str, rows: list[dict[str, Any]]) -> bool:
        """Whether the app has left as it was found. A departure that is written of one that stands ends nothing: it is dropped when due."""
        values = {
            "removed_at": await self._store.now(),
            "token": self._keyring.seal("", tenant=tenant, column="token"),
            "refresh_token": "",
            "expires_at": None,
        }
        left = await self._departures.left(tenant)
        same = [{"tenant": tenant, "removed_at": None, "token": row["token"]} for row in rows]
        changed = await self._store.write(left, *[Update(INSTALLATIONS, each, values) for each in same])
        if changed <= len(rows):
            return False
        self._known.pop(tenant, None)
        structlog.get_logger().info("app_uninstalled", tenant=tenant)
        return True

    async def stands_on(self, tenant: str, *, token: str | None) -> bool:
        """Whether `token`, as in `uninstall`, is all that a workspace has, by what is stored: whoever remembers one may have been overtaken.

        Raises StoreUnavailableError, CredentialsUnavailableError.
        """
        self.refresh(tenant)
        return self._stand_on(
            await self._store.read(Select(INSTALLATIONS, {"tenant": tenant, "removed_at": None})), token
        )

    def _stand_on(self, rows: list[dict[str, Any]], token: str | None) -> bool:
        if token is None:
            return bool(rows) and bool(rows[0]["lost"])
        return not rows or self._credentials(rows[0]).token == token

    async def lost(self, tenant: str) -> bool:
        """Whether the app is installed there and its token can't be had any more."""
        return bool(await self._store.read(Select(INSTALLATIONS, {"tenant": tenant, "removed_at": None, "lost": True})))

    async def installed(self, tenant: str) -> bool:
        """Whether it was installed and not removed since, also where its token was lost."""
        return bool(await self._store.read(Select(INSTALLATIONS, {"tenant": tenant, "removed_at": None})))

    async def forget_departed(self, source: CredentialSource) -> int:
        """A sweep for the clock: delete the data of workspaces whose time is over and that `source` does not know. Returns the rows gone."""
        removed = 0
        for row in await self._departures.due():
            try:
                there = await source.installed(row["workspace"])
            except CredentialsUnavailableError:
                await self._departures.put_off(row)
                continue
            if there:
                await self._sweep_kept(row["workspace"])
                await self._departures.drop(row)
            else:
                removed += await self._departures.forget(row)
        return removed

    # Events of workspaces nobody knows yet

    async def keep(self, tenant: str, envelope: dict[str, Any]) -> None:
        """Keep an event for an hour, in case the workspace installs meanwhile: the two race at every install.

        Raises StoreUnavailableError where it is not kept: too many are, or the workspace's old data is being deleted. Slack sends it again.
        """
        await self._sweep_kept(tenant)
        kept = await self._store.read(Select(KEPT_EVENTS, {"tenant": tenant}, limit=KEPT_PER_TENANT))
        event_id = str(envelope.get("event_id") or secrets.token_hex(8))
        if len(kept) >= KEPT_PER_TENANT and event_id not in {row["event_id"] for row in kept}:
            raise StoreUnavailableError(
                f"{KEPT_PER_TENANT} events of {tenant} are kept already, where nobody has installed the app"
            )
        row = {"tenant": tenant, "event_id": event_id, "envelope": envelope}
        await self._store.write(Insert(KEPT_EVENTS, row), *await self._departures.unknown(tenant, kept=KEPT))
        if await self._departures.deleting(tenant):
            await self.drop_kept(tenant, event_id)
            raise StoreUnavailableError(f"the old data of {tenant} is being deleted")

    async def kept(self, tenant: str) -> dict[str, dict[str, Any]]:
        """The kept events of a workspace by id, oldest first. They stay until they are dropped, so that a crash between loses none."""
        await self._sweep_kept(tenant)
        rows = await self._store.read(Select(KEPT_EVENTS, {"tenant": tenant}, order=("at",)))
        return {row["event_id"]: row["envelope"] for row in rows}

    async def drop_kept(self, tenant: str, event_id: str) -> None:
        """Forget one kept event; another replica may be keeping a further one at this moment."""
        await self._store.write(Delete(KEPT_EVENTS, {"tenant": tenant, "event_id": event_id}))

    async def _sweep_kept(self, tenant: str) -> None:
        since = await self._store.now() - KEPT
        await self._store.write(Delete(KEPT_EVENTS, {"tenant": tenant, "at": Is("<", since)}))


def tenant_of_installation(installation: Installation) -> str:
    """The tenant that an installation belongs to: its workspace, or the organization where it is org-wide."""
    org = installation.enterprise_id if installation.is_enterprise_install else None
    return str(org or installation.team_id or installation.enterprise_id or "")
