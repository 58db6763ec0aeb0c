"""Slack clients by tenant. None of them retries by itself: a blind retry of a post is a second post."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.broadcasts import QuietClient

REVOKED = frozenset({"account_inactive", "invalid_auth", "token_revoked"})
"""Slack's words for a token that nobody can use any more."""
LIMIT = 10_000
"""Clients that are kept. One holds no connection, and is made anew at no cost."""
SOON_S = 0.4
"""How long a click or a command waits for storage to tell whose it is, where that was known before."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the app is in one workspace or org: its token and its own ids."""

    tenant: str
    token: str
    bot_user_id: str
    bot_id: str
    team_name: str = ""
    installed_at: datetime | None = None


class CredentialSource(Protocol):
    """Where credentials come from: one token from the settings, or the installations in storage."""

    async def credentials(self, tenant: str) -> Credentials | None:
        """The tenant's, or None if the app is not installed there. Raises StoreUnavailableError, CredentialsUnavailableError."""
        ...


class UnknownTenantError(Exception):
    """The app is not installed in this workspace (any more)."""


class CredentialsUnavailableError(Exception):
    """Whether the app is installed there can't be told now: ask again later. The message says what stands in the way."""


def code_of(error: SlackApiError) -> str:
    """Slack's word for an error. Its own `get` fails on a body that is not JSON, as a proxy's error page is."""
    data = error.response.data
    return str(data.get("error", "")) if isinstance(data, dict) else "not_json"


class Clients:
    """Makes and keeps one client per token. `timeout_s` bounds each request."""

    def __init__(self, source: CredentialSource, *, api_url: str, timeout_s: float = 5.0) -> None:
        self._source = source
        self._api_url = api_url
        self._timeout_s = timeout_s
        self._clients: OrderedDict[str, AsyncWebClient] = OrderedDict()
        self._last: OrderedDict[str, Credentials] = OrderedDict()
        self._asking: set[asyncio.Task[Credentials | None]] = set()

    async def of(self, tenant: str) -> AsyncWebClient:
        """The tenant's client. Raises UnknownTenantError."""
        return self.with_token((await self.credentials(tenant)).token)

    async def known(self, tenant: str) -> Credentials | None:
        """The tenant's credentials, or None if the app is not installed there."""
        found = await self._source.credentials(tenant)
        if found is None:
            self._last.pop(tenant, None)
            return None
        self._last[tenant] = found
        self._last.move_to_end(tenant)
        while len(self._last) > LIMIT:
            self._last.popitem(last=False)
        return found

    async def soon(self, tenant: str) -> Credentials | None:
        """As `known`, but the last ones known here where storage takes longer.

        For commands and clicks, with which Slack itself says that the app is installed there. A token that was replaced meanwhile is
        refused by Slack, and does no harm.
        """
        last = self._last.get(tenant)
        if last is None:
            return await self.known(tenant)
        task = asyncio.create_task(self.known(tenant))
        done, _ = await asyncio.wait({task}, timeout=SOON_S)
        if done:
            return task.result()
        self._asking.add(task)
        task.add_done_callback(self._asked)
        return last

    def _asked(self, task: asyncio.Task[Credentials | None]) -> None:
        """What storage said too late is remembered; that it said nothing is for whoever asks next."""
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()

    async def credentials(self, tenant: str) -> Credentials:
        """The tenant's credentials. Raises UnknownTenantError."""
        found = await self.known(tenant)
        if found is None:
            raise UnknownTenantError(f"the app is not installed in {tenant}")
        return found

    async def works(self, token: str) -> bool:
        """Whether Slack takes a token. Raises CredentialsUnavailableError if it does not say."""
        try:
            await self.with_token(token).auth_test()
        except SlackApiError as error:
            if code_of(error) in REVOKED:
                return False
            raise CredentialsUnavailableError(f"Slack does not say whose a token is: {code_of(error)}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise CredentialsUnavailableError(f"Slack does not answer: {type(error).__name__}") from error
        return True

    def with_token(self, token: str) -> AsyncWebClient:
        """A client for a token."""
        if token not in self._clients:
            while len(self._clients) >= LIMIT:  # rotated tokens leave theirs behind
                self._clients.popitem(last=False)
            timeout: Any = self._timeout_s
            self._clients[token] = QuietClient(token=token, base_url=self._api_url, timeout=timeout, retry_handlers=[])
        return self._clients[token]


class EitherSource:
    """The first source that knows the tenant."""

    def __init__(self, *sources: CredentialSource) -> None:
        self._sources = sources

    async def credentials(self, tenant: str) -> Credentials | None:
        for source in self._sources:
            if (found := await source.credentials(tenant)) is not None:
                return found
        return None


class OneWorkspace:
    """Credentials of the single workspace whose token is in the settings; its ids are asked once."""

    def __init__(self, token: str, *, api_url: str) -> None:
        self._token = token
        self._api_url = api_url
        self._known: Credentials | None = None

    async def credentials(self, tenant: str) -> Credentials | None:
        if self._known is None:
            who = await self._who()
            self._known = Credentials(
                tenant=str(who["team_id"]),
                token=self._token,
                bot_user_id=str(who["user_id"]),
                bot_id=str(who["bot_id"]),
                team_name=str(who["team"]),
            )
        return self._known if tenant == self._known.tenant else None

    async def _who(self) -> AsyncSlackResponse:
        try:
            return await AsyncWebClient(token=self._token, base_url=self._api_url, timeout=5).auth_test()
        except (SlackApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = code_of(error) if isinstance(error, SlackApiError) else type(error).__name__
            raise CredentialsUnavailableError(f"Slack does not say whose SLACK_BOT_TOKEN is: {reason}") from error
