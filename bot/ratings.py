"""Clicks on the buttons below an answer, and the reasons people give."""

from typing import Any, Literal

import structlog

from agent.feedback import explained, rated
from bot.opening import Dialogs, Made
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

    def __init__(self, engine: Engine, dialogs: Dialogs) -> None:
        self._engine = engine
        self._dialogs = dialogs

    async def clicked(self, *, tenant: str, user: str, action: dict[str, Any], trigger_id: str) -> str:
        """Keep a rating, and ask why where it is bad; returns what the clicker is told. Raises StoreUnavailableError.

        The rating stands whether or not the question is shown.
        """
        rating, _, run_id = str(action.get("value") or "").partition(":")
        if rating == "good":
            return THANKS[rating] if await self._kept(tenant, user, run_id, "good") else UNKNOWN
        if rating != "bad":
            return UNKNOWN
        made, _ = await self._dialogs.open(tenant, trigger_id, self._why(tenant, user, run_id), title="What was wrong?")
        return UNKNOWN if isinstance(made, str) else THANKS[rating]

    async def _why(self, tenant: str, user: str, run_id: str) -> Made:
        """The question why an answer was bad, once that it was is kept."""
        return reason_view(run_id) if await self._kept(tenant, user, run_id, "bad") else UNKNOWN

    async def _kept(self, tenant: str, user: str, run_id: str, rating: Literal["good", "bad"]) -> bool:
        try:
            row = await (await self._engine.run(run_id, tenant=tenant)).row()
        except RunNotFoundError:
            return False
        now = await self._engine.store.now()
        trace_id = row.trace_id or row.run_id
        await self._engine.store.write(
            rated(tenant, row.run_id, thread=row.key, trace_id=trace_id, user_id=user, rating=rating, at=now)
        )
        structlog.get_logger().info("answer_rated", tenant=tenant, run_id=row.run_id, trace_id=trace_id, rating=rating)
        return True

    async def explained(self, *, tenant: str, user: str, view: dict[str, Any]) -> None:
        """Keep the reason somebody gave. Raises StoreUnavailableError."""
        values = (view.get("state") or {}).get("values") or {}
        reason = str(((values.get(FIELD) or {}).get(FIELD) or {}).get("value") or "").strip()[:REASON_LIMIT]
        run_id = str(view.get("private_metadata") or "")
        if reason and run_id:
            await self._engine.store.write(explained(tenant, run_id, user_id=user, reason=reason))
