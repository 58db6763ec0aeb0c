"""The pub/sub seam: topics, consumer groups, replay from an offset, dead letters."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol
from urllib.parse import quote

Offset = str
"""A position in a topic; opaque, ordered by the backend ("1767326130289-0")."""

EventKind = Literal["event", "gap"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data` is a JSON object; `kind` "gap" tells a replaying reader that older entries were trimmed.

    `offset`, `at` and `deliveries` (1 for the first delivery in a group) are set by the backend when it hands an event out.
    """

    type: str
    data: dict[str, Any] = field(default_factory=dict)
    kind: EventKind = "event"
    offset: Offset = ""
    at: datetime | None = None
    deliveries: int = 1


Handler = Callable[[Event], Awaitable[None]]
OnError = Callable[[BaseException], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a group gave up on after `deliveries` tries; `error` is the last failure as "Type: message"."""

    topic: str
    group: str
    event: Event
    error: str
    deliveries: int

    @property
    def id(self) -> str:
        """What names it: to redrive or drop it."""
        return f"{self.event.offset}/{quote(self.group, safe='')}/{self.topic}"


LETTER_ID = re.compile(r"[0-9]+-[0-9]+/[^/]+/([^\n\ud800-\udfff]+)")


def topic_of(letter_id: str) -> str | None:
    """The topic that the id of a dead letter names; None if it is no such id."""
    found = LETTER_ID.fullmatch(letter_id)
    return found[1] if found else None


class Subscription(Protocol):
    """One subscriber. `topic` and `group` as given to `subscribe`."""

    topic: str
    group: str | None


class PubSub(Protocol):
    """A live bus. It carries hints and streams; the rows in storage are the truth, so losing it loses nothing."""

    async def publish(self, topic: str, event: Event) -> Offset:
        """Append `event` to `topic`. Raises PubSubUnavailableError if the backend can't be reached."""
        ...

    async def subscribe(
        self,
        topic: str,
        handler: Handler,
        *,
        group: str | None = None,
        after: Offset | None = None,
        on_error: OnError | None = None,
    ) -> Subscription:
        """Without `group`: see every event from now on, or after `after`. With it: exactly one member handles each event.

        In a group, returning acks, raising nacks with backoff; after the bus's `max_deliveries` it becomes a dead letter. `on_error` is
        told what the handler raised, and of failures of the subscription itself; neither ends it.
        """
        ...

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Stop it; a handler that is running is awaited. Unknown subscriptions are ignored."""
        ...

    async def flush(self) -> None:
        """Return when everything published so far by this process has been handed to its local subscribers."""
        ...

    async def dead_letters(self, topic: str | None = None) -> list[DeadLetter]:
        """The events that groups gave up on, of one topic or of all, oldest first. Raises PubSubUnavailableError."""
        ...

    async def redrive(self, letter: DeadLetter) -> Offset:
        """Give a dead letter to its group once more, with all its deliveries ahead of it; returns its new offset.

        Raises LookupError if it was redriven or dropped before or has expired, and PubSubUnavailableError.
        """
        ...

    async def drop(self, letter: DeadLetter) -> None:
        """Forget a dead letter: nobody will handle it. Raises as `redrive` does."""
        ...

    async def erase(self, topic: str) -> None:
        """Forget all that is in a topic and its dead letters, for good. Subscriptions stay, and offsets go on from where they were.

        A reader that had not seen all of it is told of a gap; a group has nothing of it to do any more. Raises PubSubUnavailableError.
        """
        ...

    async def close(self) -> None:
        """Stop all subscriptions and free the connections."""
        ...


class PubSubUnavailableError(Exception):
    """The bus can't be reached now. Publishers of hints ignore it: polling finds the work."""
