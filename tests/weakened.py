"""Stores with one guarantee taken out of one statement: tests that pass on them prove nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workflows.storage import MemoryStore
from workflows.storage.base import EndOutcome


class WeakenedStore(MemoryStore):
    """Sends statements that contain `marker` with `old` replaced by `new`. `weakened` counts them."""

    def __init__(self, marker: str, old: str, new: str) -> None:
        super().__init__()
        self._marker, self._old, self._new = marker, old, new
        self.weakened = 0

    def _rows(self, sql: str, *parameters: Any) -> list[Any]:
        return super()._rows(self._weaken(sql), *parameters)

    def _one(self, sql: str, *parameters: Any) -> Any:
        return super()._one(self._weaken(sql), *parameters)

    def _weaken(self, sql: str) -> str:
        if self._marker not in sql or self._old not in sql:
            return sql
        self.weakened += 1
        return sql.replace(self._old, self._new)


class NoRelease(MemoryStore):
    """A CLAIM whose reply was lost is never given back."""

    weakened = 0

    async def release(self, *arguments: Any, **options: Any) -> list[str]:
        self.weakened += 1
        return []


class NoHandOver(MemoryStore):
    """A run that ends leaves its unread signals behind."""

    weakened = 0

    def _hand_over(self, *arguments: Any) -> EndOutcome:
        self.weakened += 1
        return EndOutcome(ended=True, successor=None, carried=0)


@dataclass(frozen=True, slots=True)
class Weakness:
    """What is taken out of which operation. `rare`: it shows in few histories; `at`: the write that must be overtaken to show it."""

    name: str
    make: Callable[[], Any]
    rare: bool = False
    at: str | None = None


def _statement(
    name: str, marker: str, old: str, new: str = "", *, rare: bool = False, at: str | None = None
) -> Weakness:
    return Weakness(name, lambda: WeakenedStore(marker, old, new), rare, at)


STEP, SUSPEND, END, TAKE = (
    "step_seq = step_seq +",
    "state = 'suspended', owner = null",
    "error = ?6",
    "attempts = attempts + 1",
)
WORKER_LIVES = "and exists (select 1 from workers where worker_id = ?1)"

WEAKNESSES = (
    _statement("STEP does not look at the fence", STEP, "fence = ?2 and "),
    _statement("the clean end does not look at the inbox", STEP, "inbox_seq = ?5 and not cancel_requested", "true"),
    _statement("SUSPEND does not look at the fence", SUSPEND, "fence = ?2 and ", at="suspend"),
    _statement(
        "SUSPEND does not look at the inbox",
        SUSPEND,
        "and inbox_seq = ?3\n   and (not cancel_requested or exists (select 1 from steps where run_id = ?1 and status = 'failed'))",
    ),
    _statement("END does not look at the fence", END, "fence = ?2 and ", at="end"),
    _statement("CLAIM does not raise the fence", TAKE, "fence = fence + 1, "),
    _statement("STEP does not consume signals", "set consumed_by = ?2", "consumed_by = ?2", "consumed_by = null"),
    _statement(
        "SIGNAL does not wake",
        "inbox_seq = inbox_seq + 1",
        "available_at = case state when 'suspended' then ?2 ",
        "available_at = case when ?2 < 0 then ?2 ",
    ),
    Weakness("nothing is released", NoRelease),
    Weakness("nothing is handed over", NoHandOver),
)
"""Those that change what becomes of runs."""

FINER = (
    _statement("END does not look at the inbox", END, "and inbox_seq = ?4", rare=True),
    _statement("a reaped worker may claim", "select run_id, attempts from runs", WORKER_LIVES),
    _statement(
        "STEP takes another fence's record for its own",
        "json_each(?2)) and",
        "and (?3 is null or fence = ?3)",
        "and (?3 is null or true)",
        rare=True,
    ),
    _statement("RELEASE counts the attempt", "attempts = max(attempts - 1, 0), ", "attempts = max(attempts - 1, 0), "),
    _statement("REAP frees for ever", "available_at = ?1", "and attempts < max_attempts"),
    _statement("SIGNAL does not look at the tenant", "cancel_requested or ?3", "and tenant = ?2"),
    _statement("what was carried once is carried again", "carried = 1", ", carried = 1"),
    _statement(
        "an outside event is received each time",
        "insert into received",
        "on conflict do nothing returning 1",
        "on conflict do update set at = 1 returning 1",
    ),
)
"""Those that the whole makes up for, or that only a comparison with a model shows."""
