"""Dead letters: listed by pages, given back once, or dropped."""

from dataclasses import replace

from workflows.storage import dialect
from workflows.storage.base import DeadSignal, LetterId, NewRun, SignalOutcome
from workflows.storage.rows import LETTER_COLUMNS, dead_signal
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.signals import SignalOperations

# ?1 tenant ?2-?4 the last letter of the page before: died at, run, number, or nulls ?5 limit
LIST = f"""
select {LETTER_COLUMNS} from dead_signals where tenant = ?1 and (?2 is null or (died_at, run_id, seq) < (?2, ?3, ?4))
 order by died_at desc, run_id desc, seq desc limit ?5
"""

# ?1 tenant ?2 run ?3 number ?4 workflow ?5 key
FIND = "select 1 from dead_signals where tenant = ?1 and run_id = ?2 and seq = ?3 and workflow = ?4 and key = ?5"

# ?1 tenant ?2 run ?3 number ?4 run it goes to ?5 number there
GIVE_BACK = """
insert into signals (run_id, seq, name, dedup_key, payload, created_at)
select ?4, ?5, name, dedup_key, payload, created_at from dead_signals where tenant = ?1 and run_id = ?2 and seq = ?3
on conflict do nothing
"""

# ?1 tenant ?2 run ?3 number
DROP = "delete from dead_signals where tenant = ?1 and run_id = ?2 and seq = ?3 returning 1"


class LetterOperations(SignalOperations):
    """Keeps dead letters."""

    async def dead_signals(self, *, tenant: str, limit: int = 100, before: str | None = None) -> list[DeadSignal]:
        last = None if before is None else LetterId.parse(before)
        place = (None, None, None) if last is None else (dialect.micros(last.died_at), last.run_id, last.seq)

        def found() -> list[DeadSignal]:
            letters = [dead_signal(SQLITE, row) for row in self._rows(LIST, tenant, *place, limit)]
            payloads = self._whole([each.signal for each in letters], tenant=tenant)
            return [replace(each, signal=whole) for each, whole in zip(letters, payloads, strict=True)]

        return await self._call(found)

    async def redrive_signal(self, letter_id: str, run: NewRun) -> SignalOutcome | None:
        letter = LetterId.parse(letter_id)
        at = (run.tenant, letter.run_id, letter.seq)

        def give_back() -> SignalOutcome | None:
            if self._one(FIND, *at, run.workflow, run.key) is None:
                return None
            run_id, seq = self._reach(run)
            self._one(GIVE_BACK, *at, run_id, seq)
            self._one(DROP, *at)
            return SignalOutcome(run_id, seq, started=run_id == run.run_id, duplicate=False)

        return await self._transact(give_back, tenant=run.tenant)

    async def drop_signal(self, letter_id: str, *, tenant: str) -> bool:
        letter = LetterId.parse(letter_id)
        return await self._transact(lambda: self._one(DROP, tenant, letter.run_id, letter.seq) is not None)
