"""Steps: records that finished together, and all that belongs to their commit, under the run's fence."""

import json
from collections.abc import Sequence

from pydantic_core import to_json

from workflows.storage.base import NewRun, Record, RunRow, StepBatch, StepOutcome
from workflows.storage.rows import record, run_row
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.signals import SignalOperations, signalled
from workflows.storage.tables import RUN_COLUMNS

LOAD = "select path, status, output, error, started_at, seq, finished_at from steps where run_id = ?1 order by seq"

RECALL = """
with c as materialized (select substr(path, 1, instr(path, '@') - 1) as loop, max(seq) as seq from steps
                         where run_id = ?1 and status = 'checkpoint' group by 1)
select path, status, output, error, started_at, seq, finished_at from steps s
 where run_id = ?1 and not exists (select 1 from c where s.seq < c.seq
                                     and substr(s.path, 1, length(c.loop) + 1) in (c.loop || '#', c.loop || '@'))
 order by seq
"""
"""Without what the last checkpoint of each loop stands for."""

# ?1 run ?2 paths, as JSON ?3 fence, or null for any
RECORDED = """
select count(*) from steps where run_id = ?1 and path in (select value from json_each(?2)) and (?3 is null or fence = ?3)
"""

# ?1 run ?2 fence ?3 number of records ?4 whether this is the end ?5 inbox seen ?6 output ?7 now
ADVANCE = f"""
update runs set step_seq = step_seq + ?3, attempts = 0,
       state = case when ?4 then 'done' else state end, owner = case when ?4 then null else owner end,
       output = case when ?4 then ?6 else output end, finished_at = case when ?4 then ?7 end
 where run_id = ?1 and fence = ?2 and state = 'running' and (not ?4 or (inbox_seq = ?5 and not cancel_requested))
returning {RUN_COLUMNS}
"""

INSERT_STEP = """
insert into steps (run_id, path, seq, fence, status, output, error, started_at, finished_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
"""

# ?1 run ?2 path of the step ?3 number
CONSUME = "update signals set consumed_by = ?2 where run_id = ?1 and seq = ?3 and consumed_by is null"

STANDING = "select state, fence, inbox_seq, cancel_requested from runs where run_id = ?1"

RUN = f"select {RUN_COLUMNS} from runs where run_id = ?1"


class StepOperations(SignalOperations):
    """Records steps and reads them back."""

    async def load(self, run_id: str, *, whole: bool = True) -> list[Record]:
        def found() -> list[Record]:
            rows = self._rows(LOAD if whole else RECALL, run_id)
            return self._whole([record(SQLITE, row) for row in rows], run_id=run_id)

        return await self._call(found)

    async def step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        return await self._transact(lambda: self._step(run_id, fence, batch), run_id=run_id)

    def _step(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = self._advance(run_id, fence, batch)
        if row is None:
            return self._step_refused(run_id, fence, batch)
        self._record(run_id, fence, row.step_seq, batch.records)
        path = batch.records[0].path if batch.records else "$end"
        for seq in batch.consumed:
            self._one(CONSUME, run_id, path, seq)
        for child in batch.children:
            self._insert_run(child)
        self._apply(batch.writes)
        parent_queue = self._wake_parent(row, batch.successor_id) if batch.done else None
        return StepOutcome(True, not batch.done, row.inbox_seq, row.cancel_requested, parent_queue)

    def _advance(self, run_id: str, fence: int, batch: StepBatch) -> RunRow | None:
        if self._recorded(run_id, batch):
            return None
        seen, output = batch.inbox_seen, batch.output
        row = self._one(ADVANCE, run_id, fence, len(batch.records), batch.done, seen, output, self._now())
        return None if row is None else run_row(SQLITE, row)

    def _recorded(self, run_id: str, batch: StepBatch, fence: int | None = None) -> int:
        paths = json.dumps([each.path for each in batch.records])
        return int(self._one(RECORDED, run_id, paths, fence)[0])

    def _step_refused(self, run_id: str, fence: int, batch: StepBatch) -> StepOutcome:
        row = self._one(STANDING, run_id)
        if row is None:
            return StepOutcome(recorded=False, owned=False, inbox_seq=0, cancel_requested=False)
        state, now_fence, inbox_seq, cancel = row
        mine = bool(batch.records) and self._recorded(run_id, batch, fence) == len(batch.records)
        ended = batch.done and state == "done" and now_fence == fence
        recorded = ended if batch.done else mine
        return StepOutcome(recorded, state == "running" and now_fence == fence, inbox_seq, bool(cancel))

    def _record(self, run_id: str, fence: int, step_seq: int, records: Sequence[Record]) -> None:
        for seq, each in enumerate(records, step_seq - len(records) + 1):
            self._one(
                INSERT_STEP, run_id, each.path, seq, fence, each.status, each.output, SQLITE.encode("json", each.error),
                SQLITE.encode("time", each.started_at), self._now(),
            )  # fmt: skip

    def _wake_parent(self, run: RunRow, successor_id: str) -> str | None:
        """The end of a child is a signal to its parent while that lives, else to its key, if it has one. Returns the queue of who is woken."""
        found = None if run.parent_id is None else self._one(RUN, run.parent_id)
        if found is None:
            return None
        parent = run_row(SQLITE, found)
        name, dedup_key = "task", f"task:{run.run_id}"
        payload = to_json({"run_id": run.run_id, "path": run.parent_path, "state": run.state})
        if parent.state.live:
            return self._post(self._ring(parent.run_id), name, dedup_key, payload).queue
        if parent.key is None or (not signalled(parent) and self._live(parent) is None):
            return None  # a run to wake would have no key, or not the value that its workflow begins with
        new = NewRun(
            f"{successor_id}-p", parent.tenant, parent.workflow, parent.version, parent.key, parent.queue, trace_id=parent.trace_id,
            max_attempts=parent.max_attempts, deployment=parent.deployment,
        )  # fmt: skip
        return self._deliver(new, name, dedup_key, payload).queue
