"""Who somebody is: name and time zone, looked up when a turn takes their message in."""

from typing import Protocol

from agent.models.base import Person


class People(Protocol):
    """Looks people up. Never fails: a person nobody knows has their id for a name, and UTC."""

    async def person(self, tenant: str, user_id: str) -> Person:
        """The person, as far as known."""
        ...
