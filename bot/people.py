"""People, by Slack's users.info, remembered for an hour."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from agent.models.base import Person
from bot.clients import Clients

REMEMBERED_S = 3600.0
ANSWER_S = 1.5
"""Clicks and commands wait for it, and Slack waits three seconds for those."""
LIST_S = 10.0
PAGES = 5
PAGE = 200
"""A workspace's people are read as far as this to find its admins; whoever installed the app is known without."""
LIMIT = 10_000
NOT_CHECKED = "Slack did not tell whether you are an admin here. Nothing was done; please try again in a moment."


class SlackPeople:
    """Implements `agent.people.People`; also knows who administers a workspace."""

    def __init__(self, clients: Clients, *, installer: Callable[[str], Awaitable[str]] | None = None) -> None:
        self._clients = clients
        self._installer = installer
        self._known: dict[tuple[str, str], tuple[float, Person, bool]] = {}
        self._teams: dict[tuple[str, str], str] = {}

    async def person(self, tenant: str, user_id: str) -> Person:
        found = await self._look(tenant, user_id)
        return found[0] if found else Person(id=user_id, name=user_id)

    async def is_admin(self, tenant: str, user_id: str) -> bool | None:
        """Whether the person administers the workspace, asked anew each time: rights may be gone. None: Slack does not say."""
        self._known.pop((tenant, user_id), None)
        found = await self._look(tenant, user_id)
        return found[1] if found else None

    async def refusal(self, tenant: str, user_id: str, *, others: str) -> str | None:
        """Why a person may not do what is for admins: `others` is what those are told who are none. None: they may."""
        allowed = await self.is_admin(tenant, user_id)
        return None if allowed else others if allowed is False else NOT_CHECKED

    async def admins(self, tenant: str, *, limit: int) -> tuple[str, ...]:
        """Some who administer the workspace: whoever installed the app, if they still do, and those its list of people names."""
        installer = await self._installer(tenant) if self._installer else ""
        first = [installer] if installer and await self.is_admin(tenant, installer) else []
        try:
            async with asyncio.timeout(LIST_S):
                listed = await self._listed(tenant, limit)
        except Exception as error:
            structlog.get_logger().warning("admins_unknown", tenant=tenant, error=f"{type(error).__name__}: {error}")
            listed = []
        return tuple(dict.fromkeys([*first, *listed]))[:limit]

    async def _listed(self, tenant: str, limit: int) -> list[str]:
        client = await self._clients.of(tenant)
        found: list[str] = []
        cursor = ""
        for _ in range(PAGES):
            page = await client.users_list(limit=PAGE, cursor=cursor or None)
            found += [str(user["id"]) for user in page["members"] if _decides(user, tenant)]
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if len(found) >= limit or not cursor:
                break
        return found

    async def team(self, tenant: str, user_id: str) -> str:
        """The workspace a person is of: in an organization, or a channel shared with another company, not the tenant."""
        await self._look(tenant, user_id)
        return self._teams.get((tenant, user_id)) or tenant

    async def _look(self, tenant: str, user_id: str) -> tuple[Person, bool] | None:
        known = self._known.get((tenant, user_id))
        if known is not None and time.monotonic() - known[0] < REMEMBERED_S:
            return known[1], known[2]
        try:
            client = await self._clients.of(tenant)
            async with asyncio.timeout(ANSWER_S):
                user = (await client.users_info(user=user_id))["user"]
        except Exception as error:
            structlog.get_logger().warning("person_unknown", user=user_id, error=f"{type(error).__name__}: {error}")
            return None
        profile = user.get("profile") or {}
        name = (
            profile.get("display_name")
            or profile.get("real_name")
            or user.get("real_name")
            or user.get("name")
            or user_id
        )
        outside = _outside(user, tenant)
        person = Person(id=user_id, name=str(name), time_zone=str(user.get("tz") or "UTC"), outside=outside)
        admin = _administers(user, tenant)
        if len(self._known) >= LIMIT:
            self._known.clear()
            self._teams.clear()
        self._known[tenant, user_id] = (time.monotonic(), person, admin)
        self._teams[tenant, user_id] = str(user.get("team_id") or tenant)
        return person, admin


def _administers(user: dict[str, Any], tenant: str) -> bool:
    """Slack tells of a stranger what they are at home: an admin there decides nothing here."""
    admin = user.get("is_admin") or user.get("is_owner") or user.get("is_primary_owner")
    return bool(admin) and not _outside(user, tenant)


def _decides(user: dict[str, Any], tenant: str) -> bool:
    """Whether somebody in the list of people can be asked to decide."""
    return _administers(user, tenant) and not (user.get("deleted") or user.get("is_bot"))


def _outside(user: dict[str, Any], tenant: str) -> bool:
    """Whether somebody belongs to another company. In an Enterprise Grid org, people of all its workspaces belong to it."""
    org = user.get("enterprise_user")
    homes = {user.get("team_id")}
    if isinstance(org, dict):
        homes |= {org.get("enterprise_id"), *(org.get("teams") or ())}
    return bool(user.get("is_stranger")) or (homes != {None} and tenant not in homes)
