"""Subscriptions: loops that pull from a log and hand events to one handler, whatever the handler or the server does."""

import asyncio
from abc import ABC, abstractmethod

import structlog

from workflows.pubsub.base import Event, Handler, Offset, OnError, PubSubUnavailableError
from workflows.pubsub.log import BEGINNING, Cursor, Log
from workflows.pubsub.policy import Policy

_log = structlog.get_logger()

_RECONNECT_CAP_S = 2.0


class Subscriber(ABC):
    """One subscription's loop. `wake` makes it look now; without that it looks once per tick of the policy."""

    def __init__(self, log: Log, topic: str, handler: Handler, *, group: str | None, policy: Policy) -> None:
        self.topic = topic
        self.group = group
        self.on_error: OnError | None = None
        self._log = log
        self._handler = handler
        self._policy = policy
        self._awake = asyncio.Event()
        self._stopping = False
        self._loop: asyncio.Task[None] | None = None
        self._handling: asyncio.Task[None] | None = None
        self._flushes: list[asyncio.Future[None]] = []

    @abstractmethod
    async def open(self) -> Offset:
        """Fix the place to begin at; returns the offset from which the topic has to be watched."""

    @abstractmethod
    async def _pull(self) -> bool:
        """Hand out what there is now; False if there was nothing."""

    @abstractmethod
    async def _finish(self) -> None:
        """What remains to do after the last event."""

    def start(self) -> None:
        """Begin to pull."""
        self._loop = asyncio.create_task(self._run(), name=f"pubsub {self.topic} {self.group or ''}")

    def wake(self) -> None:
        """Look now."""
        self._awake.set()

    async def stop(self) -> None:
        """Take no further event, and return when a running handler has, except to that handler itself."""
        self._stopping = True
        self.wake()
        if self._loop is not None and asyncio.current_task() is not self._handling:
            await self._loop

    async def flush(self) -> None:
        """Return when nothing that was published before this call is left to hand out."""
        if self._stopping:
            return
        done = asyncio.get_running_loop().create_future()
        self._flushes.append(done)
        self.wake()
        await done

    async def _run(self) -> None:
        failures = 0
        while not self._stopping:
            self._awake.clear()
            asked = len(self._flushes)
            try:
                busy = await self._pull()
            except Exception as error:
                failures += 1
                self._failed(error)
                await self._tell(error)
                await self._sleep(min(_RECONNECT_CAP_S, 0.05 * 2.0**failures))
                continue
            failures = 0
            if not busy:
                self._flushed(asked)
                await self._sleep(self._idle_s())
        try:
            await self._finish()
        except Exception as error:
            self._failed(error)
        self._flushed(len(self._flushes))

    def _idle_s(self) -> float:
        return self._policy.tick_s

    async def _sleep(self, delay_s: float) -> None:
        try:
            async with asyncio.timeout(delay_s):
                await self._awake.wait()
        except TimeoutError:
            pass

    def _flushed(self, asked: int) -> None:
        for done in self._flushes[:asked]:
            if not done.done():
                done.set_result(None)
        del self._flushes[:asked]

    def _failed(self, error: Exception) -> None:
        unavailable = (
            error if isinstance(error, PubSubUnavailableError) else PubSubUnavailableError(f"{self.topic}: {error!r}")
        )
        if unavailable is not error:  # an outage is logged once, where it is seen; anything else would be silent
            _log.error("pubsub_subscription_failed", topic=self.topic, group=self.group, error=repr(error))
        for done in self._flushes:
            if not done.done():
                done.set_exception(unavailable)
        self._flushes.clear()

    async def _tell(self, error: BaseException) -> None:
        if self.on_error is None:
            return
        try:
            await self.on_error(error)
        except Exception as failure:
            _log.error("pubsub_error_callback_failed", topic=self.topic, group=self.group, error=repr(failure))

    async def _hand(self, event: Event) -> BaseException | None:
        """Run the handler; returns what it raised.

        In a task of its own, so that neither its exceptions nor a cancellation inside it can end this loop.
        """
        self._handling = asyncio.create_task(self._handle(event), name=f"pubsub handler {self.topic} {event.offset}")
        await asyncio.wait({self._handling})
        error = asyncio.CancelledError() if self._handling.cancelled() else self._handling.exception()
        self._handling = None
        if error is not None:
            _log.error(
                "pubsub_handler_failed",
                topic=self.topic,
                group=self.group,
                offset=event.offset,
                type=event.type,
                deliveries=event.deliveries,
                error=repr(error),
            )
            await self._tell(error)
        return error

    async def _handle(self, event: Event) -> None:
        await self._handler(event)


class FanOut(Subscriber):
    """A subscriber without a group: sees every event after its place, and a `gap` where some were lost to it."""

    def __init__(self, log: Log, topic: str, handler: Handler, *, after: Offset | None, policy: Policy) -> None:
        super().__init__(log, topic, handler, group=None, policy=policy)
        self._cursor = None if after is None else Cursor(after, known=True)
        self._late = False

    async def open(self) -> Offset:
        try:
            self._cursor = self._cursor or await self._log.head(self.topic)
        except PubSubUnavailableError:
            self._late = True
            return BEGINNING
        return self._cursor.offset

    async def _pull(self) -> bool:
        if self._cursor is None:
            self._cursor = await self._log.head(self.topic)
        page = await self._log.read(self.topic, self._cursor)
        if page.gap or self._late:
            self._late = False
            await self._hand(Event("gap", kind="gap", offset=self._cursor.offset))
        for entry in page.entries:
            if self._stopping:
                return True
            if entry.only is None:
                await self._hand(entry.event)
        self._cursor = page.cursor
        return bool(page.entries)

    async def _finish(self) -> None:
        return
