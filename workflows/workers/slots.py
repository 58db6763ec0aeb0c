"""What a worker may claim next: so many runs in all, of each queue, and of each tenant."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from workflows.storage.base import SUSPECT_AFTER, RunRow, Suspects


@dataclass(frozen=True, slots=True)
class Ask:
    """A claim that can't exceed any limit, whatever it returns."""

    queues: tuple[str, ...]
    limit: int
    leave_out: tuple[str, ...]
    suspects: Suspects


class Slots:
    """Counts what is held. `queues` maps each queue to how many runs of it may be held at once, `per_tenant` limits each tenant's.

    With `per_tenant` below `concurrency` there is always room for another tenant, however much work one of them has waiting.
    A run on its third try without progress may be what killed the first two workers: it is held alone.
    """

    def __init__(self, queues: Mapping[str, int], *, concurrency: int, per_tenant: int | None = None) -> None:
        limits = {"concurrency": concurrency, **queues, **({} if per_tenant is None else {"per_tenant": per_tenant})}
        if not queues or min(limits.values()) < 1:
            raise ValueError(f"a worker needs a queue, and every limit must be 1 or more: {limits}")
        self._limits = dict(queues)
        self._concurrency = concurrency
        self._per_tenant = per_tenant
        self._held: dict[str, RunRow] = {}

    def take(self, run: RunRow) -> None:
        """A run is held."""
        self._held[run.run_id] = run

    def free(self, run_id: str) -> None:
        """It is held no more."""
        self._held.pop(run_id, None)

    @property
    def queues(self) -> tuple[str, ...]:
        """All queues that are served."""
        return tuple(self._limits)

    @property
    def alone(self) -> bool:
        """Whether a run is held that must have no neighbours."""
        return any(run.attempts > SUSPECT_AFTER for run in self._held.values())

    def room(self, *, tenant: str, queue: str) -> bool:
        """Whether one more run of this tenant and queue may be held."""
        if len(self._held) >= self._concurrency or self.alone:
            return False
        of_queue = sum(run.queue == queue for run in self._held.values())
        of_tenant = sum(run.tenant == tenant for run in self._held.values())
        return of_queue < self._limits.get(queue, 0) and (self._per_tenant is None or of_tenant < self._per_tenant)

    def ask(self, *, empty: Collection[str] = (), suspects_only: bool = False) -> Ask | None:
        """What to claim now, or None. `empty`: queues in which there is nothing more. The next ask follows from what was taken."""
        free = self._concurrency - len(self._held)
        if free <= 0 or self.alone or (suspects_only and self._held):
            return None
        held = Counter(run.queue for run in self._held.values())
        room = {queue: limit - held[queue] for queue, limit in self._limits.items() if queue not in empty}
        room = {queue: left for queue, left in room.items() if left > 0}
        if not room:
            return None
        widest = max(room.values())
        # All queues in one statement where none of them can be exceeded; else the one with the most room.
        queues = tuple(room) if min(room.values()) >= free else (max(room, key=lambda queue: room[queue]),)
        limit, leave_out = self._for_tenants(min(free, widest))
        suspects: Suspects = "only" if suspects_only else "no" if self._held else "head"
        return Ask(queues, limit, leave_out, suspects)

    def _for_tenants(self, limit: int) -> tuple[int, tuple[str, ...]]:
        """Few enough that even if all were of one tenant, it would not exceed its share; without those who have theirs."""
        if self._per_tenant is None:
            return limit, ()
        held = Counter(run.tenant for run in self._held.values())
        full = tuple(sorted(tenant for tenant, count in held.items() if count >= self._per_tenant))
        most = max((count for count in held.values() if count < self._per_tenant), default=0)
        return min(limit, self._per_tenant - most), full
