"""What people think of an answer: one row a person and run, the latest counts, beside the trace of the run."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from workflows.storage import Column, Index, Insert, Is, Select, Store, Table, Update

Rating = Literal["good", "bad"]

FEEDBACK = Table(
    "feedback",
    (
        Column("tenant", "text"),
        Column("run_id", "text"),
        Column("user_id", "text"),
        Column("trace_id", "text"),
        Column("rating", "text"),
        Column("reason", "text", null=True),
        Column("at", "time", default="now"),
        Column("thread", "text", null=True),
    ),
    ("tenant", "run_id", "user_id"),
    (Index("feedback_trace", ("tenant", "trace_id")),),
)


class Feedback(BaseModel):
    """One person's word on the answer of one run."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    user_id: str
    trace_id: str
    rating: Rating
    reason: str | None = None
    at: datetime


def rated(
    tenant: str, run_id: str, *, thread: str | None, trace_id: str, user_id: str, rating: Rating, at: datetime
) -> Insert:
    """Somebody rates an answer, or thinks otherwise now: the reason of before is gone with it."""
    values = {
        "tenant": tenant, "run_id": run_id, "user_id": user_id, "trace_id": trace_id, "rating": rating, "reason": None, "at": at,
        "thread": thread,
    }  # fmt: skip
    return Insert(FEEDBACK, values, on_conflict="replace")


def explained(tenant: str, run_id: str, *, user_id: str, reason: str) -> Update:
    """Somebody who found an answer bad says why."""
    where = {"tenant": tenant, "run_id": run_id, "user_id": user_id, "rating": "bad"}
    return Update(FEEDBACK, where, {"reason": reason})


async def feedback_since(store: Store, tenant: str, start: datetime, *, limit: int | None = None) -> list[Feedback]:
    """What was thought of a tenant's answers since then, the latest first."""
    rows = await store.read(Select(FEEDBACK, {"tenant": tenant, "at": Is(">=", start)}, order=("-at",), limit=limit))
    return [Feedback.model_validate({name: row[name] for name in Feedback.model_fields}) for row in rows]
