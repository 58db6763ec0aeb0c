"""Room for a run that may kill its process: one worker of a busy fleet lets go of its other runs for it."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from hashlib import blake2b

import structlog

from workflows.storage.base import Store

PATIENCE = timedelta(seconds=5)
NOTICE_S = 10.0


class Quarantine:
    """Whether this worker makes room. An empty worker takes a suspect without being told; this is for a fleet of which none is.

    A suspect that waits for `patience` is one worker's to make room for, chosen by hash; after twice as long, of a second one, and so
    on, in case the first is not able to run it. That worker claims nothing more, and after `notice_s` hands over what it still holds.
    """

    def __init__(
        self,
        store: Store,
        *,
        patience: timedelta = PATIENCE,
        notice_s: float = NOTICE_S,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store = store
        self._patience = patience
        self._notice_s = notice_s
        self._clock = clock or time.monotonic
        self._since: float | None = None

    @property
    def making_room(self) -> bool:
        """Claim nothing but the suspect."""
        return self._since is not None

    @property
    def handing_over(self) -> bool:
        """Let go of everything at its next step boundary."""
        return self._since is not None and self._clock() - self._since >= self._notice_s

    async def look(self, worker_id: str, *, queues: Sequence[str], workflows: Sequence[tuple[str, str]]) -> None:
        """See whether a suspect waits. Raises StoreUnavailableError."""
        found = await self._store.waiting_suspect(queues=queues, workflows=workflows)
        if found is None:
            self._since = None
            return
        run_id, waited = found
        if self._since is None and waited >= self._patience:
            rank = _rank(worker_id, await self._store.workers(), run_id)
            if waited >= self._patience * (1 + rank):
                structlog.get_logger().warning("worker_makes_room", worker_id=worker_id, run_id=run_id)
                self._since = self._clock()

    def over(self) -> None:
        """The suspect was claimed, here or elsewhere."""
        self._since = None


def _rank(worker_id: str, workers: Sequence[str], run_id: str) -> int:
    """This worker's place among all, in an order that every one of them works out alike."""
    return sorted({*workers, worker_id}, key=lambda each: blake2b(f"{run_id}/{each}".encode()).digest()).index(
        worker_id
    )
