"""Stop: a row by tenant and thread, written before anybody is told. A message older than it is not worked on any more."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agent.approvals import asked_by, withdrawn
from agent.messages import MESSAGES
from agent.thread import Thread
from workflows import Engine, RunState
from workflows.storage import Column, Delete, Insert, Is, Select, Store, Table, Update, Write

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


def stopped(thread: Thread, *, message_id: str, by: str, at: datetime, anew: bool = False) -> tuple[Write, Write]:
    """Stop everything in the thread up to `message_id`, and approvals decided before `at`. Of two stops the later message counts.

    One that comes again changes nothing, unless it was pressed `anew`, with nothing said in between.
    """
    key = {"tenant": thread.tenant, "thread": thread.key}
    values = {"message_id": message_id, "by_user": by, "at": at}
    older = Update(STOPS, {**key, "message_id": Is("<=" if anew else "<", message_id)}, values)
    return Insert(STOPS, {**key, **values}, on_conflict="nothing"), older


LIVE = (RunState.READY, RunState.RUNNING, RunState.SUSPENDED)


class Stopper:
    """Stops what goes on in threads. `turn` names the workflow of a turn."""

    def __init__(self, engine: Engine, *, turn: str) -> None:
        self._engine = engine
        self._turn = turn
        self._stops = Stops(engine.store)

    async def stop(
        self, thread: Thread, *, message_id: str, by: str, anew: bool = False, and_keep: Sequence[Write] = ()
    ) -> bool:
        """The row first, so that a turn that has not begun yet is stopped too; then whoever runs is told. Returns whether anybody was.

        A redelivered Stop finishes what its first copy began, and no turn that was begun after that. `anew`: it is known not to be one.
        `and_keep` is written before anybody is told: once the turn has ended, nothing else would say that there was one to stop.
        Raises StoreUnavailableError.
        """
        store = self._engine.store
        row = stopped(thread, message_id=message_id, by=by, at=await store.now(), anew=anew)
        first = await store.write(*row) > 0
        pressed_at = await self._stops.at(thread)
        live = await self._engine.runs(tenant=thread.tenant, workflow=self._turn, key=thread.key, states=LIVE, limit=1)
        # Clocks are asked only where the row was there before: the database's may go back.
        begun = [run for run in live if first or (pressed_at is not None and run.created_at <= pressed_at)]
        begun = [run for run in begun if await self._covers(thread, run.run_id, message_id)]
        if begun and and_keep:
            await store.write(*and_keep)
        for run in begun:
            await self._withdraw(thread.tenant, run.run_id)
            await self._engine.cancel(run.run_id, tenant=thread.tenant)
        return bool(begun)

    async def stop_own(self, thread: Thread, *, message_id: str, by: str, and_keep: Sequence[Write] = ()) -> bool:
        """Stop what `by`, a guest from another company, asked for up to `message_id`, and nothing of anybody else's.

        What waits of theirs is taken back. A turn at work is ended if it works for nobody else: what others asked for, or what was
        approved, is not a guest's to end. No row is written, which would cover everybody's. Raises StoreUnavailableError.
        """
        store = self._engine.store
        mine = {**_asked(thread), "position": None, "id": Is("<=", message_id)}
        live = await self._engine.runs(tenant=thread.tenant, workflow=self._turn, key=thread.key, states=LIVE, limit=1)
        rows = await store.read(Select(MESSAGES, mine))
        waiting = [row["id"] for row in rows if (row["author"] or {}).get("id") == by]
        begun = [run for run in live if await self._serves_only(thread, run.run_id, by=by, message_id=message_id)]
        gone = [Delete(MESSAGES, {**mine, "id": Is("in", waiting)})] if waiting else []
        if begun or gone:
            await store.write(*(and_keep if begun else ()), *gone)
        for run in begun:
            await self._withdraw(thread.tenant, run.run_id)
            await self._engine.cancel(run.run_id, tenant=thread.tenant)
        return bool(begun)

    async def _serves_only(self, thread: Thread, run_id: str, *, by: str, message_id: str) -> bool:
        """Whether all that a turn has taken in, or would take in next, is one person's, and as old as their stop."""
        store = self._engine.store
        # Notices count, too: a decision that is being carried out is somebody's.
        told = {"tenant": thread.tenant, "thread": thread.key, "role": "user", "heard": False}
        rows = await store.read(Select(MESSAGES, {**told, "run_id": run_id}))
        rows += await store.read(Select(MESSAGES, {**told, "position": None}))
        return bool(rows) and all(
            (row["author"] or {}).get("id") == by and str(row["id"]) <= message_id for row in rows
        )

    async def _withdraw(self, tenant: str, run_id: str) -> None:
        """Nobody is to approve any more what a stopped turn has asked for. Its notice tells so on the cards."""
        asked = asked_by(await self._engine.store.load(run_id))
        if asked:
            await self._engine.store.write(*(withdrawn(tenant, each) for each in asked))

    async def _covers(self, thread: Thread, run_id: str, message_id: str) -> bool:
        """Whether a turn works on something as old as the stop. One delivered late must not end what was asked after it."""
        asked = _asked(thread)
        rows = await self._engine.store.read(Select(MESSAGES, {**asked, "run_id": run_id}))
        rows = rows or await self._engine.store.read(Select(MESSAGES, {**asked, "position": None}))
        return not rows or min(str(row["id"]) for row in rows) <= message_id

    async def live(self, tenant: str, channel: str) -> list[Thread]:
        """The threads of a channel that are worked on, or wait."""
        runs = await self._engine.runs(tenant=tenant, workflow=self._turn, states=LIVE, limit=1000)
        threads = [Thread.of(tenant, run.key) for run in runs if run.key is not None]
        return [each for each in threads if each.channel == channel]


def _asked(thread: Thread) -> dict[str, Any]:
    """The requests of people in a thread."""
    return {"tenant": thread.tenant, "thread": thread.key, "role": "user", "notice": False, "heard": False}


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
