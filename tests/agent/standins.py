"""A channel that shows nothing and people nobody has looked up: for tests of the turn alone."""

from collections.abc import Sequence
from typing import Any

from agent.channel import Card, Delivered, Draft, Notes, Place, Task
from agent.models.base import Person
from agent.thread import Thread


class _QuietStream:
    async def append(self, text: str) -> None:
        return None

    async def tasks(self, tasks: Sequence[Task]) -> None:
        return None

    async def pause(self) -> Draft | None:
        return None


class QuietChannel:
    """Keeps what would have been said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.cards: list[Card] = []

    async def working(self, thread: Thread, text: str, *, about: str = "") -> None:
        return None

    def stream(self, thread: Thread, asker: Person, **_: Any) -> _QuietStream:
        return _QuietStream()

    async def deliver(
        self,
        thread: Thread,
        text: str,
        *,
        delivery_id: str,
        draft: Draft | None,
        notes: Notes,
        rated_as: str | None = None,
    ) -> Delivered:
        self.said.append(text)
        return Delivered(message_ids=(delivery_id,))

    async def find(self, thread: Thread, *, delivery_id: str, notes: Notes, since: Any = None) -> Delivered | None:
        return None

    async def private(self, thread: Thread) -> bool:
        return False

    async def ask(self, thread: Thread, card: Card, *, notes: Notes) -> tuple[Place, ...]:
        self.cards.append(card)
        return (Place(channel=thread.channel, message_id=card.approval_id),)

    async def standing(self, thread: Thread, card: Card, **_: Any) -> tuple[Place, ...]:
        return ()

    async def settle(self, thread: Thread, places: Sequence[Place], card: Card) -> bool:
        return True


class EveryoneIsThemselves:
    """Implements `agent.people.People` without asking anybody."""

    async def person(self, tenant: str, user_id: str) -> Person:
        return Person(id=user_id, name=user_id)

    async def is_admin(self, tenant: str, user_id: str) -> bool | None:
        return True

    async def admins(self, tenant: str, *, limit: int) -> tuple[str, ...]:
        return ()
