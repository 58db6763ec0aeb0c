"""The bus over a log: what every backend's publish, subscribe, unsubscribe, flush and close share."""

import uuid

from workflows.pubsub.base import DeadLetter, Event, Handler, Offset, OnError, Subscription
from workflows.pubsub.log import Log, offset_at, position
from workflows.pubsub.member import GroupMember, OnDeadLetter
from workflows.pubsub.policy import Policy
from workflows.pubsub.subscription import FanOut, Subscriber


class Bus:
    """A `PubSub` over any `Log`. `consumer` is this process's name in groups: its worker id, if it is a worker.

    `on_dead_letter` is awaited after an event was buried; what it raises is logged.
    """

    def __init__(
        self, log: Log, *, policy: Policy, consumer: str | None = None, on_dead_letter: OnDeadLetter | None = None
    ) -> None:
        self._log = log
        self._policy = policy
        self.consumer = consumer or uuid.uuid4().hex
        self._on_dead_letter = on_dead_letter
        self._subscribers: list[Subscriber] = []
        self._members = 0

    async def publish(self, topic: str, event: Event) -> Offset:
        """Append `event` to `topic`; returns its offset.

        Raises PubSubUnavailableError if the backend can't be reached, and ValueError for data that is no JSON object or larger
        than the policy's `max_bytes`.
        """
        _check("topic", topic)
        return await self._log.append(topic, event)

    async def subscribe(
        self,
        topic: str,
        handler: Handler,
        *,
        group: str | None = None,
        after: Offset | None = None,
        on_error: OnError | None = None,
    ) -> Subscription:
        """See every event from now on or after `after`; with `group`, share the events with its other members.

        `on_error` is told what the handler raised, and what kept the subscription from going on for a while: both are logged all the
        same, and neither ends it.

        A new group begins after `after`, or else at the oldest entry that is still there. An unreachable backend is no error:
        the subscription begins when it comes back, without a group with a `gap` event. Raises ValueError for a malformed offset.
        """
        _check("topic", topic)
        if after is not None:
            after = offset_at(position(after))
        subscriber = self._subscriber(topic, handler, group, after)
        subscriber.on_error = on_error
        start = await subscriber.open()
        self._subscribers.append(subscriber)
        await self._log.watch(topic, subscriber.wake, after=start)
        subscriber.start()
        return subscriber

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Stop it, and return when a handler that is running has (a handler may unsubscribe itself)."""
        for subscriber in self._subscribers:
            if subscriber is subscription:
                self._subscribers.remove(subscriber)
                await self._log.unwatch(subscriber.topic, subscriber.wake)
                await subscriber.stop()
                return

    async def flush(self) -> None:
        """Return when everything published so far by this process has been handed to its local subscribers.

        An event that failed and waits for its retry counts as handed. Raises PubSubUnavailableError.
        """
        for subscriber in tuple(self._subscribers):
            await subscriber.flush()

    async def close(self) -> None:
        """Stop all subscriptions, awaiting their handlers, and free the connections."""
        for subscriber in tuple(self._subscribers):
            await self.unsubscribe(subscriber)
        await self._log.close()

    async def dead_letters(self, topic: str | None = None) -> list[DeadLetter]:
        """The events that groups gave up on, of one topic or of all, oldest first. Raises PubSubUnavailableError."""
        return await self._log.dead_letters(topic)

    async def redrive(self, letter: DeadLetter) -> Offset:
        """Give a dead letter to its group once more, with all its deliveries ahead of it.

        Raises LookupError if it was redriven before or has expired, and PubSubUnavailableError.
        """
        return await self._log.redrive(letter)

    async def drop(self, letter: DeadLetter) -> None:
        """Forget a dead letter: nobody will handle it. Raises as `redrive` does."""
        await self._log.drop(letter)

    async def erase(self, topic: str) -> None:
        """Forget all that is in a topic and its dead letters, for good. Raises PubSubUnavailableError."""
        _check("topic", topic)
        await self._log.erase(topic)

    def _subscriber(self, topic: str, handler: Handler, group: str | None, after: Offset | None) -> Subscriber:
        if group is None:
            return FanOut(self._log, topic, handler, after=after, policy=self._policy)
        _check("group", group)
        self._members += 1
        return GroupMember(
            self._log,
            topic,
            handler,
            group=group,
            consumer=f"{self.consumer}-{self._members}",
            after=after,
            policy=self._policy,
            on_dead_letter=self._on_dead_letter,
        )


def _check(what: str, name: str) -> None:
    if not name or len(name) > 512 or not name.isprintable():
        raise ValueError(
            f"{name!r} is no {what}: it must be 1 to 512 printable characters, such as 'T1:thread:C1:171.5'"
        )
