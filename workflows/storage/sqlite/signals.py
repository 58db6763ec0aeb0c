"""Signals, and what brings them to a run: the live one of a key, or a new one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from workflows.storage import dialect
from workflows.storage.base import NewRun, RunRow, Signal, SignalOutcome
from workflows.storage.rows import signal
from workflows.storage.schema import Write
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.rows import Rows
from workflows.storage.tables import LIVE, SIGNAL_COLUMNS

# ?1 tenant ?2 dedup key
RECEIVE = "insert into received (tenant, dedup_key) values (?1, ?2) on conflict do nothing returning 1"

# ?1 tenant ?2 workflow ?3 key
LIVE_RUN = f"select run_id from runs where tenant = ?1 and workflow = ?2 and key = ?3 and {LIVE}"

INSERT_RUN = """
insert into runs (run_id, tenant, workflow, version, key, queue, priority, input, trace_id, deployment, parent_id, parent_path,
                  max_attempts, available_at, inbox_seq, paused, state, owner, fence, attempts)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, case when lives then 'running' else 'ready' end,
       case when lives then ?17 end, lives, lives from (select exists (select 1 from workers where worker_id = ?17) as lives)
 where true on conflict do nothing returning owner
"""
"""With an owner that has not been reaped it is inserted as that worker's."""

# ?1 run ?2 owner
OWNED = "select 1 from runs where run_id = ?1 and owner = ?2"

# ?1 run ?2 now
RING = """
update runs set inbox_seq = inbox_seq + 1, available_at = case state when 'suspended' then ?2 else available_at end,
       state = case state when 'suspended' then 'ready' else state end where run_id = ?1 returning inbox_seq, queue
"""
"""What accepting a signal does to a live run: count it, and wake the run if it sleeps."""

# ?1 run ?2 number ?3 name ?4 dedup key ?5 payload
POST = "insert into signals (run_id, seq, name, dedup_key, payload) values (?1, ?2, ?3, ?4, ?5) on conflict do nothing"

# ?1 run ?2 dedup key
POSTED = "select 1 from signals where run_id = ?1 and dedup_key = ?2"

# ?1 run ?2 tenant ?3 whether it is a cancel
ADMIT = f"update runs set cancel_requested = cancel_requested or ?3 where run_id = ?1 and tenant = ?2 and {LIVE} returning 1"
"""A cancel also sets the flag, so that neither a suspension nor the end can pass it."""

# ?1 run ?2 dedup key
SIGNAL_BY_KEY = f"select {SIGNAL_COLUMNS} from signals where run_id = ?1 and dedup_key = ?2"

INBOX = f"select {SIGNAL_COLUMNS} from signals where run_id = ?1 and consumed_by is null order by seq"


class Rung(NamedTuple):
    """A run that a signal is for, the number the signal has there, and the queue of the run."""

    run_id: str
    seq: int
    queue: str


class SignalOperations(Rows):
    """Accepts signals."""

    async def signal_with_start(
        self, run: NewRun, *, name: str, dedup_key: str, payload: bytes | None, writes: Sequence[Write] = ()
    ) -> SignalOutcome:
        def accept() -> SignalOutcome:
            if self._one(RECEIVE, run.tenant, dedup_key) is None:
                return SignalOutcome(run_id=None, seq=None, started=False, duplicate=True)
            self._apply(writes)
            to = self._deliver(run, name, dedup_key, payload)
            started = to.run_id == run.run_id
            claimed = started and run.owner is not None and self._one(OWNED, run.run_id, run.owner) is not None
            return SignalOutcome(to.run_id, to.seq, started, duplicate=False, claimed=claimed, queue=to.queue)

        return await self._transact(accept, tenant=run.tenant)

    def _deliver(self, run: NewRun, name: str, dedup_key: str, payload: bytes | None) -> Rung:
        """To the live run of the key, or to this one anew."""
        return self._post(self._reach(run), name, dedup_key, payload)

    def _post(self, to: Rung, name: str, dedup_key: str, payload: bytes | None) -> Rung:
        self._one(POST, to.run_id, to.seq, name, dedup_key, payload)
        return to

    def _reach(self, run: NewRun) -> Rung:
        if (live := self._live(run)) is not None:
            return self._ring(live)
        self._insert_run(run, inbox_seq=1)
        return Rung(run.run_id, 1, run.queue)

    def _ring(self, run_id: str) -> Rung:
        seq, queue = self._one(RING, run_id, self._now())
        return Rung(run_id, seq, queue)

    async def signal(
        self, run_id: str, *, tenant: str, name: str, dedup_key: str, payload: bytes | None
    ) -> SignalOutcome:
        def accept() -> SignalOutcome:
            if self._one(POSTED, run_id, dedup_key):
                return SignalOutcome(run_id=None, seq=None, started=False, duplicate=True)
            if self._one(ADMIT, run_id, tenant, int(name == "$cancel")) is None:
                return SignalOutcome(run_id=None, seq=None, started=False, duplicate=False)
            to = self._post(self._ring(run_id), name, dedup_key, payload)
            return SignalOutcome(run_id, to.seq, started=False, duplicate=False, queue=to.queue)

        return await self._transact(accept, tenant=tenant)

    async def signal_payload(self, run_id: str, dedup_key: str) -> bytes | None:
        found = await self._call(lambda: self._signals(SIGNAL_BY_KEY, run_id, dedup_key))
        return next((each.payload or b"null" for each in found), None)

    async def inbox(self, run_id: str) -> list[Signal]:
        return await self._call(lambda: self._signals(INBOX, run_id))

    def _signals(self, sql: str, run_id: str, *parameters: Any) -> list[Signal]:
        found = [signal(SQLITE, row) for row in self._rows(sql, run_id, *parameters)]
        return self._whole(found, run_id=run_id)

    def _live(self, run: NewRun | RunRow) -> str | None:
        row = self._one(LIVE_RUN, run.tenant, run.workflow, run.key)
        return None if row is None else str(row[0])

    def _insert_run(self, run: NewRun, *, inbox_seq: int = 0) -> bool:
        at = self._now() if run.available_at is None else dialect.micros(run.available_at)
        row = self._one(
            INSERT_RUN, run.run_id, run.tenant, run.workflow, run.version, run.key, run.queue, run.priority, run.input, run.trace_id,
            run.deployment, run.parent_id, run.parent_path, run.max_attempts, at, inbox_seq, run.paused,
            run.owner,
        )  # fmt: skip
        return row is not None


def signalled(run: RunRow) -> bool:
    """Whether signals alone began it: another one can begin the same way."""
    return run.input in (None, b"null")
