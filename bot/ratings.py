"""Clicks on the buttons below an answer, and the reasons people give."""

from typing import Any

import structlog

from agent.feedback import explained, rated
from bot.clients import Clients
from bot.render.feedback import FIELD, REASON_LIMIT, reason_view
from workflows import Engine
from workflows.errors import RunNotFoundError

THANKS = {
    "good": "Noted as helpful. Thank you.",
    "bad": "Noted as not helpful. Thank you: it is kept with this answer.",
}
UNKNOWN = "This answer is not known here any more."


class Ratings:
    """Keeps what people think of answers, one word a person, the latest."""

    def __init__(self, engine: Engine, clients: Clients) -> None:
        self._engine = engine
        self._clients = clients

    async def clicked(self, *, tenant: str, user: str, action: dict[str, Any]) -> tuple[str, str | None]:
        """Keep a rating. What the clicker is told, and the run to ask a reason for. Raises StoreUnavailableError."""
        rating, _, run_id = str(action.get("value") or "").partition(":")
        if rating not in ("good", "bad"):
            return UNKNOWN, None
        try:
            row = await (await self._engine.run(run_id, tenant=tenant)).row()
        except RunNotFoundError:
            return UNKNOWN, None
        now = await self._engine.store.now()
        trace_id = row.trace_id or row.run_id
        await self._engine.store.write(
            rated(
                tenant,
                row.run_id,
                trace_id=trace_id,
                user_id=user,
                rating="good" if rating == "good" else "bad",
                at=now,
            )
        )
        structlog.get_logger().info("answer_rated", tenant=tenant, run_id=row.run_id, trace_id=trace_id, rating=rating)
        return THANKS[rating], row.run_id if rating == "bad" else None

    async def ask(self, *, tenant: str, trigger_id: str, run_id: str) -> None:
        """Ask why. The rating stands whether or not the question is shown: a trigger lives for three seconds."""
        try:
            client = await self._clients.of(tenant)
            await client.views_open(trigger_id=trigger_id, view=reason_view(run_id))
        except Exception as error:
            structlog.get_logger().info("reason_not_asked", error=f"{type(error).__name__}: {error}")

    async def explained(self, *, tenant: str, user: str, view: dict[str, Any]) -> None:
        """Keep the reason somebody gave. Raises StoreUnavailableError."""
        values = (view.get("state") or {}).get("values") or {}
        reason = str(((values.get(FIELD) or {}).get(FIELD) or {}).get("value") or "").strip()[:REASON_LIMIT]
        run_id = str(view.get("private_metadata") or "")
        if reason and run_id:
            await self._engine.store.write(explained(tenant, run_id, user_id=user, reason=reason))
