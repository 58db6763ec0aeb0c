"""Frees the runs of workers that are gone, and buries those that have no attempts left."""

from collections.abc import Mapping
from typing import Any

import structlog

from workflows.definition.graph import Workflow
from workflows.ids import uuid7
from workflows.running.driver import Driver
from workflows.storage.base import RunRow, RunState, Store


class Reaper:
    """Any number may reap at once: each run is freed by one of them."""

    def __init__(self, store: Store, driver: Driver, workflows: Mapping[tuple[str, str], Workflow[Any, Any]]) -> None:
        self._store = store
        self._driver = driver
        self._workflows = workflows

    async def reap(self) -> int:
        """Returns how many runs were freed or buried. Raises StoreUnavailableError."""
        reaped = await self._store.reap()
        for row in reaped.dead:
            try:
                await self._bury(row)
            except Exception:  # one that can't be buried must not keep the others from it
                structlog.get_logger().exception("run_not_buried", run_id=row.run_id)
        if reaped.freed or reaped.dead:
            structlog.get_logger().info(
                "runs_reaped", freed=list(reaped.freed), dead=[row.run_id for row in reaped.dead]
            )
        return len(reaped.freed) + len(reaped.dead)

    async def _bury(self, row: RunRow) -> None:
        failure = {"type": "Dead", "message": f"{row.attempts} attempts made no progress", "causes": []}
        workflow = self._workflows.get((row.workflow, row.version))
        writes = self._driver.aftermath(row, workflow, RunState.DEAD, failure)
        outcome = await self._store.end(
            row.run_id, row.fence, RunState.DEAD, inbox_seen=row.inbox_seq, successor_id=str(uuid7()), error=failure, writes=writes
        )  # fmt: skip
        if outcome.ended:
            self._driver.lifecycle.ended(row, RunState.DEAD, parent_queue=outcome.parent_queue)
