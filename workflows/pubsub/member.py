"""Members of a consumer group: each event is handled by exactly one of them, again after a failure, and at last buried."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable

import structlog

from workflows.pubsub.base import DeadLetter, Handler, Offset, PubSubUnavailableError
from workflows.pubsub.log import BEGINNING, Entry, Log
from workflows.pubsub.policy import Policy
from workflows.pubsub.subscription import Subscriber

_log = structlog.get_logger()

OnDeadLetter = Callable[[DeadLetter], Awaitable[None]]


class GroupMember(Subscriber):
    """One member. It handles one event at a time; more at once are more members.

    What it *holds* is pending for it: running, waiting for its retry, or handled and not yet settled because the server is
    away. All of it is renewed once per tick, so that no other member takes it over while this one lives.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        handler: Handler,
        *,
        group: str,
        consumer: str,
        after: Offset | None,
        policy: Policy,
        on_dead_letter: OnDeadLetter | None,
    ) -> None:
        super().__init__(log, topic, handler, group=group, policy=policy)
        self._consumer = consumer
        self._members = group
        self._after = after or BEGINNING
        self._on_dead_letter = on_dead_letter
        self._held: set[Offset] = set()
        self._retries: list[tuple[float, Offset]] = []
        self._unsettled: dict[Offset, Callable[[], Awaitable[None]]] = {}
        self._sweep_at = 0.0
        self._renewal: asyncio.Task[None] | None = None

    async def open(self) -> Offset:
        try:
            return await self._log.join(self.topic, self._members, after=self._after)
        except PubSubUnavailableError:
            return BEGINNING  # `take` creates the group when the server is back

    def start(self) -> None:
        super().start()
        self._renewal = asyncio.create_task(self._renew(), name=f"pubsub renewal {self.topic} {self.group}")

    async def _pull(self) -> bool:
        await self._settle()
        entry = await self._next()
        if entry is None:
            return False
        self._forget_retry(entry.event.offset)
        await self._deliver(entry)
        return True

    def _forget_retry(self, offset: Offset) -> None:
        self._retries = [retry for retry in self._retries if retry[1] != offset]
        heapq.heapify(self._retries)

    async def _next(self) -> Entry | None:
        """A retry that is due, else what another member left behind, else something new."""
        now = asyncio.get_running_loop().time()
        if self._retries and self._retries[0][0] <= now:
            offset = self._retries[0][1]
            entry = await self._log.retake(self.topic, self._members, self._consumer, offset)
            if entry is not None:
                return entry
            self._forget_retry(offset)
            self._held.discard(offset)
        if now >= self._sweep_at:
            entry = await self._log.steal(self.topic, self._members, self._consumer)
            if entry is not None:
                return entry
            self._sweep_at = now + self._policy.tick_s
        return await self._log.take(self.topic, self._members, self._consumer)

    async def _deliver(self, entry: Entry) -> None:
        event = entry.event
        self._held.add(event.offset)
        if entry.only not in (None, self.group):
            await self._settle(event.offset, self._acknowledgement(event.offset))
        elif event.deliveries > self._policy.max_deliveries:
            await self._settle(event.offset, self._burial(entry, "no member survived handling it"))
        else:
            await self._judge(entry, await self._hand(event))

    async def _judge(self, entry: Entry, error: BaseException | None) -> None:
        event = entry.event
        if error is None:
            await self._settle(event.offset, self._acknowledgement(event.offset))
        elif event.deliveries >= self._policy.max_deliveries:
            await self._settle(event.offset, self._burial(entry, f"{type(error).__name__}: {error}"))
        else:
            due = asyncio.get_running_loop().time() + self._policy.backoff(event.deliveries)
            heapq.heappush(self._retries, (due, event.offset))

    async def _settle(
        self, offset: Offset | None = None, settlement: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Tell the log what became of the events; what it can't be told now is told before anything else is taken."""
        if offset is not None and settlement is not None:
            self._unsettled[offset] = settlement
        for done, settle in list(self._unsettled.items()):
            await settle()
            del self._unsettled[done]
            self._held.discard(done)

    def _acknowledgement(self, offset: Offset) -> Callable[[], Awaitable[None]]:
        return lambda: self._log.acknowledge(self.topic, self._members, offset)

    def _burial(self, entry: Entry, error: str) -> Callable[[], Awaitable[None]]:
        letter = DeadLetter(
            self.topic, self._members, entry.event, error, min(entry.event.deliveries, self._policy.max_deliveries)
        )

        async def bury() -> None:
            await self._log.bury(letter)
            _log.error(
                "dead_letter_recorded",
                topic=letter.topic,
                group=letter.group,
                offset=letter.event.offset,
                error=letter.error,
            )
            await self._announce(letter)

        return bury

    async def _announce(self, letter: DeadLetter) -> None:
        if self._on_dead_letter is None:
            return
        try:
            await self._on_dead_letter(letter)
        except Exception as error:
            _log.error("dead_letter_callback_failed", topic=letter.topic, group=letter.group, error=repr(error))

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._policy.tick_s)
            if self._held:
                try:
                    await self._log.renew(self.topic, self._members, self._consumer, tuple(self._held))
                except Exception as error:
                    if not isinstance(error, PubSubUnavailableError):
                        _log.error("pubsub_renewal_failed", topic=self.topic, group=self.group, error=repr(error))

    def _idle_s(self) -> float:
        now = asyncio.get_running_loop().time()
        return max(0.0, min([self._sweep_at, *(due for due, _ in self._retries[:1])]) - now)

    async def _finish(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        # If this fails, the others take over what is left when it has idled long enough.
        await self._settle()
        await self._log.leave(self.topic, self._members, self._consumer)
