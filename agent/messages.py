"""The transcript: every message of a thread, stored once. Turns refer to it by id and position, never by copy."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from agent.models.base import DELETED, File, Message, Part, Person, Text, ToolResult
from agent.thread import Thread
from agent.window import WINDOW, WINDOW_BYTES, fitting, from_reply, joined, shared, shortened
from workflows.storage import Column, Index, Insert, Is, Select, Store, Table, Update

MESSAGES = Table(
    "messages",
    (
        Column("tenant", "text"),
        Column("thread", "text"),
        Column("id", "text"),  # a person's message: its timestamp; ours: derived from run and step
        Column("position", "int", null=True),  # its place in the conversation; null until a turn takes it in
        Column("role", "text"),
        Column("notice", "bool", default=False),
        Column("author", "json", null=True),
        Column("parts", "json"),
        Column("run_id", "text", null=True),
        Column("at", "time", default="now"),
        Column("heard", "bool", default=False),  # said in the thread, and not to the agent
    ),
    ("tenant", "thread", "id"),
    (Index("messages_window", ("tenant", "thread", "position")), Index("messages_run", ("tenant", "run_id"))),
)

PARTICIPATION = Table(
    "participation",
    (Column("tenant", "text"), Column("thread", "text"), Column("since", "time", default="now")),
    ("tenant", "thread"),
)
"""Threads the agent takes part in: replies there need no mention. Durable, so that a deploy forgets none."""

PARTS: TypeAdapter[tuple[Part, ...]] = TypeAdapter(tuple[Part, ...])
LATEST = "99999999999"
"""Past every root of a thread, whatever the database's collation makes of punctuation."""
FILES_IN = 1_000
"""The messages of a thread, newest first, whose files can still be read."""


class Transcript:
    """Reads the messages of threads, and describes the writes that add to them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading: dict[tuple[str, str, str], asyncio.Future[dict[str, Message]]] = {}

    async def window(
        self, thread: Thread, *, limit: int = WINDOW, limit_bytes: int = WINDOW_BYTES
    ) -> tuple[Message, ...]:
        """The last `limit` messages in order, as far as they fit `limit_bytes`, after the person's message they work on; results of one reply joined."""
        query = Select(MESSAGES, {**_of(thread), "position": Is("!=", None)}, order=("-position", "-at"), limit=limit)
        rows = (await self._store.read(query))[::-1]
        said = shared([shortened(_message(row)) for row in rows], limit_bytes)
        first = fitting(said, limit_bytes)
        if (first == 0 and len(rows) < limit) or said[first].role == "user":
            return joined(said[first:])
        before = await self._request_before(thread, rows[first]["position"])
        return joined((*before, *from_reply(said[first:])))

    async def _request_before(self, thread: Thread, position: int) -> list[Message]:
        """The person's message that a long turn is still working on, when it lies before the window."""
        where = {**_of(thread), "role": "user", "position": Is("<", position)}
        rows = await self._store.read(Select(MESSAGES, where, order=("-position",), limit=1))
        return [shortened(_message(row)) for row in rows]

    async def get(self, thread: Thread, ids: Sequence[str]) -> dict[str, Message]:
        """Messages by id."""
        rows = await self._store.read(Select(MESSAGES, {**_of(thread), "id": Is("in", list(ids))}))
        return {row["id"]: _message(row) for row in rows}

    async def taken(self, thread: Thread, message_id: str, *, by_run: str | None = None) -> Message | None:
        """A message that a turn has taken in (`by_run`: that one), else None."""
        where = {**_of(thread), "id": message_id, "position": Is("!=", None)}
        if by_run is not None:
            where["run_id"] = by_run
        rows = await self._store.read(Select(MESSAGES, where))
        return _message(rows[0]) if rows else None

    async def file(self, thread: Thread, file_id: str) -> File | None:
        """A file that was shared in the thread, by its id."""
        rows = await self._store.read(Select(MESSAGES, {**_of(thread), "role": "user"}, order=("-at",), limit=FILES_IN))
        return next((file for row in rows for file in _message(row).files if file.id == file_id), None)

    async def results(self, thread: Thread, call_ids: Collection[str]) -> dict[str, ToolResult]:
        """The results of calls, by the ids of the messages that hold one each."""
        where = {**_of(thread), "role": "tool", "position": Is("!=", None)}
        rows = await self._store.read(Select(MESSAGES, where, order=("-position",), limit=WINDOW))
        found = [(str(row["id"]), _message(row).parts[0]) for row in rows]
        return {key: part for key, part in found if isinstance(part, ToolResult) and part.call_id in call_ids}

    async def message(self, thread: Thread, message_id: str) -> Message:
        """One message that is there. Those who ask for it at the same time share one read. Raises KeyError."""
        key = (thread.tenant, thread.key, message_id)
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.ensure_future(self.get(thread, [message_id]))
            reading.add_done_callback(lambda _: self._reading.pop(key, None))
        return (await asyncio.shield(reading))[message_id]

    async def said(self, thread: Thread, run_id: str) -> list[Message]:
        """What the agent said in a turn, in order."""
        query = Select(MESSAGES, {"tenant": thread.tenant, "run_id": run_id, "role": "assistant"}, order=("position",))
        return [_message(row) for row in await self._store.read(query)]

    async def next_position(self, thread: Thread) -> int:
        """The first free position."""
        query = Select(MESSAGES, {**_of(thread), "position": Is("!=", None)}, order=("-position",), limit=1)
        rows = await self._store.read(query)
        return int(rows[0]["position"]) + 1 if rows else 1

    async def last_position(self, thread: Thread, run_id: str) -> int:
        """The place of the last message of a turn; of one that has none yet, the last place before it."""
        query = Select(
            MESSAGES, {**_of(thread), "run_id": run_id, "position": Is("!=", None)}, order=("-position",), limit=1
        )
        rows = await self._store.read(query)
        return int(rows[0]["position"]) if rows else await self.next_position(thread) - 1

    async def positions(self, thread: Thread, ids: Sequence[str]) -> dict[str, int]:
        """The places of messages by their ids, as far as they have one."""
        rows = await self._store.read(Select(MESSAGES, {**_of(thread), "id": Is("in", list(ids))}))
        return {row["id"]: row["position"] for row in rows if row["position"] is not None}

    async def last_said(self, thread: Thread, *, until: datetime | None = None) -> str:
        """The id of the newest message of a person, of those stored by `until`; empty if there is none. Message ids sort by time."""
        where: dict[str, Any] = {"tenant": thread.tenant, "thread": thread.key, "role": "user", "notice": False}
        if until is not None:
            where["at"] = Is("<=", until)
        rows = await self._store.read(Select(MESSAGES, where, order=("-id",), limit=1))
        return str(rows[0]["id"]) if rows else ""

    async def elsewhere(self, thread: Thread, *, by: str, limit: int) -> list[tuple[str, Message]]:
        """What a person said to the agent in other threads of the channel, with when, the newest first; at most `limit` messages are read."""
        where = {"tenant": thread.tenant, "role": "user", "thread": Is("<=", f"{thread.channel}:{LATEST}")}
        rows = await self._store.read(Select(MESSAGES, where, order=("-thread", "-id"), limit=limit))
        ours = [row for row in rows if row["thread"].startswith(f"{thread.channel}:") and row["thread"] != thread.key]
        said = [(row["at"].isoformat(timespec="seconds"), _message(row)) for row in ours if not row["notice"]]
        return [
            (at, each) for at, each in said if each.author and each.author.id == by and not each.heard and each.text
        ]

    async def takes_part(self, thread: Thread) -> bool:
        """Whether the agent takes part in a thread."""
        return bool(await self._store.read(Select(PARTICIPATION, _of(thread))))


