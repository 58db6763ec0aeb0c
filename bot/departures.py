"""Workspaces without the app, whose data is deleted when its time is over: those that removed it, and those that never had it.

A deletion takes many transactions, so it is claimed first. A workspace may install again until then; while it is being deleted, it has
to wait, so that nothing of the new installation goes with the old data.
"""

from datetime import datetime, timedelta
from typing import Any

import structlog

from workflows.storage import Column, Delete, Insert, Is, Select, Store, StoreUnavailableError, Table, Update, Write

DEPARTURES = Table(
    "departures",
    (
        # Not called `tenant`: forgetting a tenant must not begin with what remembers that it is to be forgotten.
        Column("workspace", "text"),
        Column("due_at", "time"),
        Column("forgetting_until", "time", null=True),
    ),
    ("workspace",),
    shared=True,
)
CLAIM = timedelta(minutes=2)
AGAIN = timedelta(minutes=5)
BATCHES = 50
"""Batches of one round of the clock, so that other sweeps have their turn."""


class Departures:
    """Deletes the data of workspaces that are gone. `kept` is how long it stays after the app was removed."""

    def __init__(self, store: Store, *, kept: timedelta) -> None:
        self._store = store
        self._kept = kept

    async def left(self, workspace: str) -> Write:
        """The write that goes with a removal: the workspace's data is deleted after its retention."""
        values = {"workspace": workspace, "due_at": await self._store.now() + self._kept, "forgetting_until": None}
        return Insert(DEPARTURES, values, on_conflict="replace")

    async def unknown(self, workspace: str, *, kept: timedelta) -> tuple[Write, Write]:
        """The writes that go with what is kept of a workspace nobody knows: nothing of it is deleted sooner than that.

        One that left already keeps its own time. Where a deletion is under way they change nothing, which `deleting` tells afterwards.
        """
        until = await self._store.now() + kept
        # The second one also makes a claim fail that is made at this moment, of a row that is due.
        sooner = {"workspace": workspace, "forgetting_until": None, "due_at": Is("<", until)}
        first = Insert(DEPARTURES, {"workspace": workspace, "due_at": until}, on_conflict="nothing")
        return first, Update(DEPARTURES, sooner, {"due_at": until})

    async def deleting(self, workspace: str) -> bool:
        """Whether what was just kept of a workspace may go with its old data, or stay behind with nothing to delete it."""
        row = await self._row(workspace)
        return row is None or row["forgetting_until"] is not None

    async def returning(self, workspace: str) -> Write:
        """The write that goes with an installation, after which nothing of the workspace is deleted.

        Raises StoreUnavailableError while its old data is being deleted; that takes seconds.
        """
        while (row := await self._row(workspace)) is not None:
            if row["forgetting_until"] is not None:
                raise StoreUnavailableError(f"the old data of {workspace} is being deleted; install again in a minute")
            later = {"due_at": await self._store.now() + self._kept}
            # Put off before the installation is written, so that a clock can't claim it in between.
            if await self._store.write(Update(DEPARTURES, {**row, "forgetting_until": None}, later)):
                break
        return Delete(DEPARTURES, {"workspace": workspace})

    async def due(self) -> list[dict[str, Any]]:
        """The first workspaces whose time is over."""
        now = await self._store.now()
        return await self._store.read(Select(DEPARTURES, {"due_at": Is("<=", now)}, order=("due_at",), limit=20))

    async def forget(self, row: dict[str, Any]) -> int:
        """Delete a due workspace's data if nobody else does, as far as one round goes. Returns how many rows went."""
        if (claim := await self._claimed(row)) is None:
            return 0
        removed = 0
        for _ in range(BATCHES):
            if not (batch := await self._store.forget(row["workspace"])):
                await self._store.write(Delete(DEPARTURES, {"workspace": row["workspace"], "forgetting_until": claim}))
                structlog.get_logger().info("workspace_forgotten", tenant=row["workspace"], rows=removed)
                return removed
            removed += batch
        again = {"forgetting_until": await self._store.now()}  # still being deleted, by whoever comes next
        await self._store.write(Update(DEPARTURES, {"workspace": row["workspace"], "forgetting_until": claim}, again))
        return removed

    async def put_off(self, row: dict[str, Any]) -> None:
        """Whether the workspace has the app can't be told now: look again in a while."""
        later = {"due_at": await self._store.now() + AGAIN}
        await self._store.write(Update(DEPARTURES, {**row, "forgetting_until": None}, later))

    async def drop(self, row: dict[str, Any]) -> None:
        """The workspace has the app: it is not to be forgotten."""
        await self._store.write(Delete(DEPARTURES, {**row, "forgetting_until": None}))

    async def _claimed(self, row: dict[str, Any]) -> datetime | None:
        now = await self._store.now()
        if row["forgetting_until"] is not None and now < row["forgetting_until"]:
            return None
        until = now + CLAIM
        return until if await self._store.write(Update(DEPARTURES, row, {"forgetting_until": until})) else None

    async def _row(self, workspace: str) -> dict[str, Any] | None:
        rows = await self._store.read(Select(DEPARTURES, {"workspace": workspace}))
        return rows[0] if rows else None
