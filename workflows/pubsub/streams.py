"""The log on Redis Streams: keys, scripts and their replies. What subscriptions do with it is theirs."""

import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from redis.asyncio import Redis

from workflows.pubsub import scripts
from workflows.pubsub.base import DeadLetter, Event, Offset, PubSubUnavailableError
from workflows.pubsub.log import Cursor, Entry, Page, Wake, decode, encode, gone, stalled
from workflows.pubsub.outage import UNREACHABLE, Outage, a_call
from workflows.pubsub.policy import Policy
from workflows.pubsub.reader import PartitionReader

_CONNECTIONS = 16


class StreamLog:
    """A `Log` of one stream per topic: `<prefix>:{p0}:T1:thread:C1:17`, dead letters in `<prefix>:dead:{p0}:T1:thread:C1:17`.

    The hash tag is the topic's partition, so that one blocking read covers all topics of a partition under Redis Cluster too.
    `blocking` makes a client for a partition's blocking read. A call takes `timeout_s` at most.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        blocking: Callable[[], "Redis"],
        prefix: str,
        partitions: int,
        consumer: str,
        policy: Policy,
        block_ms: int,
        timeout_s: float,
    ) -> None:
        self._client: Any = client
        self._blocking = blocking
        self._prefix = prefix
        self._partitions = partitions
        self._consumer = consumer
        self._policy = policy
        self._block_ms = block_ms
        self._timeout_s = timeout_s
        self._ttl_ms = policy.ttl_s * 1000
        self._scripts: dict[str, Any] = {}
        self._slots = asyncio.Semaphore(
            _CONNECTIONS
        )  # a thousand publishers share these connections instead of opening theirs
        self._calls: set[asyncio.Task[Any]] = set()
        self._outage = Outage()
        self._readers: dict[int, PartitionReader] = {}

    async def append(self, topic: str, event: Event) -> Offset:
        data = encode(topic, event, max_bytes=self._policy.max_bytes)
        if self._outage.hopeless:
            raise PubSubUnavailableError("Redis did not answer a moment ago; it is not asked again yet")
        limits = (self._policy.max_len, self._policy.stall_len)
        offset, group, state = await self._run(scripts.APPEND, topic, event.type, data, "", *limits)
        if group:
            stalled(topic, group, state, self._policy)
        return str(offset)

    async def head(self, topic: str) -> Cursor:
        offset, known = await self._run(scripts.HEAD, topic)
        return Cursor(offset, known=bool(known))

    async def read(self, topic: str, cursor: Cursor) -> Page:
        strict = cursor.known and not self._policy.single_group(topic)
        gap, start, rows = await self._run(scripts.READ, topic, cursor.offset, int(strict))
        entries = tuple(_entry(row) for row in rows)
        if entries:
            return Page(entries, Cursor(entries[-1].event.offset, known=True), gap=bool(gap))
        return Page((), Cursor(start, known=cursor.known and not gap), gap=bool(gap))

    async def join(self, topic: str, group: str, *, after: Offset) -> Offset:
        return str(await self._run(scripts.JOIN, topic, group, after))

    async def take(self, topic: str, group: str, consumer: str) -> Entry | None:
        return _optional(await self._run(scripts.TAKE, topic, group, consumer))

    async def retake(self, topic: str, group: str, consumer: str, offset: Offset) -> Entry | None:
        return _optional(await self._run(scripts.RETAKE, topic, group, consumer, offset))

    async def steal(self, topic: str, group: str, consumer: str) -> Entry | None:
        return _optional(await self._run(scripts.STEAL, topic, group, consumer, self._policy.min_idle_ms))

    async def renew(self, topic: str, group: str, consumer: str, offsets: Collection[Offset]) -> None:
        await self._run(scripts.RENEW, topic, group, consumer, *offsets)

    async def acknowledge(self, topic: str, group: str, offset: Offset) -> None:
        await self._run(scripts.ACKNOWLEDGE, topic, group, offset, self._single(topic))

    async def bury(self, letter: DeadLetter) -> None:
        event = letter.event
        data = encode(letter.topic, event, max_bytes=self._policy.max_bytes)
        identity = ("offset", event.offset, "type", event.type, "data", data, "group", letter.group)
        end = ("error", letter.error[:2000], "deliveries", letter.deliveries)
        ttl_ms = self._policy.dead_letter_ttl_s * 1000
        await self._run(
            scripts.BURY, letter.topic, letter.group, event.offset, self._single(letter.topic), ttl_ms, *identity, *end
        )

    async def leave(self, topic: str, group: str, consumer: str) -> None:
        await self._run(scripts.LEAVE, topic, group, consumer, self._policy.min_idle_ms)

    async def dead_letters(self, topic: str | None) -> list[DeadLetter]:
        letters: list[DeadLetter] = await self._in_time(lambda: self._dead_letters(topic))
        return letters

    async def redrive(self, letter: DeadLetter) -> Offset:
        data = encode(letter.topic, letter.event, max_bytes=self._policy.max_bytes)
        offset = await self._run(
            scripts.REDRIVE, letter.topic, letter.group, letter.event.offset, letter.event.type, data
        )
        if not offset:
            raise gone(letter)
        return str(offset)

    async def drop(self, letter: DeadLetter) -> None:
        if not await self._run(scripts.DROP, letter.topic, letter.group, letter.event.offset):
            raise gone(letter)

    async def erase(self, topic: str) -> None:
        await self._run(scripts.ERASE, topic)

    async def watch(self, topic: str, wake: Wake, *, after: Offset) -> None:
        await self._reader(topic).watch(self._key(topic), wake, after=after)

    async def unwatch(self, topic: str, wake: Wake) -> None:
        self._reader(topic).unwatch(self._key(topic), wake)

    async def close(self) -> None:
        for reader in self._readers.values():
            await reader.close()
        if self._calls:
            await asyncio.wait(self._calls)
        await self._client.aclose()

    def _reader(self, topic: str) -> PartitionReader:
        partition = self._partition(topic)
        if partition not in self._readers:
            control = f"{self._prefix}:reader:{{p{partition}}}:{self._consumer}"
            self._readers[partition] = PartitionReader(
                self._blocking(),
                control=control,
                poke=lambda: self._poke(control),
                block_ms=self._block_ms,
                grace_s=self._timeout_s,
                outage=self._outage,
            )
        return self._readers[partition]

    async def _poke(self, control: str) -> None:
        await self._call(scripts.POKE, [control], [self._ttl_ms])

    async def _run(self, script: str, topic: str, *arguments: str | int) -> Any:
        return await self._call(script, [self._key(topic), self._dead_key(topic)], [self._ttl_ms, *arguments])

    async def _call(self, script: str, keys: list[str], arguments: list[str | int]) -> Any:
        if script not in self._scripts:
            self._scripts[script] = self._client.register_script(script)
        return await self._in_time(lambda: self._scripts[script](keys=keys, args=arguments))

    async def _dead_letters(self, topic: str | None) -> list[DeadLetter]:
        start = f"{self._prefix}:dead:"
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", start) + "*"
        keys = (
            [self._dead_key(topic)]
            if topic is not None
            else [key async for key in self._client.scan_iter(match=pattern)]
        )
        letters = []
        for key in sorted(keys):
            rows = await self._client.xrange(key)
            letters += [_letter(key.removeprefix(start).split(":", 1)[1], fields) for _, fields in rows]
        return letters

    async def _in_time(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """The call's result. Raises PubSubUnavailableError, after `timeout_s` at most.

        The call runs in a task of its own and is left behind when its time is up: cancelled while it connects to a frozen
        server, redis-py 8.1 may go on until its own limit.
        """
        task = asyncio.create_task(self._with_slot(call))
        self._calls.add(task)
        task.add_done_callback(self._forget)
        try:
            done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
            if not done:
                raise TimeoutError(f"no answer within {self._timeout_s} s")
            result = task.result()
        except (*UNREACHABLE, TimeoutError) as error:
            self._outage.failed(error)
            raise PubSubUnavailableError(f"Redis does not answer: {type(error).__name__}: {error}") from error
        finally:
            task.cancel()
        self._outage.succeeded()
        return result

    async def _with_slot(self, call: Callable[[], Awaitable[Any]]) -> Any:
        async with self._slots:
            with a_call():
                return await call()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, or asyncio complains about the ones left behind

    def _partition(self, topic: str) -> int:
        return zlib.crc32(topic.encode()) % self._partitions

    def _key(self, topic: str) -> str:
        return f"{self._prefix}:{{p{self._partition(topic)}}}:{topic}"

    def _dead_key(self, topic: str) -> str:
        return f"{self._prefix}:dead:{{p{self._partition(topic)}}}:{topic}"

    def _single(self, topic: str) -> int:
        return int(self._policy.single_group(topic))


def _entry(row: list[Any]) -> Entry:
    offset, type_, data, only, deliveries = row
    return Entry(decode(type_, data, offset, deliveries=deliveries), only or None)


def _optional(row: list[Any] | None) -> Entry | None:
    return _entry(row) if row else None


def _letter(topic: str, fields: dict[str, str]) -> DeadLetter:
    deliveries = int(fields["deliveries"])
    event = decode(fields["type"], fields["data"], fields["offset"], deliveries=deliveries)
    return DeadLetter(topic, fields["group"], event, fields["error"], deliveries)