def arrived(thread: Thread, message_id: str, message: Message) -> Insert:
    """A person's message, as it is accepted."""
    return Insert(MESSAGES, _row(thread, message_id, message))


def taken_in(thread: Thread, message_id: str, *, author: Person, position: int, run_id: str) -> Update:
    """A turn takes a message in, with what is known of its author now."""
    values = {"position": position, "run_id": run_id, "author": author.model_dump()}
    return Update(MESSAGES, {**_of(thread), "id": message_id}, values)


def reworded(thread: Thread, message_id: str, parts: tuple[Part, ...]) -> Update:
    """A message that says something else in its place: its author changed it while the turn that took it in is still at work, or a picture
    in it proved to be none.
    """
    return Update(MESSAGES, {**_of(thread), "id": message_id}, {"parts": PARTS.dump_python(parts, mode="json")})


def recalled(thread: Thread, message_id: str, message: Message, *, position: int, run_id: str) -> Insert:
    """A message that stood in the thread before the agent came; its place is before all that came since: `position` is 0 or less."""
    return added(thread, message_id, message, position=position, run_id=run_id)


def withdrawn(thread: Thread, message_id: str) -> Update:
    """A message whose author deleted it after a turn had taken it in: its words go, its place stays."""
    parts = PARTS.dump_python((Text(text=DELETED),), mode="json")
    return Update(MESSAGES, {**_of(thread), "id": message_id}, {"parts": parts})


def added(thread: Thread, message_id: str, message: Message, *, position: int, run_id: str) -> Insert:
    """A message of the turn's own: the model's, a tool's, a notice."""
    return Insert(MESSAGES, {**_row(thread, message_id, message), "position": position, "run_id": run_id})


def joins(thread: Thread) -> Insert:
    """The agent takes part in this thread from now on."""
    return Insert(PARTICIPATION, _of(thread))


def _of(thread: Thread) -> dict[str, Any]:
    return {"tenant": thread.tenant, "thread": thread.key}


def _row(thread: Thread, message_id: str, message: Message) -> dict[str, Any]:
    return {
        **_of(thread),
        "id": message_id,
        "role": message.role,
        "notice": message.notice,
        "author": message.author.model_dump() if message.author else None,
        "parts": PARTS.dump_python(message.parts, mode="json"),
        **({"heard": True} if message.heard else {}),
    }


def _message(row: dict[str, Any]) -> Message:
    author = Person.model_validate(row["author"]) if row["author"] else None
    return Message(
        role=row["role"],
        parts=PARTS.validate_python(row["parts"]),
        author=author,
        notice=row["notice"],
        heard=bool(row["heard"]),
    )
