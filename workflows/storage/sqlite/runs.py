"""Runs: started, stepped, ended, suspended, listed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic_core import from_json, to_json

from workflows.storage import dialect
from workflows.storage.base import (
    EndOutcome,
    Hint,
    NewRun,
    Record,
    RunRow,
    RunState,
    Signal,
    StepBatch,
    StepOutcome,
)
from workflows.storage.rows import run_row, signal
from workflows.storage.schema import Write
from workflows.storage.sqlite.database import SQLITE, marks
from workflows.storage.sqlite.signals import INBOX, SignalOperations
from workflows.storage.tables import RUN_COLUMNS


class RunOperations(SignalOperations):
    """Writes runs under their fences."""

    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        def insert() -> str:
            if run.key is not None and (live := self._live(run)) is not None:
                return live
            if self._insert_run(run):
                self._apply(writes)
            return run.run_id

        return await self._transact(insert)

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        return await self._transact(lambda: self._step(run_id, fence, batch))

    def _step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = self._advance(run_id, fence, batch)
        if row is None:
            return self._step_refused(run_id, fence, batch)
        self._record(run_id, fence, row.step_seq, batch.records)
        path = batch.records[0].path if batch.records else "$end"
        for seq in batch.consumed:
            self._one(
                "update signals set consumed_by = ? where run_id = ? and seq = ? and consumed_by is null",
                path,
                run_id,
                seq,
            )
        self._hint(batch.hints)
        for child in batch.children:
            self._insert_run(child)
        self._apply(batch.writes)
        parent = self._wake_parent(row, batch.successor_id) if batch.done else None
        return StepOutcome(
            recorded=True,
            owned=not batch.done,
            inbox_seq=row.inbox_seq,
            cancel_requested=row.cancel_requested,
            parent_run=parent,
        )

    def _advance(self, run_id: str, fence: int, batch: StepBatch) -> RunRow | None:
        if self._existing(run_id, batch):
            return None
        guard = "and inbox_seq = ? and not cancel_requested" if batch.done else ""
        ending = ", state = 'done', owner = null, output = ?, finished_at = ?" if batch.done else ""
        sql = f"update runs set step_seq = step_seq + ?, attempts = 0{ending} where run_id = ? and fence = ? and state = 'running' {guard} returning {RUN_COLUMNS}"
        values = [len(batch.records), *((batch.output, self._now()) if batch.done else ()), run_id, fence]
        row = self._one(sql, *values, *((batch.inbox_seen,) if batch.done else ()))
        return None if row is None else run_row(SQLITE, row)

    def _existing(self, run_id: str, batch: StepBatch, fence: int | None = None) -> int:
        paths = [each.path for each in batch.records]
        clause = "" if fence is None else f" and fence = {int(fence)}"
        sql = f"select count(*) from steps where run_id = ? and path in ({marks(paths)}){clause}"
        return int(self._one(sql, run_id, *paths)[0])

    def _step_refused(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = self._one("select state, fence, inbox_seq, cancel_requested from runs where run_id = ?", run_id)
        if row is None:
            return StepOutcome(recorded=False, owned=False, inbox_seq=0, cancel_requested=False)
        state, now_fence, inbox_seq, cancel = row
        mine = bool(batch.records) and self._existing(run_id, batch, fence) == len(batch.records)
        ended = batch.done and state == "done" and now_fence == fence
        recorded = ended if batch.done else mine
        return StepOutcome(recorded, state == "running" and now_fence == fence, inbox_seq, bool(cancel))

    def _record(self, run_id: str, fence: int, step_seq: int, records: Sequence[Record]) -> None:
        first = step_seq - len(records) + 1
        for offset, each in enumerate(records):
            self._one(
                "insert into steps (run_id, path, seq, fence, status, output, error, started_at, finished_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                run_id, each.path, first + offset, fence, each.status, each.output,
                SQLITE.encode("json", each.error), SQLITE.encode("time", each.started_at), self._now(),
            )  # fmt: skip

    async def end(
        self,
        run_id: str,
        fence: int,
        state: RunState,
        *,
        inbox_seen: int,
        successor_id: str,
        output: bytes | None = None,
        error: dict[str, Any] | None = None,
        writes: Sequence[Write] = (),
    ) -> EndOutcome:
        def run() -> EndOutcome:
            row = self._one(
                "update runs set state = ?, owner = null, output = ?, error = ?, finished_at = ?"
                f" where run_id = ? and fence = ? and state = 'running' and inbox_seq = ? returning {RUN_COLUMNS}",
                state, output, SQLITE.encode("json", error), self._now(), run_id, fence, inbox_seen,
            )  # fmt: skip
            if row is None:
                return self._end_refused(run_id, fence, state)
            self._apply(writes)
            ended = run_row(SQLITE, row)
            outcome = self._hand_over(ended, successor_id)
            self._wake_parent(ended, successor_id)
            return outcome

        return await self._transact(run)

    def _end_refused(self, run_id: str, fence: int, state: RunState) -> EndOutcome:
        row = self._one("select state = ? and fence = ? from runs where run_id = ?", state, fence, run_id)
        return EndOutcome(ended=bool(row and row[0]), successor=None, carried=0)

    def _hand_over(self, run: RunRow, successor_id: str) -> EndOutcome:
        unread = [signal(SQLITE, row) for row in self._rows(INBOX, run.run_id)]
        unread = [each for each in unread if not each.name.startswith("$")]  # the engine's own die with the run
        fresh = [each for each in unread if not each.carried] if run.key is not None else []
        for each in unread:
            if each not in fresh:
                self._bury(run, each)
        if not fresh:
            return EndOutcome(ended=True, successor=None, carried=0)
        successor = NewRun(
            successor_id,
            run.tenant,
            run.workflow,
            run.version,
            run.key,
            run.queue,
            trace_id=successor_id,
            max_attempts=run.max_attempts,
        )
        self._insert_run(successor, inbox_seq=len(fresh))
        for number, each in enumerate(fresh, 1):
            self._one(
                "update signals set run_id = ?, seq = ?, carried = 1 where run_id = ? and seq = ?",
                successor_id, number, run.run_id, each.seq,
            )  # fmt: skip
        return EndOutcome(ended=True, successor=successor_id, carried=len(fresh))

    def _bury(self, run: RunRow, each: Signal) -> None:
        self._one(
            "insert into dead_signals (tenant, run_id, seq, workflow, key, name, dedup_key, payload, carried, created_at)"
            " select ?, run_id, seq, ?, ?, name, dedup_key, payload, carried, created_at from signals where run_id = ? and seq = ?",
            run.tenant, run.workflow, run.key, run.run_id, each.seq,
        )  # fmt: skip
        self._one("update signals set consumed_by = '$dead' where run_id = ? and seq = ?", run.run_id, each.seq)

    async def suspend(self, run_id: str, fence: int, *, inbox_seen: int, until: datetime | None) -> bool:
        at = dialect.INFINITY if until is None else dialect.micros(until)
        sql = (
            "update runs set state = 'suspended', owner = null, attempts = 0, available_at = ?"
            " where run_id = ? and fence = ? and state = 'running' and inbox_seq = ? and not cancel_requested returning 1"
        )
        return await self._transact(lambda: self._one(sql, at, run_id, fence, inbox_seen) is not None)

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None:
        sql = f"select {RUN_COLUMNS} from runs where run_id = ? and (? is null or tenant = ?)"
        row = await self._call(lambda: self._one(sql, run_id, tenant, tenant))
        return None if row is None else run_row(SQLITE, row)

    async def runs(
        self,
        *,
        tenant: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 100,
        before: str | None = None,
    ) -> list[RunRow]:
        filters = {
            "tenant = ?": tenant,
            "workflow = ?": workflow,
            "key = ?": key,
            "(created_at, run_id) < (select created_at, run_id from runs where run_id = ?)": before,
        }
        parts = [part for part, value in filters.items() if value is not None] or ["1"]
        if states:
            parts.append(f"state in ({marks(states)})")
        values = [value for value in filters.values() if value is not None]
        sql = (
            f"select {RUN_COLUMNS} from runs where {' and '.join(parts)} order by created_at desc, run_id desc limit ?"
        )
        return [run_row(SQLITE, row) for row in await self._call(lambda: self._rows(sql, *values, *states, limit))]

    def _wake_parent(self, run: RunRow, successor_id: str) -> str | None:
        if run.parent_id is None:
            return None
        parent = self._one(f"select {RUN_COLUMNS} from runs where run_id = ?", run.parent_id)
        if parent is None or (row := run_row(SQLITE, parent)).key is None:
            return None
        payload = to_json({"run_id": run.run_id, "path": run.parent_path, "state": run.state})
        new = NewRun(
            f"{successor_id}-p",
            row.tenant,
            row.workflow,
            row.version,
            row.key,
            row.queue,
            trace_id=row.trace_id,
            max_attempts=row.max_attempts,
        )
        return self._deliver(new, "task", f"task:{run.run_id}", payload)[0]

    # Hints

    async def drain_hints(self, limit: int = 500) -> list[Hint]:
        if not await self._call(lambda: self._one("select 1 from outbox limit 1")):
            return []
        sql = "delete from outbox where id in (select id from outbox order by id limit ?) returning topic, type, data"
        rows = await self._transact(lambda: self._rows(sql, limit))
        return [Hint(topic, type_, from_json(data)) for topic, type_, data in rows]

    def _hint(self, hints: Sequence[Hint]) -> None:
        for hint in hints:
            self._one(
                "insert into outbox (topic, type, data) values (?, ?, ?)",
                hint.topic,
                hint.type,
                to_json(hint.data).decode(),
            )
