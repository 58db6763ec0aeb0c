"""Replies in threads the agent is not in, kept for minutes: the mention that brings it in may be delivered after them.

Slack delivers a refused event again after a minute and after five more; what was said meanwhile in its thread would else be lost.
"""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from agent.models.base import File
from agent.thread import Thread
from bot.events import Changed, Said
from workflows.storage import Column, Delete, Insert, Is, Select, Store, Table, Update

OVERHEARD = Table(
    "overheard",
    (
        Column("tenant", "text"),
        Column("thread", "text"),
        Column("id", "text"),
        Column("said", "json"),
        Column("at", "time", default="now"),
    ),
    ("tenant", "thread", "id"),
)
KEPT = timedelta(minutes=10)


class Overheard:
    """Keeps what was said to nobody in particular, and gives it back to the thread the agent joins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, said: Said) -> None:
        """Keep a reply; what is older than ten minutes goes."""
        tenant, now = said.thread.tenant, await self._store.now()
        row = {
            "tenant": tenant,
            "thread": said.thread.key,
            "id": said.id,
            "said": asdict(said) | {"thread": None, "files": [file.model_dump() for file in said.files]},
            "at": now,
        }
        await self._store.write(
            Delete(OVERHEARD, {"tenant": tenant, "at": Is("<", now - KEPT)}), Insert(OVERHEARD, row)
        )

    async def after(self, said: Said) -> list[Said]:
        """What was said in the thread since `said`, oldest first. It stays until it is dropped."""
        where = {"tenant": said.thread.tenant, "thread": said.thread.key, "id": Is(">", said.id)}
        rows = await self._store.read(Select(OVERHEARD, where, order=("id",)))
        return [_said(said.thread, row["said"]) for row in rows]

    async def changed(self, changed: Changed) -> None:
        """Take over an edit of what is kept, or forget it."""
        where = {"tenant": changed.thread.tenant, "thread": changed.thread.key, "id": changed.id}
        if changed.text is None:
            await self._store.write(Delete(OVERHEARD, where))
            return
        said = {"text": changed.text, "quoted": changed.quoted}
        for row in await self._store.read(Select(OVERHEARD, where)):
            await self._store.write(Update(OVERHEARD, where, {"said": {**row["said"], **said}}))

    async def forget(self, tenant: str, channel: str) -> None:
        """Forget what was kept of all threads of a channel, also of those the agent never joins."""
        await self._store.write(Delete(OVERHEARD, {"tenant": tenant, "thread": Is("starts with", f"{channel}:")}))

    async def drop(self, thread: Thread) -> None:
        """Forget what was kept of a thread the agent is in now."""
        await self._store.write(Delete(OVERHEARD, {"tenant": thread.tenant, "thread": thread.key}))


def _said(thread: Thread, values: dict[str, Any]) -> Said:
    shared = tuple(File.model_validate(file) for file in values.get("files", ()))
    return Said(**{**values, "thread": thread, "files": shared})
