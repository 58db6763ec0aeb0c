"""Dead letters: listed by pages, given back once, or dropped."""

from dataclasses import replace
from typing import Any

from workflows.storage import dialect
from workflows.storage.base import DeadSignal, LetterId, NewRun, SignalOutcome
from workflows.storage.rows import LETTER_COLUMNS, dead_signal
from workflows.storage.sqlite.database import SQLITE
from workflows.storage.sqlite.signals import Rung, SignalOperations

# ?1 tenant ?2-?4 the last letter of the page before: died at, run, number, or nulls ?5 limit
LIST = f"""
select {LETTER_COLUMNS} from dead_signals where tenant = ?1 and (?2 is null or (died_at, run_id, seq) < (?2, ?3, ?4))
 order by died_at desc, run_id desc, seq desc limit ?5
"""

# ?1 tenant ?2 run ?3 number
ONE = f"select {LETTER_COLUMNS} from dead_signals where tenant = ?1 and run_id = ?2 and seq = ?3"

# ?1 tenant ?2 run ?3 number ?4 workflow ?5 key
FIND = """
select dedup_key from dead_signals where tenant = ?1 and run_id = ?2 and seq = ?3 and workflow = ?4 and key = ?5
"""

# ?1 run ?2 number ?3 run it goes to ?4 dedup key
KNOWN = "select 1 from signals where run_id = ?3 and dedup_key = ?4 and (run_id, seq) <> (?1, ?2)"

# ?1 run ?2 number ?3 run it goes to ?4 number there
MOVE = """
update signals set run_id = ?3, seq = ?4, carried = 0, consumed_by = null
 where run_id = ?1 and seq = ?2 and consumed_by = '$dead' returning 1
"""

# ?1 tenant ?2 run ?3 number ?4 run it goes to ?5 number there
GIVE_BACK = """
insert into signals (run_id, seq, name, dedup_key, payload, created_at)
select ?4, ?5, name, dedup_key, payload, created_at from dead_signals where tenant = ?1 and run_id = ?2 and seq = ?3
"""
"""Where the run it died in is gone, and its signals with it."""

# ?1 run ?2 number ?3 what became of it
MARK = "update signals set consumed_by = ?3 where run_id = ?1 and seq = ?2 and consumed_by = '$dead'"

# ?1 tenant ?2 run ?3 number
DELETE = "delete from dead_signals where tenant = ?1 and run_id = ?2 and seq = ?3 returning 1"


class LetterOperations(SignalOperations):
    """Keeps dead letters."""

    async def dead_signals(self, *, tenant: str, limit: int = 100, before: str | None = None) -> list[DeadSignal]:
        last = None if before is None else LetterId.parse(before)
        place = (None, None, None) if last is None else (dialect.micros(last.died_at), last.run_id, last.seq)
        return await self._call(lambda: self._letters(LIST, tenant, *place, limit))

    async def dead_signal(self, letter_id: str, *, tenant: str) -> DeadSignal | None:
        letter = LetterId.parse(letter_id)
        return next(iter(await self._call(lambda: self._letters(ONE, tenant, letter.run_id, letter.seq))), None)

    def _letters(self, statement: str, tenant: str, *parameters: Any) -> list[DeadSignal]:
        letters = [dead_signal(SQLITE, row) for row in self._rows(statement, tenant, *parameters)]
        payloads = self._whole([each.signal for each in letters], tenant=tenant)
        return [replace(each, signal=whole) for each, whole in zip(letters, payloads, strict=True)]

    async def redrive_signal(self, letter_id: str, run: NewRun) -> SignalOutcome | None:
        letter = LetterId.parse(letter_id)

        def give_back() -> SignalOutcome | None:
            found = self._one(FIND, run.tenant, letter.run_id, letter.seq, run.workflow, run.key)
            if found is None:
                return None
            to = self._reach(run)
            self._give(run.tenant, letter, to, dedup_key=found[0])
            self._one(DELETE, run.tenant, letter.run_id, letter.seq)
            return SignalOutcome(to.run_id, to.seq, started=to.run_id == run.run_id, duplicate=False, queue=to.queue)

        return await self._transact(give_back, tenant=run.tenant)

    def _give(self, tenant: str, letter: LetterId, to: Rung, *, dedup_key: str) -> None:
        """The signal itself moves; where its run is gone, it is made from the letter; a run that knows the event is told nothing new."""
        if self._one(KNOWN, letter.run_id, letter.seq, to.run_id, dedup_key):
            self._one(MARK, letter.run_id, letter.seq, "$known")
        elif self._one(MOVE, letter.run_id, letter.seq, to.run_id, to.seq) is None:
            self._one(GIVE_BACK, tenant, letter.run_id, letter.seq, to.run_id, to.seq)

    async def drop_signal(self, letter_id: str, *, tenant: str) -> bool:
        letter = LetterId.parse(letter_id)

        def drop() -> bool:
            gone = self._one(DELETE, tenant, letter.run_id, letter.seq) is not None
            if gone:
                self._one(MARK, letter.run_id, letter.seq, "$dropped")
            return gone

        return await self._transact(drop)
