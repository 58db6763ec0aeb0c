"""Approvals: decided once, and their threads woken, in one statement."""

from workflows.storage.postgres.rows import Rows
from workflows.storage.postgres.signals import LIVE_CONFLICT, RING

# $1 tenant $2 approval $3 decision $4 person $5 id for a new run $6 reason $7 version
DECIDE = f"""
with a as (update approvals set state = $3, by_user = $4, reason = $6, decided_at = threadline_now()
            where tenant = $1 and id = $2 and state = 'pending' and (expires_at <= threadline_now()) = ($3 = 'expired') returning *),
r as (insert into runs (run_id, tenant, workflow, version, key, inbox_seq) select $5, tenant, workflow, $7, key, 1 from a
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq),
s as (insert into signals (run_id, seq, name, dedup_key, payload)
      select run_id, inbox_seq, 'approval', 'approval:' || $2, convert_to(json_build_object('approval_id', $2::text)::text, 'utf8') from r
      on conflict do nothing)
select (select run_id from r) as run_id, exists (select from a) as decided
"""

EXPIRED = """
select tenant, id, workflow from approvals where state = 'pending' and expires_at <= threadline_now() order by expires_at limit $1
"""


class ApprovalOperations(Rows):
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
        row = await self._one(DECIDE, tenant, approval_id, decision, by, successor_id, reason, version)
        return row["decided"], row["run_id"]

    async def expired_approvals(self, limit: int = 100) -> list[tuple[str, str, str]]:
        return [(row[0], row[1], row[2]) for row in await self._fetch(EXPIRED, limit)]
