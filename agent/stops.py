"""Stop: a row by tenant and thread, written before anybody is told. A message older than it is not worked on any more."""

from datetime import datetime

from agent.thread import Thread
from workflows.storage import Column, Insert, Select, Store, Table

STOPS = Table(
    "stops",
    (
        Column("tenant", "text"),
        Column("thread", "text"),
        Column("message_id", "text"),  # the newest message it covers
        Column("by_user", "text"),
        Column("at", "time", default="now"),
    ),
    ("tenant", "thread"),
)


def stopped(thread: Thread, *, message_id: str, by: str, at: datetime) -> Insert:
    """Stop everything in the thread up to `message_id`, and approvals decided before `at`."""
    values = {"tenant": thread.tenant, "thread": thread.key, "message_id": message_id, "by_user": by, "at": at}
    return Insert(STOPS, values, on_conflict="replace")


class Stops:
    """Reads stops."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def at(self, thread: Thread) -> datetime | None:
        """When the last stop was pressed, by the store's clock."""
        rows = await self._store.read(Select(STOPS, {"tenant": thread.tenant, "thread": thread.key}))
        return rows[0]["at"] if rows else None

    async def latest(self, thread: Thread) -> str:
        """The newest message a stop covers; empty if there was none. Message ids sort by time."""
        rows = await self._store.read(Select(STOPS, {"tenant": thread.tenant, "thread": thread.key}))
        return str(rows[0]["message_id"]) if rows else ""
