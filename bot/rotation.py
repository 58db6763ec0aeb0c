"""Token rotation: bot tokens that expire, and the single-use refresh tokens that get the next ones.

Slack takes a refresh token once, so two processes must not use the same one. Whoever refreshes claims the installation's row first; the
new pair is stored only in the place of the pair it was got with.
"""

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.clients import CredentialsUnavailableError, code_of
from bot.keyring import Keyring, KeyringError
from workflows.storage import Select, Store, StoreUnavailableError, Table, Update

AHEAD = timedelta(hours=2)
"""How long before its end a token is replaced. Until then the old one works beside the new one, so that nobody has to wait."""
MARGIN = timedelta(minutes=5)
"""A token with less than this is not handed out while another may be had: a call may be made a while after it was asked for."""
CLAIM = timedelta(seconds=60)
"""How long one process has for a refresh. If it dies, another one tries after that."""
AGAIN = timedelta(seconds=5)
"""How long a refresh that Slack did not answer is not tried again."""
LIFE = timedelta(hours=12)
"""What Slack gives a token, where an answer does not say."""
WAIT_S = 2.0
"""How long whoever needs a token waits for another process to refresh it."""
LOOK_S = 0.05
STORE_PAUSE_S = 30.0
LOST = frozenset({"invalid_refresh_token", "token_revoked", "account_inactive"})
"""Slack's words for a refresh token that it will never take again."""

Row = dict[str, Any]


class Rotation:
    """Refreshes the tokens of `installations` rows. `client` has no token and retries nothing."""

    def __init__(
        self,
        store: Store,
        keyring: Keyring,
        table: Table,
        *,
        client: AsyncWebClient,
        client_id: str,
        client_secret: str,
    ) -> None:
        self._store = store
        self._keyring = keyring
        self._table = table
        self._client = client
        self._client_id = client_id
        self._client_secret = client_secret
        self._tasks: set[asyncio.Task[Row | None]] = set()
        self._closed = False

    async def current(self, row: Row) -> Row | None:
        """`row` with a token that can be used now; None if it was lost and the workspace has to install again.

        Raises CredentialsUnavailableError if it has expired and no new one can be got now.
        """
        if row["expires_at"] is None:
            return row
        now = await self._store.now()
        if now < row["expires_at"] - AHEAD:
            return row
        if row["lost"]:
            return row if now < row["expires_at"] else None
        refreshing = await self._begun(row, now)
        if now < row["expires_at"] - MARGIN:
            return row  # it works while the next one is got
        return await (asyncio.shield(refreshing) if refreshing else self._awaited(row))

    async def close(self) -> None:
        """Begin none any more, and wait for those under way: a pair that Slack has handed out exists nowhere else before it is stored."""
        self._closed = True
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _begun(self, row: Row, now: datetime) -> asyncio.Task[Row | None] | None:
        """A task of its own if the claim is ours: whoever asked may be cut off between Slack's answer and the commit."""
        if self._closed or not await self._claimed(row, now):
            return None
        return self._spawned(self._refreshed(row))

    async def _claimed(self, row: Row, now: datetime) -> bool:
        """Whether this process, and no other, is the one to refresh `row`."""
        if row["refreshing_until"] is not None and now < row["refreshing_until"]:
            return False
        same = {**_pair(row), "refreshing_until": row["refreshing_until"]}
        return await self._store.write(Update(self._table, same, {"refreshing_until": now + CLAIM})) == 1

    def _spawned(self, refresh: Coroutine[Any, Any, Row | None]) -> asyncio.Task[Row | None]:
        task = asyncio.create_task(refresh)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Row | None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            structlog.get_logger().warning("token_not_refreshed", error=str(error))

    async def _awaited(self, row: Row) -> Row | None:
        """The row after another process has refreshed it."""
        end = asyncio.get_running_loop().time() + WAIT_S
        while asyncio.get_running_loop().time() < end:
            await asyncio.sleep(LOOK_S)
            now = await self._standing(row["tenant"])
            if (
                now is None or now["expires_at"] != row["expires_at"]
            ):  # not the sealed text: a new key changes that, too
                return now
            if now["lost"]:
                return None
        raise CredentialsUnavailableError(f"the token of {row['tenant']} has expired and is not refreshed yet")

    async def _refreshed(self, row: Row) -> Row | None:
        """All that may fail comes before Slack's answer. From then on the new pair exists nowhere else, and is stored."""
        tenant, asked_at = row["tenant"], await self._store.now()
        try:
            used = self._keyring.open(row["refresh_token"], tenant=tenant, column="refresh_token")
        except KeyringError as error:
            raise CredentialsUnavailableError(str(error)) from error
        try:
            answer = await self._client.oauth_v2_access(
                client_id=self._client_id,
                client_secret=self._client_secret,
                grant_type="refresh_token",
                refresh_token=used,
            )
        except (SlackApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = code_of(error) if isinstance(error, SlackApiError) else type(error).__name__
            if reason in LOST:
                await self._given_up(row, reason)
                return None
            await self._put_off(row)
            raise CredentialsUnavailableError(f"Slack does not refresh the token of {tenant}: {reason}") from error
        return await self._stored(row, self._renewed(tenant, answer, asked_at))

    def _renewed(self, tenant: str, answer: AsyncSlackResponse, asked_at: datetime) -> Row:
        """The columns of the pair that Slack has handed out. Its life is counted from before it was asked for."""
        token, refresh_token, life_s = (answer.get(name) for name in ("access_token", "refresh_token", "expires_in"))
        return {
            "token": self._keyring.seal(str(token), tenant=tenant, column="token"),
            "refresh_token": self._keyring.seal(str(refresh_token), tenant=tenant, column="refresh_token"),
            "expires_at": asked_at + (timedelta(seconds=life_s) if isinstance(life_s, int) else LIFE),
            "refreshing_until": None,
            "lost": False,
        }

    async def _stored(self, row: Row, values: Row) -> Row | None:
        """Keep the new pair, however long storage is away: there is no other copy, and the old refresh token is used up.

        Returns the row as it stands then: None where the app was uninstalled meanwhile, the installation's where it was installed again.
        """
        pause_s = 0.1
        while True:
            try:
                stored = await self._store.write(Update(self._table, _pair(row), values))
                break
            except StoreUnavailableError as error:
                structlog.get_logger().error("refreshed_token_not_stored", tenant=row["tenant"], error=str(error))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, STORE_PAUSE_S)
        structlog.get_logger().info("token_refreshed", tenant=row["tenant"], stored=bool(stored))
        # Nothing was written also where a first try was, and its reply was lost.
        return {**row, **values} if stored else await self._standing(row["tenant"])

    async def _standing(self, tenant: str) -> Row | None:
        rows = await self._store.read(Select(self._table, {"tenant": tenant, "removed_at": None}))
        return rows[0] if rows else None

    async def _put_off(self, row: Row) -> None:
        again = {"refreshing_until": await self._store.now() + AGAIN}
        await self._store.write(Update(self._table, _pair(row), again))

    async def _given_up(self, row: Row, reason: str) -> None:
        """Slack will not take this refresh token again: it was used and the answer lost, or the app was removed."""
        await self._store.write(Update(self._table, _pair(row), {"lost": True}))
        structlog.get_logger().error(
            "token_lost", tenant=row["tenant"], reason=reason, do="an admin has to install the app again"
        )


def _pair(row: Row) -> Row:
    """The row as long as it holds the pair it held: what was got with it belongs nowhere else."""
    return {"tenant": row["tenant"], "refresh_token": row["refresh_token"]}
