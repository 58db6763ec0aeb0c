"""Sources of credentials besides the installations in storage: the one workspace of the settings, and the first of several that knows."""

from collections.abc import Awaitable, Callable

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.clients import (
    REVOKED,
    Credentials,
    CredentialSource,
    CredentialsUnavailableError,
    TokenRefusedError,
    code_of,
)

Met = Callable[[str], Awaitable[None]]
"""Told the tenant of a workspace when it is first known. May raise StoreUnavailableError."""


class EitherSource:
    """The first source that knows the tenant."""

    def __init__(self, *sources: CredentialSource) -> None:
        self._sources = sources

    async def credentials(self, tenant: str) -> Credentials | None:
        for source in self._sources:
            if (found := await source.credentials(tenant)) is not None:
                return found
        return None

    async def installed(self, tenant: str) -> bool:
        for source in self._sources:
            if await source.installed(tenant):
                return True
        return False

    def refresh(self, tenant: str) -> None:
        for source in self._sources:
            source.refresh(tenant)


class OneWorkspace:
    """Credentials of the single workspace whose token is in the settings; its ids are asked once."""

    def __init__(self, token: str, *, api_url: str, met: Met | None = None) -> None:
        self._token = token
        self._api_url = api_url
        self._met = met
        self._known: Credentials | None = None

    async def credentials(self, tenant: str) -> Credentials | None:
        if self._known is None:
            found = await self._asked()
            if self._met is not None:
                await self._met(found.tenant)
            self._known = found
        return self._known if tenant == self._known.tenant else None

    async def installed(self, tenant: str) -> bool:
        try:
            return (await self._asked()).tenant == tenant
        except TokenRefusedError:
            return False

    def refresh(self, tenant: str) -> None:
        """The settings stay as they are."""

    async def _asked(self) -> Credentials:
        who = await self._who()
        granted = str(who.headers.get("x-oauth-scopes") or "")
        return Credentials(
            tenant=str(who["team_id"]),
            token=self._token,
            bot_user_id=str(who["user_id"]),
            bot_id=str(who["bot_id"]),
            scopes=frozenset(filter(None, (each.strip() for each in granted.split(",")))),
        )

    async def _who(self) -> AsyncSlackResponse:
        try:
            return await AsyncWebClient(token=self._token, base_url=self._api_url, timeout=5).auth_test()
        except (SlackApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = code_of(error) if isinstance(error, SlackApiError) else type(error).__name__
            told = TokenRefusedError if reason in REVOKED else CredentialsUnavailableError
            raise told(f"Slack does not say whose SLACK_BOT_TOKEN is: {reason}") from error
