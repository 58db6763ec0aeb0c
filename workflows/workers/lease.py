"""A worker's lease: while it is renewed, what the worker holds is its own."""

import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

from workflows.storage.base import Store, StoreUnavailableError


class Lease:
    """The row of one worker. A worker silent for `lease_s` is gone; it renews every `beat_s`, a third of that by default.

    Raises ValueError for a lease that no beat could keep.
    """

    def __init__(
        self,
        store: Store,
        *,
        lease_s: float,
        beat_s: float | None = None,
        deployment: str = "",
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._store = store
        self._deployment = deployment
        self._clock = clock or time.monotonic
        self._beating_since: float | None = None
        self._beaten_at = 0.0
        self.lease_s = lease_s
        self.beat_s = lease_s / 3 if beat_s is None else beat_s
        if not 0 < self.beat_s < lease_s:
            raise ValueError(
                f"a worker that renews every {self.beat_s} s can't keep a lease of {lease_s} s: 0 < beat_s < lease_s"
            )
        self.worker_id = str(uuid4())

    async def register(self) -> None:
        """Take it. Raises StoreUnavailableError."""
        host = f"{socket.gethostname()}:{os.getpid()}"
        await self._store.register(self.worker_id, host=host, deployment=self._deployment, lease=self._length)
        self._beating_since = self._beaten_at = self._clock()

    async def renew(self) -> bool:
        """False: it was reaped, and everything held under it belongs to others now. Raises StoreUnavailableError."""
        try:
            alive = await self._store.beat(self.worker_id, lease=self._length)
        except StoreUnavailableError:
            self._beating_since = None
            raise
        if alive and (self._beating_since is None or self._overdue):
            self._beating_since = self._clock()
        self._beaten_at = self._clock()
        return alive

    def replace(self) -> None:
        """Be another worker from now on. `register` follows."""
        self.worker_id = str(uuid4())
        self._beating_since = None

    @property
    def seasoned(self) -> bool:
        """Whether its own beats have succeeded for a full lease: only then may it judge others by their silence, for until then storage
        may have been away for all of them. One that was frozen with its machine has been as silent as they were.
        """
        if self._beating_since is None or self._overdue:
            return False
        return self._clock() - self._beating_since >= self.lease_s

    @property
    def _overdue(self) -> bool:
        """Whether its own lease has run out, by this process's clock."""
        return self._clock() - self._beaten_at >= self.lease_s

    @property
    def _length(self) -> timedelta:
        return timedelta(seconds=self.lease_s)
