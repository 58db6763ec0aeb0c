"""The clock's sweep of what is over: in bounded batches while there is any, then a rest."""

import time
from collections.abc import Callable

import structlog

from workflows.storage.base import Store
from workflows.storage.retention import Retention

REST_S = 60.0


class Retaining:
    """Removes what is kept no longer. Called every second by any number of clocks; looks again `rest_s` seconds after it found nothing."""

    def __init__(
        self,
        store: Store,
        retention: Retention,
        *,
        rest_s: float = REST_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._retention = retention
        self._rest_s = rest_s
        self._monotonic = monotonic
        self._resting_until = 0.0

    async def __call__(self) -> int:
        """Remove one batch. Returns how many rows of all kinds went."""
        if self._monotonic() < self._resting_until:
            return 0
        swept = await self._store.sweep(self._retention)
        if not swept.total:
            self._resting_until = self._monotonic() + self._rest_s
            return 0
        structlog.get_logger().info("retention_swept", **{name: getattr(swept, name) for name in swept.__slots__})
        return swept.total
