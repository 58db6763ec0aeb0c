"""Direct messages of several people. Their ids look like channels', and only Slack's events say what they are."""

from agent.thread import Thread
from workflows.storage import Column, Insert, Select, Store, Table

GROUPS = Table("groups", (Column("tenant", "text"), Column("channel", "text")), ("tenant", "channel"))


class Groups:
    """Remembers them: asking Slack would need a scope for each kind of conversation that it is not."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, thread: Thread) -> None:
        """Its channel is one. Raises StoreUnavailableError."""
        row = {"tenant": thread.tenant, "channel": thread.channel}
        await self._store.write(Insert(GROUPS, row, on_conflict="nothing"))

    async def has(self, thread: Thread) -> bool:
        """Whether a thread is in one. Raises StoreUnavailableError."""
        return bool(await self._store.read(Select(GROUPS, {"tenant": thread.tenant, "channel": thread.channel})))
