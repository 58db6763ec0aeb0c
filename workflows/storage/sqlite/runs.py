"""Runs: started, ended, suspended, listed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from workflows.storage import dialect
from workflows.storage.base import EndOutcome, NewRun, RunRow, RunState, Signal, StartOutcome, own_id
from workflows.storage.rows import run_row, signal
from workflows.storage.runs import RunCursor
from workflows.storage.schema import Write
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.signals import INBOX, OWNED, signalled
from workflows.storage.sqlite.steps import CONSUME, StepOperations
from workflows.storage.tables import RUN_COLUMNS

# ?1 run ?2 fence ?3 state ?4 inbox seen ?5 output ?6 error ?7 now
END = f"""
update runs set state = ?3, owner = null, output = ?5, error = ?6, finished_at = ?7
 where run_id = ?1 and fence = ?2 and state = 'running' and inbox_seq = ?4 returning {RUN_COLUMNS}
"""

# ?1 run ?2 state ?3 fence
ENDED = "select state = ?2 and fence = ?3 from runs where run_id = ?1"

# ?1 run
TENANT_OF = "select tenant from runs where run_id = ?1"

# ?1 run ?2 number ?3 successor ?4 number there
CARRY = "update signals set run_id = ?3, seq = ?4, carried = 1 where run_id = ?1 and seq = ?2"

# ?1 run ?2 number ?3 tenant ?4 workflow ?5 key
BURY = """
insert into dead_signals (tenant, run_id, seq, workflow, key, name, dedup_key, payload, carried, created_at)
select ?3, run_id, seq, ?4, ?5, name, dedup_key, payload, carried, created_at from signals where run_id = ?1 and seq = ?2
"""

# ?1 run ?2 dedup key of a signal
CHILD = "select 1 from runs where run_id = substr(?2, 6) and parent_id = ?1 and ?2 like 'task:%'"

# ?1 run ?2 number
MARK_DEAD = "update signals set consumed_by = '$dead' where run_id = ?1 and seq = ?2"

# ?1 run ?2 fence ?3 inbox seen ?4 until
SUSPEND = """
update runs set state = 'suspended', owner = null, attempts = 0, available_at = ?4
 where run_id = ?1 and fence = ?2 and state = 'running' and inbox_seq = ?3
   and (not cancel_requested or exists (select 1 from steps where run_id = ?1 and status = 'failed')) returning 1
"""

# ?1 run ?2 tenant or null
RUN = f"select {RUN_COLUMNS} from runs where run_id = ?1 and (?2 is null or tenant = ?2)"

# ?1 tenant ?2 workflow ?3 key ?4 states, as JSON ?5 ?6 when the last run of the page before began, its id ?7 limit; each but the last may be null or empty
LIST = f"""
select {RUN_COLUMNS} from runs where (?1 is null or tenant = ?1) and (?2 is null or workflow = ?2) and (?3 is null or key = ?3)
   and (?4 = '[]' or state in (select value from json_each(?4)))
   and (?5 is null or (created_at, run_id) < (?5, ?6))
 order by created_at desc, run_id desc limit ?7
"""


class RunOperations(StepOperations):
    """Starts, ends and lists runs."""

    async def start(self, run: NewRun, *, writes: Sequence[Write] = ()) -> str:
        return (await self.start_owned(run, writes=writes)).run_id

    async def start_owned(self, run: NewRun, *, writes: Sequence[Write] = ()) -> StartOutcome:
        def insert() -> StartOutcome:
            if self._insert_run(run):
                self._apply(writes)
                owned = run.owner is not None and self._one(OWNED, run.run_id, run.owner) is not None
                return StartOutcome(run.run_id, claimed=owned)
            if (taken := self._one(TENANT_OF, run.run_id)) is not None:
                return StartOutcome(own_id(run, taken[0]), claimed=False)
            live = self._live(run)
            assert live is not None, "what kept the run from being inserted is its id or the live run of its key"
            return StartOutcome(live, claimed=False)

        return await self._transact(insert, tenant=run.tenant)

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
        failure = SQLITE.encode("json", error)

        def run() -> EndOutcome:
            row = self._one(END, run_id, fence, state, inbox_seen, output, failure, self._now())
            if row is None:
                again = self._one(ENDED, run_id, state, fence)
                return EndOutcome(ended=bool(again and again[0]), successor=None, carried=0)
            self._apply(writes)
            ended = run_row(SQLITE, row)
            outcome = self._hand_over(ended, successor_id)
            return replace(outcome, parent_queue=self._wake_parent(ended, successor_id))

        return await self._transact(run, run_id=run_id)

    def _hand_over(self, run: RunRow, successor_id: str) -> EndOutcome:
        """Unread signals go to a successor of the same key; those carried before, or that nobody can take up, die. So do those of a run that
        was started with a value, since a successor would have none.
        """
        unread = [signal(SQLITE, row) for row in self._rows(INBOX, run.run_id)]
        unread = [each for each in unread if not each.name.startswith("$")]  # the engine's own die with the run
        followed = run.key is not None and signalled(run)
        fresh = [each for each in unread if not each.carried and followed]
        for each in unread:
            if not followed and self._tells_of_child(run, each):
                self._one(CONSUME, run.run_id, "$end", each.seq)
            elif each not in fresh:
                self._bury(run, each)
        if not fresh:
            return EndOutcome(ended=True, successor=None, carried=0)
        successor = NewRun(
            successor_id, run.tenant, run.workflow, run.version, run.key, run.queue, run.priority, trace_id=successor_id,
            max_attempts=run.max_attempts, deployment=run.deployment,
        )  # fmt: skip
        self._insert_run(successor, inbox_seq=len(fresh))
        for number, each in enumerate(fresh, 1):
            self._one(CARRY, run.run_id, each.seq, successor_id, number)
        return EndOutcome(ended=True, successor=successor_id, carried=len(fresh))

    def _tells_of_child(self, run: RunRow, each: Signal) -> bool:
        """To a run that has no successor it would not have been told at all a moment later, so it is no dead letter."""
        return each.name == "task" and self._one(CHILD, run.run_id, each.dedup_key) is not None

    def _bury(self, run: RunRow, each: Signal) -> None:
        self._one(BURY, run.run_id, each.seq, run.tenant, run.workflow, run.key)
        self._one(MARK_DEAD, run.run_id, each.seq)

    async def suspend(self, run_id: str, fence: int, *, inbox_seen: int, until: datetime | None) -> bool:
        at = dialect.INFINITY if until is None else dialect.micros(until)
        return await self._transact(lambda: self._one(SUSPEND, run_id, fence, inbox_seen, at) is not None)

    async def run(self, run_id: str, *, tenant: str | None = None) -> RunRow | None:
        def found() -> list[RunRow]:
            return self._whole([run_row(SQLITE, row) for row in self._rows(RUN, run_id, tenant)])

        return next(iter(await self._call(found)), None)

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
        wanted = json.dumps(list(states))
        last = None if before is None else RunCursor.parse(before)
        place = (None, None) if last is None else (dialect.micros(last.created_at), last.run_id)
        rows = await self._call(lambda: self._rows(LIST, tenant, workflow, key, wanted, *place, limit))
        return [run_row(SQLITE, row) for row in rows]
