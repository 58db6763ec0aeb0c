"""The workspaces the app is in: their installations and tokens, the Web API of each, and what becomes of those that leave."""

from contextlib import AsyncExitStack
from datetime import timedelta

from slack_sdk.web.async_client import AsyncWebClient

from bot.backends import make_credentials, make_keyring
from bot.checkups import Checkups
from bot.clients import Clients, Connections
from bot.departures import Departures
from bot.installs import INSTALLATIONS, Installs
from bot.keyring import Keyring
from bot.refusals import Refusals
from bot.removal import Removal
from bot.resealing import Resealing
from bot.rotation import Rotation
from bot.settings import Settings
from workflows import Engine


class Workspaces:
    """Puts these parts together, once per process."""

    def __init__(self, settings: Settings, engine: Engine, *, keyring: Keyring | None = None) -> None:
        store, keyring = engine.store, keyring or make_keyring(settings)
        self.rotation = Rotation(
            store, keyring, INSTALLATIONS,
            client=AsyncWebClient(base_url=settings.slack_api_url, timeout=5, retry_handlers=[]),
            client_id=settings.slack_client_id, client_secret=settings.slack_client_secret.get_secret_value(),
        )  # fmt: skip
        departures = Departures(store, kept=timedelta(days=settings.departed_days))
        self.installs = Installs(store, keyring, self.rotation, departures)
        self.credentials = make_credentials(settings, self.installs, met=self._met)
        self.removal = Removal(engine, self.installs)
        self.checkups = Checkups(store, self.credentials, self.removal.complete, api_url=settings.slack_api_url)
        self.resealing = Resealing(store, keyring)
        self.refusals = Refusals(self.checkups)
        patience_s = settings.delivery_deadline_s / 2
        self.connections = Connections(timeout_s=patience_s)
        self.clients = Clients(
            self.credentials, api_url=settings.slack_api_url, timeout_s=patience_s, refused=self.refusals.heard,
            connections=self.connections,
        )  # fmt: skip

    async def _met(self, workspace: str) -> None:
        await self.checkups.enrol(workspace)

    async def rest(self) -> None:
        """End what is done beside: looks at tokens that were refused, and refreshes."""
        async with AsyncExitStack() as closing:  # the last one first
            closing.push_async_callback(self.refusals.close)
            closing.push_async_callback(self.rotation.close)

    async def disconnect(self) -> None:
        """Free the connections to Slack, once nobody posts any more."""
        await self.connections.close()
