"""The log of one process's memory: the semantics of Redis Streams without their durability or reach."""

import bisect
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import structlog

from workflows.pubsub.base import DeadLetter, Event, Offset
from workflows.pubsub.log import (
    BEGINNING,
    Cursor,
    Entry,
    Page,
    Wake,
    decode,
    encode,
    gone,
    offset_at,
    position,
    stalled,
)
from workflows.pubsub.policy import Policy

_log = structlog.get_logger()

Position = tuple[int, int]
_JOINING = ""
"""Stands for a member that has joined its group and not taken anything yet."""


@dataclass(slots=True)
class _Pending:
    consumer: str
    deliveries: int
    touched: float


@dataclass(slots=True)
class _Group:
    delivered: Position
    pending: dict[Position, _Pending] = field(default_factory=dict)
    heard: dict[str, float] = field(default_factory=dict)
    """When each member was last heard of."""

    @property
    def floor(self) -> Position:
        """Nothing below is needed by this group."""
        return min(self.pending, default=self.delivered)


@dataclass(slots=True)
class _Stored:
    type: str
    data: str
    only: str | None


@dataclass(slots=True)
class _Topic:
    touched: float
    last: Position = (0, 0)
    trimmed: bool = False
    order: list[Position] = field(default_factory=list)
    entries: dict[Position, _Stored] = field(default_factory=dict)
    groups: dict[str, _Group] = field(default_factory=dict)


