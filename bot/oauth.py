"""Installing by OAuth: Bolt's flow over our own pages and stores, with states that are valid once and on every replica."""

import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from logging import Logger, getLogger
from typing import Any

import structlog
from slack_bolt import BoltResponse
from slack_bolt.oauth.async_callback_options import AsyncCallbackOptions, AsyncFailureArgs, AsyncSuccessArgs
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.errors import SlackApiError
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.installation_store.models.installation import Installation
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.channel import ChannelUnavailableError
from bot.clients import CredentialsUnavailableError, code_of
from bot.pages import failure_page, install_page, success_page
from bot.render.refusals import meaning
from bot.settings import Settings
from workflows.storage import Column, Delete, Insert, Is, Store, Table

SCOPES = (
    "app_mentions:read", "assistant:write", "channels:history", "chat:write", "commands", "files:read", "files:write", "groups:history", "im:history", "im:write",
    "mpim:history", "users:read",
)  # fmt: skip
"""What the events and calls of the code need, and no more: every scope has to be explained to an admin. The manifest has the same."""

STATES = Table(
    "oauth_states",
    (Column("state", "text"), Column("expires_at", "time")),
    ("state",),
    shared=True,  # an install begins before anybody knows for which workspace
)
STATE_LIFETIME = timedelta(minutes=10)


Install = Callable[[Installation], Awaitable[Any]]
"""Keeps an installation. Raises StoreUnavailableError."""


class InstallationStore(AsyncInstallationStore):
    """What Bolt's OAuth flow saves to. Nothing is looked up here: what the app does in a workspace, it does with `bot.clients`."""

    def __init__(self, install: Install) -> None:
        self._install = install

    @property
    def logger(self) -> Logger:
        return getLogger(__name__)

    async def async_save(self, installation: Installation) -> None:
        await self._install(installation)


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


class OAuthClient(AsyncWebClient):
    """Tells a Slack in trouble from one that refuses. For Bolt both are a code that was not accepted."""

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        """Raises CredentialsUnavailableError where it is to be tried again later, else as the SDK's."""
        try:
            return await super().api_call(api_method, **options)
        except SlackApiError as error:
            if isinstance(meaning(error), ChannelUnavailableError):
                raise CredentialsUnavailableError(f"Slack is in trouble with {api_method}: {code_of(error)}") from error
            raise


class InstallFlow(AsyncOAuthFlow):
    """Bolt's flow with a first page of our own: Bolt's shows a picture from Slack's servers, and not the product's name."""

    async def build_install_page_html(self, url: str, request: AsyncBoltRequest) -> str:
        return install_page(url)


def make_flow(settings: Settings, store: Store, install: Install) -> InstallFlow:
    """Bolt's OAuth flow over our own stores and pages. It stands beside the app, whose authorize is our own."""

    async def success(args: AsyncSuccessArgs) -> BoltResponse:
        return success_page(args.installation, slack_url="" if settings.environment == "production" else site)

    async def failure(args: AsyncFailureArgs) -> BoltResponse:
        structlog.get_logger().warning("install_failed", reason=args.reason, error=str(args.error or ""))
        return failure_page(args.reason)

    site = settings.slack_api_url.removesuffix("api/")
    told = AsyncOAuthSettings(
        client_id=settings.slack_client_id,
        client_secret=settings.slack_client_secret.get_secret_value(),
        scopes=list(SCOPES),
        redirect_uri=f"{settings.public_url.rstrip('/')}/slack/oauth_redirect" if settings.public_url else None,
        install_path="/slack/install",
        redirect_uri_path="/slack/oauth_redirect",
        installation_store=InstallationStore(install),
        state_store=StateStore(store),
        state_expiration_seconds=600,
        callback_options=AsyncCallbackOptions(success=success, failure=failure),
        authorization_url=f"{site}oauth/v2/authorize",
    )
    # A code works once: sent again after a lost reply, it would be said to be wrong.
    return InstallFlow(client=OAuthClient(base_url=settings.slack_api_url, timeout=5, retry_handlers=[]), settings=told)
