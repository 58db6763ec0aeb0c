"""What an operator does with runs: forks, redrives, counts."""

import json

from workflows.storage.base import Census, Fork, NewRun, RedriveOutcome, RunRow, RunState
from workflows.storage.dialect import INFINITY
from workflows.storage.rows import run_row
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.signals import SignalOperations
from workflows.storage.tables import LIVE, RUN_COLUMNS

# ?1 run ?2 tenant
FORKED = "select 1 from runs where run_id = ?1 and tenant = ?2"
ENDED_RUN = f"select {RUN_COLUMNS} from runs where run_id = ?1 and tenant = ?2 and not {LIVE}"
DEAD_RUN = f"select {RUN_COLUMNS} from runs where run_id = ?1 and tenant = ?2 and state = 'dead'"

# ?1 new run ?2 source ?3 cut ?4 last number
MARK_FORKED = "update runs set forked_from = ?2, forked_seq = ?3, step_seq = ?4 where run_id = ?1"

# ?1 new run ?2 source ?3 cut ?4 paths left out, as JSON
COPY_STEPS = """
insert into steps (run_id, path, seq, fence, status, output, error, started_at, finished_at)
select ?1, path, seq, 0, status, output, error, started_at, finished_at from steps
 where run_id = ?2 and seq < ?3 and path not in (select value from json_each(?4))
"""

ADD_STEP = """
insert into steps (run_id, path, seq, fence, status, output, started_at, finished_at) values (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7)
"""

# ?1 new run ?2 source
COPY_SIGNALS = """
insert into signals (run_id, seq, name, dedup_key, payload, created_at, carried, consumed_by)
select ?1, s.seq, s.name, s.dedup_key, s.payload, s.created_at, s.carried,
       (select k.path from steps k where k.run_id = ?1 and k.path = s.consumed_by)
  from signals s where s.run_id = ?2 and s.name not in ('$cancel', '$step', '$go-on')
   and (s.name not like '$resume:%' or exists (select 1 from steps k where k.run_id = ?1 and k.path = s.consumed_by))
"""

# ?1 run ?2 now
REDRIVE = """
update runs set state = 'ready', attempts = 0, fence = fence + 1, owner = null, error = null, output = null, finished_at = null,
       cancel_requested = 0, available_at = ?2 where run_id = ?1
"""

# ?1 run
FORGET_CANCEL = "delete from signals where run_id = ?1 and name = '$cancel'"
"""Of a former life: left there, the next cancel would be taken for a copy of it."""

CENSUS = f"""
select workflow, version, state, count(*),
       min(case when state in ('ready', 'suspended') and available_at < {INFINITY} then available_at end)
  from runs where {LIVE} or state = 'dead' group by workflow, version, state order by workflow, version, state
"""


class OperatorOperations(SignalOperations):
    """Copies ended runs and puts dead ones back."""

    async def fork(self, fork: Fork) -> bool:
        def copy() -> bool:
            if self._one(FORKED, fork.run_id, fork.tenant):
                return True
            row = self._one(ENDED_RUN, fork.source, fork.tenant)
            if row is None:
                return False
            self._copy_run(fork, run_row(SQLITE, row))
            self._copy_records(fork)
            self._one(COPY_SIGNALS, fork.run_id, fork.source)
            return True

        return await self._transact(copy, tenant=fork.tenant)

    def _copy_run(self, fork: Fork, source: RunRow) -> None:
        new = NewRun(
            fork.run_id, source.tenant, source.workflow, source.version, queue=source.queue, priority=source.priority, input=fork.input,
            trace_id=fork.run_id, deployment=source.deployment, max_attempts=source.max_attempts, paused=fork.paused,
        )  # fmt: skip
        self._insert_run(new, inbox_seq=source.inbox_seq)
        self._one(MARK_FORKED, fork.run_id, fork.source, fork.cut, fork.cut - 1 + len(fork.records))

    def _copy_records(self, fork: Fork) -> None:
        self._one(COPY_STEPS, fork.run_id, fork.source, fork.cut, json.dumps(fork.leave_out))
        for seq, record in enumerate(fork.records, start=fork.cut):
            self._one(
                ADD_STEP, fork.run_id, record.path, seq, record.status, record.output, SQLITE.encode("time", record.started_at),
                self._now(),
            )  # fmt: skip

    async def redrive(self, run_id: str, *, tenant: str) -> RedriveOutcome:
        def put_back() -> RedriveOutcome:
            row = self._one(DEAD_RUN, run_id, tenant)
            if row is None:
                return RedriveOutcome(redriven=False, live=None)
            dead = run_row(SQLITE, row)
            if dead.key is not None and (live := self._live(dead)) is not None:
                return RedriveOutcome(redriven=False, live=live)
            self._one(REDRIVE, run_id, self._now())
            self._one(FORGET_CANCEL, run_id)
            return RedriveOutcome(redriven=True, live=None)

        return await self._transact(put_back)

    async def census(self) -> list[Census]:
        rows = await self._call(lambda: self._rows(CENSUS))
        return [Census(row[0], row[1], RunState(row[2]), row[3], SQLITE.decode("time", row[4])) for row in rows]
