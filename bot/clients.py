"""Slack clients by tenant, over one pool of connections. None of them retries by itself: a blind retry of a post is a second post."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
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
IDLE_S = 5.0
"""How long a connection that nobody uses stays open: less than any server's patience. aiohttp sends a GET again where the server closed at
that very moment; a POST may have been done, and is for its caller to look after."""
SOON_S = 0.4
"""How long a click or a command waits for storage to tell whose it is, where that was known before."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the app is in one workspace or org: its token and its own ids."""

    tenant: str
    token: str
    bot_user_id: str
    bot_id: str
    installed_at: datetime | None = None
    scopes: frozenset[str] = frozenset()
    """Those that were granted; empty where nobody knows."""


class CredentialSource(Protocol):
    """Where credentials come from: one token from the settings, or the installations in storage."""

    async def credentials(self, tenant: str) -> Credentials | None:
        """The tenant's, or None if the app is not installed there. Raises StoreUnavailableError, CredentialsUnavailableError."""
        ...

    async def installed(self, tenant: str) -> bool:
        """Whether the app is there, asked anew. Raises StoreUnavailableError, CredentialsUnavailableError."""
        ...

    def refresh(self, tenant: str) -> None:
        """Let the next look be at what is stored: what is remembered may have been overtaken."""
        ...


Refused = Callable[[str, str, SlackApiError], None]
"""Told that a tenant's call of a method was refused, which the caller is told, too. Must not raise."""


class UnknownTenantError(Exception):
    """The app is not installed in this workspace (any more)."""


class CredentialsUnavailableError(Exception):
    """Whether the app is installed there can't be told now: ask again later. The message says what stands in the way."""


def code_of(error: SlackApiError) -> str:
    """Slack's word for an error. Its own `get` fails on a body that is not JSON, as a proxy's error page is."""
    data = error.response.data
    return str(data.get("error", "")) if isinstance(data, dict) else "not_json"


class TokenRefusedError(CredentialsUnavailableError):
    """Slack takes the token no more, as far as one answer tells."""


async def works(client: AsyncWebClient) -> bool:
    """Whether Slack takes a client's token. Raises CredentialsUnavailableError if it does not say."""
    try:
        await client.auth_test()
    except SlackApiError as error:
        if code_of(error) in REVOKED:
            return False
        raise CredentialsUnavailableError(f"Slack does not say whose a token is: {code_of(error)}") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise CredentialsUnavailableError(f"Slack does not answer: {type(error).__name__}") from error
    return True


class Connections:
    """One pool of connections for all calls of a process. `timeout_s` bounds each: the SDK leaves that to a session it is given."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        """The pool, made at first use. No cookie of one workspace goes with another's calls."""
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S)
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout, cookie_jar=jar)
        return self._session

    async def close(self) -> None:
        """Close the connections. What the SDK is asked after that, it asks over one of its own."""
        if self._session is not None:
            await self._session.close()


class TenantClient(QuietClient):
    """The SDK's client, which also tells what Slack refuses."""

    def __init__(self, tenant: str, refused: Refused | None, **options: Any) -> None:
        super().__init__(**options)
        self._tenant = tenant
        self._refused = refused

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        try:
            return await super().api_call(api_method, **options)
        except SlackApiError as error:
            if self._refused is not None:
                self._refused(self._tenant, api_method, error)
            raise


class Clients:
    """Makes and keeps one client per token. `timeout_s` bounds each request. Without `connections`, each call makes its own."""

    def __init__(
        self,
        source: CredentialSource,
        *,
        api_url: str,
        timeout_s: float = 5.0,
        refused: Refused | None = None,
        connections: Connections | None = None,
    ) -> None:
        self._source = source
        self._api_url = api_url
        self._timeout_s = timeout_s
        self._refused = refused
        self._connections = connections
        self._clients: OrderedDict[tuple[str, str], AsyncWebClient] = OrderedDict()
        self._last: OrderedDict[str, Credentials] = OrderedDict()
        self._asking: set[asyncio.Task[Credentials | None]] = set()

    async def of(self, tenant: str) -> AsyncWebClient:
        """The tenant's client. Raises UnknownTenantError."""
        return self.client(await self.credentials(tenant))

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

    async def serves(self, tenant: str) -> bool:
        """Whether the app is in a workspace, by what is stored now. One whose token can't be had at the moment has it.

        Raises StoreUnavailableError.
        """
        self._source.refresh(tenant)
        try:
            return await self.known(tenant) is not None
        except CredentialsUnavailableError:
            return True

    def client(self, whose: Credentials) -> AsyncWebClient:
        """A client with these credentials."""
        key = whose.tenant, whose.token
        if key not in self._clients:
            while len(self._clients) >= LIMIT:  # rotated tokens leave theirs behind
                self._clients.popitem(last=False)
            timeout: Any = self._timeout_s
            self._clients[key] = TenantClient(
                whose.tenant, self._refused, token=whose.token, base_url=self._api_url, timeout=timeout,
                session=self._connections.session() if self._connections else None, retry_handlers=[],
            )  # fmt: skip
        return self._clients[key]
