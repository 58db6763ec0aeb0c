"""Approvals: decided once, and their threads woken, in one statement."""

from workflows.storage.base import DecideOutcome, NewRun
from workflows.storage.postgres.rows import Rows
from workflows.storage.postgres.signals import LIVE_CONFLICT, RING

# $1 tenant $2 approval $3 decision $4 person $5 id for a new run $6 reason $7 version $8 queue $9 trace $10 input $11 max_attempts
# $12 priority $13 deployment
DECIDE = f"""
with g as (update approvals set state = $3, by_user = $4, reason = $6, decided_at = threadline_now()
            where tenant = $1 and id = $2 and state = 'pending' and (expires_at <= threadline_now()) = ($3 = 'expired') returning *),
r as (insert into runs (run_id, tenant, workflow, version, key, queue, trace_id, input, max_attempts, priority, deployment, inbox_seq)
      select $5, tenant, workflow, $7, key, $8, $9, $10::bytea, $11::bigint, $12::bigint, $13::text, 1 from g
      on conflict {LIVE_CONFLICT} {RING} returning run_id, inbox_seq, queue),
s as (insert into signals (run_id, seq, name, dedup_key, payload)
      select run_id, inbox_seq, 'approval', 'approval:' || $2, convert_to(json_build_object('approval_id', $2::text)::text, 'utf8') from r
      on conflict do nothing)
"""
DECIDE_RESULT = "(select run_id from r) as run_id, (select queue from r) as queue"

EXPIRED = """
select tenant, id, workflow from approvals where state = 'pending' and expires_at <= threadline_now() order by expires_at limit $1
"""


class ApprovalOperations(Rows):
    """Decides approvals."""

    async def decide(
        self, approval_id: str, run: NewRun, *, decision: str, by: str, reason: str | None
    ) -> DecideOutcome:
        row = await self._guarded(
            DECIDE, DECIDE_RESULT, run.tenant, approval_id, decision, by, run.run_id, reason, run.version, run.queue, run.trace_id, run.input,
            run.max_attempts, run.priority, run.deployment,
        )  # fmt: skip
        return DecideOutcome(row["applied"], row["run_id"], row["queue"])

    async def expired_approvals(self, limit: int = 100) -> list[tuple[str, str, str]]:
        return [(row[0], row[1], row[2]) for row in await self._fetch(EXPIRED, limit)]
