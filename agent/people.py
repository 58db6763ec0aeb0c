"""Who somebody is: name and time zone, looked up when a turn takes their message in; and who administers a workspace."""

from typing import Protocol

from agent.models.base import Person


class People(Protocol):
    """Looks people up. Never fails: a person nobody knows has their id for a name, and UTC."""

    async def person(self, tenant: str, user_id: str) -> Person:
        """The person, as far as known."""
        ...

    async def is_admin(self, tenant: str, user_id: str) -> bool | None:
        """Whether the person administers the workspace. None: nobody says now."""
        ...

    async def admins(self, tenant: str, *, limit: int) -> tuple[str, ...]:
        """The ids of some who administer the workspace, whoever installed the app first, as far as known."""
        ...
