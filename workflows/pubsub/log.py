"""The log beneath a bus: what a backend stores, so that subscriptions behave alike on each of them."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from workflows.pubsub.base import DeadLetter, Event, Offset
from workflows.pubsub.policy import Policy

_log = structlog.get_logger()

BEGINNING: Offset = "0-0"
"""Before the first entry of any topic."""

Wake = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A reader's place. `known`: the entry at `offset` was there, so that its absence later means a gap."""

    offset: Offset = BEGINNING
    known: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in a topic. `only` names the single group it is for: a redriven dead letter."""

    event: Event
    only: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The next entries after a cursor, where to go on, and whether some between were lost."""

    entries: tuple[Entry, ...]
    cursor: Cursor
    gap: bool = False


class Log(Protocol):
    """Topics with groups. Each method raises PubSubUnavailableError if the backend can't be reached.

    In a group, an entry is *pending* from its delivery to a member until it is acknowledged or buried.
    """

    async def append(self, topic: str, event: Event) -> Offset:
        """Add an entry; returns its offset."""
        ...

    async def head(self, topic: str) -> Cursor:
        """The place after the newest entry."""
        ...

    async def read(self, topic: str, cursor: Cursor) -> Page:
        """The next entries after `cursor`, a hundred at most."""
        ...

    async def join(self, topic: str, group: str, *, after: Offset) -> Offset:
        """Create the group at `after` unless it exists; returns the offset of the topic's newest entry."""
        ...

    async def take(self, topic: str, group: str, consumer: str) -> Entry | None:
        """Deliver the oldest undelivered entry."""
        ...

    async def retake(self, topic: str, group: str, consumer: str, offset: Offset) -> Entry | None:
        """Deliver an entry again that is pending for `consumer`; None if it no longer is."""
        ...

    async def steal(self, topic: str, group: str, consumer: str) -> Entry | None:
        """Deliver an entry again that nobody touched for the policy's `min_idle_ms`."""
        ...

    async def renew(self, topic: str, group: str, consumer: str, offsets: Collection[Offset]) -> None:
        """Touch those entries, as far as they are pending for `consumer`."""
        ...

    async def acknowledge(self, topic: str, group: str, offset: Offset) -> None:
        """Done: it is delivered no more."""
        ...

    async def bury(self, letter: DeadLetter) -> None:
        """Acknowledge, and keep it as a dead letter."""
        ...

    async def leave(self, topic: str, group: str, consumer: str) -> None:
        """Give what is pending for `consumer` to whoever looks next, and forget the consumer."""
        ...

    async def dead_letters(self, topic: str | None) -> list[DeadLetter]:
        """Dead letters of one topic or of all, oldest first."""
        ...

    async def redrive(self, letter: DeadLetter) -> Offset:
        """Append it once more, for its group only. Raises LookupError if it is no dead letter any more."""
        ...

    async def drop(self, letter: DeadLetter) -> None:
        """Forget it. Raises LookupError if it is no dead letter any more."""
        ...

    async def erase(self, topic: str) -> None:
        """Delete its entries, what is pending of them and its dead letters; the next offset is later than any of them."""
        ...

    async def watch(self, topic: str, wake: Wake, *, after: Offset) -> None:
        """Call `wake` soon after each entry that comes after `after`."""
        ...

    async def unwatch(self, topic: str, wake: Wake) -> None:
        """Stop calling it."""
        ...

    async def close(self) -> None:
        """Free what it holds."""
        ...


def encode(topic: str, event: Event, *, max_bytes: int) -> str:
    """`event.data` as JSON text. Raises ValueError if it is no JSON object or longer than `max_bytes`."""
    what = f"event {event.type!r} for topic {topic!r}"
    if not isinstance(event.data, dict):
        raise ValueError(f"{what}: data must be a JSON object, not {type(event.data).__name__}")  # noqa: TRY004 - one kind for callers
    try:
        text = json.dumps(event.data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what}: data is not JSON ({error})") from error
    if len(text) > max_bytes:
        raise ValueError(
            f"{what}: {len(text)} bytes of data, but the bus carries at most {max_bytes}: store it, and publish a reference to it"
        )
    return text


def decode(type_: str, data: str, offset: Offset, *, deliveries: int = 1) -> Event:
    """The event stored as `data`; its time is the first half of its offset (ms since 1970), as both backends make them."""
    parsed: dict[str, Any] = json.loads(data)
    return Event(
        type_, parsed, offset=offset, at=datetime.fromtimestamp(position(offset)[0] / 1000, UTC), deliveries=deliveries
    )


def gone(letter: DeadLetter) -> LookupError:
    """The error for a letter that was redriven or dropped before, or has expired."""
    return LookupError(f"{letter.event.offset} of {letter.topic!r} is no dead letter of {letter.group!r} any more")


def stalled(topic: str, group: str, state: str, policy: Policy) -> None:
    """The alarm about a group that holds its topic up: it is slow, or had no live member and was destroyed."""
    _log.error("pubsub_group_stalled", topic=topic, group=group, state=state, entries=policy.stall_len)


def position(offset: Offset) -> tuple[int, int]:
    """An offset as something that sorts. Raises ValueError if it is none ("1767326130289-0", "1767326130289")."""
    milliseconds, _, number = offset.partition("-")
    if not (
        milliseconds.isascii() and milliseconds.isdigit() and (number or "0").isascii() and (number or "0").isdigit()
    ):
        raise ValueError(f"{offset!r} is no offset of this bus; use Event.offset or what publish returned")
    return int(milliseconds), int(number or 0)


def offset_at(place: tuple[int, int]) -> Offset:
    """The offset with that position."""
    return f"{place[0]}-{place[1]}"
