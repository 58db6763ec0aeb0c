"""People, by Slack's users.info, remembered for an hour."""

import asyncio
import time
from typing import Any

import structlog

from agent.models.base import Person
from bot.clients import Clients

REMEMBERED_S = 3600.0
ANSWER_S = 1.5
"""Clicks and commands wait for it, and Slack waits three seconds for those."""
LIMIT = 10_000
NOT_CHECKED = "Slack did not tell whether you are an admin here. Nothing was done; please try again in a moment."


class SlackPeople:
    """Implements `agent.people.People`; also knows who administers a workspace."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
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
        # Slack tells of a stranger what they are at home: an admin there decides nothing here.
        admin = not outside and bool(user.get("is_admin") or user.get("is_owner") or user.get("is_primary_owner"))
        if len(self._known) >= LIMIT:
            self._known.clear()
            self._teams.clear()
        self._known[tenant, user_id] = (time.monotonic(), person, admin)
        self._teams[tenant, user_id] = str(user.get("team_id") or tenant)
        return person, admin


def _outside(user: dict[str, Any], tenant: str) -> bool:
    """Whether somebody belongs to another company. In an Enterprise Grid org, people of all its workspaces belong to it."""
    org = user.get("enterprise_user")
    homes = {user.get("team_id")}
    if isinstance(org, dict):
        homes |= {org.get("enterprise_id"), *(org.get("teams") or ())}
    return bool(user.get("is_stranger")) or (homes != {None} and tenant not in homes)
