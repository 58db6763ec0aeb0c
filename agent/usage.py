"""What was used of the model: a row for each call, written in the commit of its step, so that none is missing and none counts twice."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from agent.models.base import Usage
from workflows.storage import Column, Index, Insert, Select, Store, Table

USAGE = Table(
    "usage",
    (
        Column("tenant", "text"),
        Column("id", "text"),  # of the message that the call made
        Column("month", "text"),  # "2026-11", in UTC
        Column("model", "text"),
        Column("input_tokens", "int"),
        Column("output_tokens", "int"),
        Column("cached_tokens", "int"),
        Column("at", "time", default="now"),
    ),
    ("tenant", "id"),
    (Index("usage_by_month", ("tenant", "month")),),
)


TOKENS = ("input_tokens", "output_tokens", "cached_tokens")


class Used(BaseModel):
    """The sum over a month."""

    model_config = ConfigDict(frozen=True)

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


def used(tenant: str, call_id: str, usage: Usage, *, model: str, at: datetime) -> Insert:
    """The row of one call."""
    values = {"tenant": tenant, "id": call_id, "month": _month(at), "model": model}
    tokens = {name: getattr(usage, name) for name in TOKENS}
    return Insert(USAGE, {**values, **tokens})


async def used_in_month(store: Store, tenant: str, at: datetime) -> Used:
    """What a tenant has used in the month of `at`, in UTC."""
    calls, *tokens = await store.totals(Select(USAGE, {"tenant": tenant, "month": _month(at)}), *TOKENS)
    return Used(calls=calls, **dict(zip(TOKENS, tokens, strict=True)))


def _month(at: datetime) -> str:
    return at.strftime("%Y-%m")
