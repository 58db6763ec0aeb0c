"""Approvals: decided once, and their threads woken, in one transaction."""

from pydantic_core import to_json

from workflows.storage.base import NewRun
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
        self,
        *,
        tenant: str,
        approval_id: str,
        decision: str,
        by: str,
        reason: str | None,
        successor_id: str,
        version: str,
    ) -> tuple[bool, str | None]:
        def run() -> tuple[bool, str | None]:
            row = self._one(DECIDE, tenant, approval_id, decision, by, reason, self._now())
            if row is None:
                return False, None
            successor = NewRun(successor_id, tenant, row[0], version, row[1])
            payload = to_json({"approval_id": approval_id})
            return True, self._deliver(successor, "approval", f"approval:{approval_id}", payload)[0]

        return await self._transact(run)

    async def expired_approvals(self, limit: int = 100) -> list[tuple[str, str, str]]:
        return await self._transact(lambda: [tuple(row) for row in self._rows(EXPIRED, self._now(), limit)])
