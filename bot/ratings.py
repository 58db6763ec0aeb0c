"""Clicks on the buttons below an answer, and the reasons people give."""

from typing import Any, Literal

import structlog

from agent.feedback import explained, rated
from bot.dialogs import Dialogs, Made
from bot.views import View, modal, text_input, text_of
from workflows import Engine
from workflows.errors import RunNotFoundError

THANKS = {
    "good": "Noted as helpful. Thank you.",
    "bad": "Noted as not helpful. Thank you: it is kept with this answer.",
}
WHY = "answer_feedback_reason"
"""The callback id of the dialog that asks for a reason."""
FIELD = "reason"
REASON_LIMIT = 2_000
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

    async def explained(self, *, tenant: str, user: str, view: View) -> None:
        """Keep the reason somebody gave. Raises StoreUnavailableError."""
        reason = text_of(view, FIELD)[:REASON_LIMIT]
        run_id = str(view.get("private_metadata") or "")
        if reason and run_id:
            await self._engine.store.write(explained(tenant, run_id, user_id=user, reason=reason))


def reason_view(run_id: str) -> View:
    """A dialog that asks what was wrong. Nobody has to say."""
    field = text_input(FIELD, "What should it have been?", limit=REASON_LIMIT, many_lines=True)
    return modal(WHY, "What was wrong?", [field], submit="Send", close="Skip", metadata=run_id)
