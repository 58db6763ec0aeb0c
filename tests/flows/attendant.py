"""Whoever is around a run: gives it its signals, answers its questions, asks it to stop, and lets long waits be over."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from tests.flows.case import Case
from workflows import Engine, Run, RunState
from workflows.errors import StateError
from workflows.storage.base import RunRow

TENANT = "T1"
Hurry = Callable[[timedelta], Awaitable[None]]
"""Moves the clock on."""


class Attendant:
    """Attends one run of a case, from any process: everything it does may be repeated by another one after it died."""

    def __init__(self, engine: Engine, case: Case, run_id: str, *, hurry: Hurry | None = None) -> None:
        self._engine = engine
        self._case = case
        self._name = run_id
        self._hurry = hurry
        self.run_id = run_id

    async def begin(self) -> None:
        """Start the run, unless it was. A run that a signal starts has an id of the engine's own."""
        case = self._case
        key = None if case.key is None else f"{case.key}:{self._name}"
        if case.started_by is None:
            await self._engine.start(case.flow, case.input, tenant=TENANT, key=key, run_id=self.run_id)
            return
        assert key is not None
        outcome = await self._engine.signal_with_start(
            case.flow, tenant=TENANT, key=key, name=case.started_by, dedup_key=f"{self._name}:start", payload=case.input
        )
        if outcome.run_id is not None:
            self.run_id = outcome.run_id
        else:  # accepted before, and the reply was lost: the first run of the key is the one it started
            self.run_id = (await self._engine.runs(tenant=TENANT, workflow=case.flow.id, key=key))[-1].run_id

    async def look(self) -> RunRow:
        """See how the run stands, and do what it needs. Returns how it stood."""
        run: Run[object] = Run(
            self._engine.execution.runs, self._engine.pubsub, self.run_id, tenant=TENANT, workflow=self._case.flow
        )
        row = await run.row()
        if row.state.live:
            await self._signals()
            if self._case.answers:
                await self._answer(run)
            if self._case.stop_at is not None:
                await self._stop(run)
            if row.state is RunState.SUSPENDED:
                await self._wait_no_longer(row.available_at)
        return row

    async def _signals(self) -> None:
        for number, (name, payload) in enumerate(self._case.signals):
            await self._engine.signal(self.run_id, name, payload, tenant=TENANT, dedup_key=f"{self._name}:{number}")

    async def _answer(self, run: Run[object]) -> None:
        for suspension in await run.suspensions():
            answer = self._case.answers[suspension.path][suspension.number]
            try:
                await run.resume(answer, path=suspension.path, number=suspension.number)
            except StateError:  # answered or ended meanwhile
                continue

    async def _stop(self, run: Run[object]) -> None:
        if any(record.path.startswith(self._case.stop_at or "") for record in await run.steps()):
            await run.cancel()

    async def _wait_no_longer(self, due: datetime | None) -> None:
        if self._hurry is None or due is None:
            return
        left = due - await self._engine.store.now()
        if timedelta(seconds=0.5) < left < timedelta(days=1000):
            await self._hurry(left)
