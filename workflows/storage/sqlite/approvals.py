"""Approvals: decided once, and their threads woken, in one transaction."""

from dataclasses import replace

from pydantic_core import to_json

from workflows.storage.base import DecideOutcome, NewRun
from workflows.storage.sqlite.signals import SignalOperations

# ?1 tenant ?2 approval ?3 decision ?4 person ?5 reason ?6 now
DECIDE = """
update approvals set state = ?3, by_user = ?4, reason = ?5, decided_at = ?6
 where tenant = ?1 and id = ?2 and state = 'pending' and (expires_at <= ?6) = (?3 = 'expired') returning workflow, key
"""

# ?1 now ?2 limit
EXPIRED = "select tenant, id, workflow from approvals where state = 'pending' and expires_at <= ?1 order by expires_at limit ?2"


class ApprovalOperations(SignalOperations):
    """Decides approvals."""

    async def decide(
        self, approval_id: str, run: NewRun, *, decision: str, by: str, reason: str | None
    ) -> DecideOutcome:
        def settle() -> DecideOutcome:
            row = self._one(DECIDE, run.tenant, approval_id, decision, by, reason, self._now())
            if row is None:
                return DecideOutcome(decided=False, run_id=None, queue=None)
            successor = replace(run, workflow=row[0], key=row[1])
            payload = to_json({"approval_id": approval_id})
            to = self._deliver(successor, "approval", f"approval:{approval_id}", payload)
            return DecideOutcome(True, to.run_id, to.queue)

        return await self._transact(settle, tenant=run.tenant)

    async def expired_approvals(self, limit: int = 100) -> list[tuple[str, str, str]]:
        return await self._transact(lambda: [tuple(row) for row in self._rows(EXPIRED, self._now(), limit)])
