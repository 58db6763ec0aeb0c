"""Dead letters: listed by pages, given back once, or dropped."""

from dataclasses import replace
from typing import Any

from workflows.storage.base import DeadSignal, LetterId, NewRun, SignalOutcome
from workflows.storage.postgres.database import POSTGRES
from workflows.storage.postgres.rows import Rows
from workflows.storage.postgres.signals import LIVE_CONFLICT, RING
from workflows.storage.rows import LETTER_COLUMNS, dead_signal

# $1 tenant $2-$4 the last letter of the page before: died at, run, number, or nulls $5 limit
LIST = f"""
select {LETTER_COLUMNS} from dead_signals
 where tenant = $1 and ($2::timestamptz is null or (died_at, run_id, seq) < ($2, $3::text, $4::bigint))
 order by died_at desc, run_id desc, seq desc limit $5
"""

# $1 tenant $2 run $3 number
ONE = f"select {LETTER_COLUMNS} from dead_signals where tenant = $1 and run_id = $2 and seq = $3"

# $1 tenant $2 workflow $3 version $4 key $5 id for a new run $6 the letter's run $7 its number $8 queue $9 trace $10 input $11 max_attempts
# $12 priority $13 deployment
REDRIVE = f"""
with g as (delete from dead_signals where tenant = $1 and run_id = $6 and seq = $7 and workflow = $2 and key = $4
           returning tenant, name, dedup_key, payload, created_at),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, input, max_attempts, priority, deployment, inbox_seq)
      select $5, $1, $2, $3, $4, $8, $9, $10::bytea, $11::bigint, $12::bigint, $13::text, 1 from g
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq, queue),
k as (select from signals s, r, g where s.run_id = r.run_id and s.dedup_key = g.dedup_key and (s.run_id, s.seq) <> ($6, $7)),
m as (update signals s set run_id = r.run_id, seq = r.inbox_seq, carried = 0, consumed_by = null from r
       where s.run_id = $6 and s.seq = $7 and s.consumed_by = '$dead' and not exists (select from k) returning s.seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload, created_at)
      select r.run_id, r.inbox_seq, g.name, g.dedup_key, g.payload, g.created_at from r, g
       where not exists (select from m) and not exists (select from k) on conflict do nothing),
n as (update signals set consumed_by = '$known' where run_id = $6 and seq = $7 and consumed_by = '$dead' and exists (select from k))
"""
"""A signal-with-start without its key in `received`: that it is there since the event first came is why the letter can't come back by itself.
Whoever deletes the row gives it back, so it is given back once. The signal itself moves (`m`); where its run is gone, it is made from the
letter (`s`); where the live run knows the same event (`k`), it is told nothing new.
"""
REDRIVE_RESULT = "(select run_id from r) as run_id, (select inbox_seq from r) as seq, (select queue from r) as queue"

# $1 tenant $2 run $3 number
DROP = """
with g as (delete from dead_signals where tenant = $1 and run_id = $2 and seq = $3 returning run_id),
d as (update signals set consumed_by = '$dropped' from g where signals.run_id = g.run_id and seq = $3 and consumed_by = '$dead')
select from g
"""


class LetterOperations(Rows):
    """Keeps dead letters."""

    async def dead_signals(self, *, tenant: str, limit: int = 100, before: str | None = None) -> list[DeadSignal]:
        place = (None, None, None) if before is None else LetterId.parse(before)
        return await self._letters(LIST, tenant, *place, limit)

    async def dead_signal(self, letter_id: str, *, tenant: str) -> DeadSignal | None:
        letter = LetterId.parse(letter_id)
        return next(iter(await self._letters(ONE, tenant, letter.run_id, letter.seq)), None)

    async def _letters(self, statement: str, tenant: str, *parameters: Any) -> list[DeadSignal]:
        letters = [dead_signal(POSTGRES, row) for row in await self._fetch(statement, tenant, *parameters)]
        payloads = await self._whole([each.signal for each in letters], tenant=tenant)
        return [replace(each, signal=whole) for each, whole in zip(letters, payloads, strict=True)]

    async def redrive_signal(self, letter_id: str, run: NewRun) -> SignalOutcome | None:
        letter = LetterId.parse(letter_id)
        row = await self._guarded(
            REDRIVE, REDRIVE_RESULT, run.tenant, run.workflow, run.version, run.key, run.run_id, letter.run_id, letter.seq, run.queue,
            run.trace_id, run.input, run.max_attempts, run.priority, run.deployment,
        )  # fmt: skip
        if not row["applied"]:
            return None
        return SignalOutcome(
            row["run_id"], row["seq"], started=row["run_id"] == run.run_id, duplicate=False, queue=row["queue"]
        )

    async def drop_signal(self, letter_id: str, *, tenant: str) -> bool:
        letter = LetterId.parse(letter_id)
        return await self._row(DROP, tenant, letter.run_id, letter.seq) is not None