class MemoryLog:
    """A `Log` of dictionaries. No method awaits anything, so each is one operation for everybody else."""

    def __init__(self, policy: Policy, *, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._topics: dict[str, _Topic] = {}
        self._letters: list[DeadLetter] = []
        self._watchers: dict[str, list[Wake]] = {}
        self._sweep_at = 0.0

    async def append(self, topic: str, event: Event) -> Offset:
        return self._append(topic, _Stored(event.type, encode(topic, event, max_bytes=self._policy.max_bytes), None))

    async def head(self, topic: str) -> Cursor:
        last = self._topic(topic).last
        return Cursor(offset_at(last), known=last in self._topic(topic).entries)

    async def read(self, topic: str, cursor: Cursor) -> Page:
        state = self._topic(topic)
        place = position(cursor.offset)
        gap = cursor.known and not self._policy.single_group(topic) and self._lost(state, place)
        place = place if place <= state.last else (0, 0)
        begin = bisect.bisect_right(state.order, place)
        found = state.order[begin : begin + 100]
        end = (
            Cursor(offset_at(found[-1]), known=True)
            if found
            else Cursor(offset_at(place), known=cursor.known and not gap)
        )
        return Page(tuple(self._entry(topic, at, 1) for at in found), end, gap=gap)

    async def join(self, topic: str, group: str, *, after: Offset) -> Offset:
        state = self._topic(topic)
        members = state.groups.setdefault(group, _Group(delivered=position(after)))
        members.heard[_JOINING] = self._clock()
        return offset_at(state.last)

    async def take(self, topic: str, group: str, consumer: str) -> Entry | None:
        state, members = self._group(topic, group)
        members.heard[consumer] = self._clock()
        begin = bisect.bisect_right(state.order, members.delivered)
        if begin == len(state.order):
            return None
        at = members.delivered = state.order[begin]
        members.pending[at] = _Pending(consumer, 1, self._clock())
        return self._entry(topic, at, 1)

    async def retake(self, topic: str, group: str, consumer: str, offset: Offset) -> Entry | None:
        _, members = self._group(topic, group)
        pending = members.pending.get(position(offset))
        return (
            self._again(topic, members, position(offset), consumer)
            if pending and pending.consumer == consumer
            else None
        )

    async def steal(self, topic: str, group: str, consumer: str) -> Entry | None:
        _, members = self._group(topic, group)
        stale = self._clock() - self._policy.min_idle_ms / 1000
        for at, pending in members.pending.items():
            if pending.touched <= stale:
                return self._again(topic, members, at, consumer)
        return None

    async def renew(self, topic: str, group: str, consumer: str, offsets: Collection[Offset]) -> None:
        _, members = self._group(topic, group)
        members.heard[consumer] = self._clock()
        for offset in offsets:
            pending = members.pending.get(position(offset))
            if pending and pending.consumer == consumer:
                pending.touched = self._clock()

    async def acknowledge(self, topic: str, group: str, offset: Offset) -> None:
        self._acknowledge(topic, group, offset)

    async def bury(self, letter: DeadLetter) -> None:
        if self._acknowledge(letter.topic, letter.group, letter.event.offset):
            self._letters.append(letter)

    async def leave(self, topic: str, group: str, consumer: str) -> None:
        _, members = self._group(topic, group)
        for each in (consumer, _JOINING):
            members.heard.pop(each, None)
        for pending in members.pending.values():
            if pending.consumer == consumer:
                pending.touched = float("-inf")
        for wake in self._watchers.get(topic, []):
            wake()

    async def dead_letters(self, topic: str | None) -> list[DeadLetter]:
        return [letter for letter in self._letters if topic in (None, letter.topic)]

    async def drop(self, letter: DeadLetter) -> None:
        if letter not in self._letters:
            raise gone(letter)
        self._letters.remove(letter)

    async def redrive(self, letter: DeadLetter) -> Offset:
        await self.drop(letter)
        data = encode(letter.topic, letter.event, max_bytes=self._policy.max_bytes)
        return self._append(letter.topic, _Stored(letter.event.type, data, letter.group))

    async def erase(self, topic: str) -> None:
        self._letters = [letter for letter in self._letters if letter.topic != topic]
        state = self._topics.get(topic)
        if state is None:
            return
        self._delete(state, list(state.order))
        for group in state.groups.values():
            group.pending.clear()
            group.delivered = state.last

    async def watch(self, topic: str, wake: Wake, *, after: Offset) -> None:
        self._watchers.setdefault(topic, []).append(wake)

    async def unwatch(self, topic: str, wake: Wake) -> None:
        self._watchers[topic].remove(wake)
        if not self._watchers[topic]:
            del self._watchers[topic]

    async def close(self) -> None:
        self._topics.clear()

    def _topic(self, topic: str) -> _Topic:
        state = self._topics.setdefault(topic, _Topic(touched=self._clock()))
        state.touched = self._clock()
        return state

    def _group(self, topic: str, group: str) -> tuple[_Topic, _Group]:
        state = self._topic(topic)
        return state, state.groups.setdefault(group, _Group(delivered=position(BEGINNING)))

    def _append(self, topic: str, stored: _Stored) -> Offset:
        self._expire()
        state = self._topic(topic)
        milliseconds = int(self._clock() * 1000)
        at = (milliseconds, 0) if milliseconds > state.last[0] else (state.last[0], state.last[1] + 1)
        state.order.append(at)
        state.entries[at] = stored
        state.last = at
        self._trim(topic, state)
        for wake in self._watchers.get(topic, []):
            wake()
        return offset_at(at)

    def _trim(self, topic: str, state: _Topic) -> None:
        excess = len(state.order) - self._policy.max_len
        if excess <= 0:
            return
        floor = min((group.floor for group in state.groups.values()), default=state.last)
        self._delete(state, state.order[: min(excess, bisect.bisect_left(state.order, floor))])
        every = max(1, self._policy.max_len // 10)
        if len(state.order) >= self._policy.stall_len and len(state.order) % every == 0:
            self._stalled(topic, state)

    def _stalled(self, topic: str, state: _Topic) -> None:
        """Raise the alarm about the group that holds the topic up; one without a live member is destroyed."""
        holder = min(state.groups, key=lambda name: state.groups[name].floor)
        heard = max(state.groups[holder].heard.values(), default=float("-inf"))
        alive = self._clock() - heard < self._policy.ttl_s
        if not alive:
            del state.groups[holder]
        stalled(topic, holder, "slow" if alive else "destroyed", self._policy)

    def _delete(self, state: _Topic, gone: list[Position]) -> None:
        state.trimmed = state.trimmed or bool(gone)
        del state.order[: len(gone)]
        for at in gone:
            del state.entries[at]

    def _expire(self) -> None:
        """Forget idle topics, as Redis does by TTL; looked at once a minute."""
        now = self._clock()
        if now < self._sweep_at:
            return
        self._sweep_at = now + 60
        for topic in [name for name, state in self._topics.items() if now - state.touched > self._policy.ttl_s]:
            if topic not in self._watchers:
                del self._topics[topic]
        oldest = (now - self._policy.dead_letter_ttl_s) * 1000
        self._letters = [letter for letter in self._letters if position(letter.event.offset)[0] > oldest]

    def _lost(self, state: _Topic, place: Position) -> bool:
        return state.trimmed if place == (0, 0) else place not in state.entries

    def _entry(self, topic: str, at: Position, deliveries: int) -> Entry:
        stored = self._topics[topic].entries[at]
        return Entry(decode(stored.type, stored.data, offset_at(at), deliveries=deliveries), stored.only)

    def _again(self, topic: str, members: _Group, at: Position, consumer: str) -> Entry:
        again = members.pending[at].deliveries + 1
        members.pending[at] = _Pending(consumer, again, self._clock())
        return self._entry(topic, at, again)

    def _acknowledge(self, topic: str, group: str, offset: Offset) -> bool:
        state, members = self._group(topic, group)
        at = position(offset)
        if members.pending.pop(at, None) is None:
            return False
        if self._policy.single_group(topic):
            state.order.remove(at)
            del state.entries[at]
        return True
