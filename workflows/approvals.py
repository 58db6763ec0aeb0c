"""Approvals: rows of what waits for a person, each decided once, by somebody or by time."""

from collections.abc import Callable
from typing import Any

import structlog

from workflows.beginning import begun_by_signal
from workflows.definition.graph import Workflow
from workflows.definition.registry import Registry
from workflows.errors import NoExecutorError
from workflows.execution import Execution
from workflows.storage.base import Store


class Approvals:
    """Decides them, each with a signal to its key in the same commit. `store` keeps the rows."""

    def __init__(
        self, execution: Callable[[], Execution], store: Store, workflows: Registry, *, deployment: str
    ) -> None:
        self._execution = execution
        self._store = store
        self._workflows = workflows
        self._deployment = deployment

    async def decide(
        self,
        workflow: Workflow[Any, Any],
        *,
        tenant: str,
        approval_id: str,
        decision: str,
        by: str,
        reason: str | None = None,
    ) -> bool:
        """Decide a pending approval, and signal its key with "approval" in the same commit. False: somebody else was first, or it has expired.

        `workflow` is what the key's next run begins if none is live. `decision` becomes the approval's state: "approved", "denied", "expired".
        """
        execution = self._execution()
        new = begun_by_signal(workflow, tenant=tenant, key=None, deployment=self._deployment)
        outcome = await execution.store("approvals").decide(approval_id, new, decision=decision, by=by, reason=reason)
        if outcome.queue is not None:
            await execution.tell_workers(outcome.queue)
        return outcome.decided

    async def expire(self) -> int:
        """Let pending approvals past their time expire, which signals their keys: a sweep for the clock. Returns how many."""
        expired = await self._store.expired_approvals()
        for tenant, approval_id, name in expired:
            try:
                workflow = self._workflows.required(name)
                await self.decide(workflow, tenant=tenant, approval_id=approval_id, decision="expired", by="")
            except NoExecutorError as error:
                structlog.get_logger().error(
                    "approval_not_expired", tenant=tenant, approval=approval_id, error=str(error)
                )
        return len(expired)
