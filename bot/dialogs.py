"""Opening dialogs. A trigger lives for three seconds, so what takes longer to make follows in a dialog that is open by then."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog
from slack_sdk.web.async_client import AsyncWebClient

from bot.clients import Clients, UnknownTenantError
from bot.views import View, notice

READY_S = 0.8
"""How long a view may take to be made before one that says "a moment" is opened in its place: Slack's network has to fit in as well."""
MOMENT = "A moment, please: this takes longer than usual. If nothing else is shown here within a minute, close this and try again."
FAILED = "I could not read what belongs here, and nothing was done. Please close this and try again in a minute."

Made = View | str
"""A view, or words why there is none."""


class Dialogs:
    """Opens views with a trigger."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    async def open(
        self, tenant: str, trigger_id: str, making: Coroutine[Any, Any, Made], *, title: str
    ) -> tuple[Made, bool]:
        """Show what is being made. Returns it, and whether the person sees it; raises what the making raises."""
        task = asyncio.create_task(making)
        try:
            await asyncio.wait({task}, timeout=READY_S)
            if not task.done():
                return await self._late(tenant, trigger_id, task, title)
        except asyncio.CancelledError:
            task.cancel()
            raise
        made = task.result()
        return made, isinstance(made, dict) and await self.show(tenant, trigger_id, made) is not None

    async def _late(self, tenant: str, trigger_id: str, task: asyncio.Task[Made], title: str) -> tuple[Made, bool]:
        view_id = await self.show(tenant, trigger_id, notice(title, MOMENT))
        try:
            made = await task
        except Exception:
            await self.replace(tenant, view_id, notice(title, FAILED))
            raise
        view = made if isinstance(made, dict) else notice(title, made)
        return made, await self.replace(tenant, view_id, view)

    async def replace(self, tenant: str, view_id: str | None, view: View) -> bool:
        """Show another view where one is open; whether Slack did. One that the person has closed is gone."""
        if view_id is None:
            return False
        try:
            await (await self._client(tenant)).views_update(view_id=view_id, view=view)
        except Exception as error:
            structlog.get_logger().warning("dialog_not_updated", error=f"{type(error).__name__}: {error}")
            return False
        return True

    async def show(self, tenant: str, trigger_id: str, view: View) -> str | None:
        """Open a view that is there already; its id, or None if Slack did not open it."""
        try:
            opened = await (await self._client(tenant)).views_open(trigger_id=trigger_id, view=view)
            return str(opened["view"]["id"])
        except Exception as error:
            structlog.get_logger().warning("dialog_not_opened", error=f"{type(error).__name__}: {error}")
            return None

    async def _client(self, tenant: str) -> AsyncWebClient:
        """The tenant's client, also while storage does not answer."""
        known = await self._clients.soon(tenant)
        if known is None:
            raise UnknownTenantError(f"the app is not installed in {tenant}")
        return self._clients.client(known)
