"""Forgetting: everything that was said in a channel is deleted, for good."""

from agent.messages import MESSAGES, PARTICIPATION
from agent.stops import STOPS
from agent.thread import Thread
from workflows.storage import Delete, Select, Store

CONVERSATION = (MESSAGES, STOPS, PARTICIPATION)
"""Participation last: it is where the threads of a channel are found, also after a half-done forgetting."""


async def forget_channel(store: Store, tenant: str, channel: str) -> int:
    """Delete what is stored of a channel's conversations; returns how many there were.

    Killed half way, it can be asked for again. Raises StoreUnavailableError.
    """
    rows = await store.read(Select(PARTICIPATION, {"tenant": tenant}))
    keys = [row["thread"] for row in rows if Thread.of(tenant, row["thread"]).channel == channel]
    for key in keys:
        for table in CONVERSATION:
            await store.write(Delete(table, {"tenant": tenant, "thread": key}))
    return len(keys)
